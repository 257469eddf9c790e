# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A chart in the shape of Cilium's, rendered and installed by real helm, for a cluster that has a network already."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.parts.build import build

CHART = Path(__file__).resolve().parent / "charts" / "cilium"
NAMESPACE = "kube-system"


def helm(*arguments: str, values: Mapping[str, Any] | None = None, kubeconfig: Path | None = None) -> str:
    """What helm prints. Raises AssertionError with what it says where it fails."""
    environment = {**os.environ, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig is not None else {})}
    done = subprocess.run([str(build("helm-3.22")), *arguments], input=json.dumps(dict(values or {})), capture_output=True, text=True, timeout=120,
                          check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(kubeconfig: Path, values: Mapping[str, Any], name: str = "cilium") -> None:
    """As a person installs it; the API server of the tests runs no pods, so nothing is waited for."""
    helm("upgrade", "--install", name, str(CHART), "--namespace", NAMESPACE, "--no-hooks", "--values", "-", values=values, kubeconfig=kubeconfig)


def rendered(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The objects, as `helm template` writes them for an inline manifest."""
    text = helm("template", "cilium", str(CHART), "--namespace", NAMESPACE, "--no-hooks", "--kube-version", "v1.36.3", "--values", "-", values=values)
    return [document for document in yaml.safe_load_all(text) if document]


def release_secret(record: object, revision: int = 1) -> dict[str, Any]:
    """A Secret as Helm keeps a release in it."""
    inner = base64.b64encode(gzip.compress(json.dumps(record).encode()))
    return {"metadata": {"name": f"sh.helm.release.v1.cilium.v{revision}", "labels": {"owner": "helm", "name": "cilium", "version": str(revision)}},
            "data": {"release": base64.b64encode(inner).decode()}}
