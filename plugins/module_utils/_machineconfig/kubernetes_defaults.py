# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes objects that Talos puts into every control plane's configuration."""
from __future__ import annotations

from typing import Any


def pod_security() -> dict[str, Any]:
    """The default configuration of the PodSecurity admission plugin."""
    return {
        "apiVersion": "pod-security.admission.config.k8s.io/v1alpha1", "kind": "PodSecurityConfiguration",
        "defaults": {
            "audit": "restricted", "audit-version": "latest", "enforce": "baseline", "enforce-version": "latest", "warn": "restricted",
            "warn-version": "latest",
        },
        "exemptions": {"namespaces": ["kube-system"], "runtimeClasses": [], "usernames": []},
    }


def audit_policy() -> dict[str, Any]:
    """The default audit policy."""
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}


def authentication() -> dict[str, Any]:
    """Anonymous access to the health endpoints only."""
    return {"anonymous": {"enabled": True, "conditions": [{"path": "/livez"}, {"path": "/readyz"}, {"path": "/healthz"}]}, "jwt": []}
