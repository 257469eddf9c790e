# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node takes the Kubernetes images of a configuration. Nodes check this when a configuration comes in, talosctl does not.

Any node refuses an image without a version. Which versions it takes depends on the Talos that it runs, which may be newer than the
contract, so that is a warning.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .compatibility import kubernetes_problem
from .documents import Config
from .validate_legacy import is_control_plane
from .verdict import Finding, Verdict, quote

_LEGACY = (("kubelet", "machine", "kubelet"),)
_LEGACY_CONTROL_PLANE = (
    ("kube-apiserver", "cluster", "apiServer"), ("kube-controller-manager", "cluster", "controllerManager"), ("kube-scheduler", "cluster", "scheduler"))
_DOCUMENTS = {
    "KubeletConfig": "kubelet", "KubeAPIServerConfig": "kube-apiserver", "KubeControllerManagerConfig": "kube-controller-manager",
    "KubeSchedulerConfig": "scheduler", "KubeProxyConfig": "proxy",
}
_VERSION = re.compile(r".*:v([0-9]+(?:\.[0-9]+){0,2}(?:[-+][^@]*)?)(?:@.*)?\Z", re.DOTALL)


def with_images(verdict: Verdict, config: Config) -> Verdict:
    """The verdict, with what is to be said of the images."""
    errors, warnings = list(verdict.errors), list(verdict.warnings)
    for document, path, name, image in _images(config):
        found = _VERSION.match(image)
        if found is None:
            errors.append(Finding(document, path, f"{name} image is not valid: failed to parse Kubernetes version from image reference {quote(image)}"))
            continue
        wrong = kubernetes_problem(config.version, found.group(1))
        if wrong:
            warnings.append(Finding(document, path, f"{name} image is not valid: {wrong}"))
    return Verdict(tuple(errors), tuple(warnings))


def _images(config: Config) -> Iterator[tuple[str, str, str, str]]:
    """(document, path, name, image) of each image that is set and counts."""
    legacy: Mapping[str, Any] = config.legacy.data if config.legacy is not None else {}
    fields: Iterable[tuple[str, str, str]] = (*_LEGACY, *_LEGACY_CONTROL_PLANE) if is_control_plane(legacy) else _LEGACY
    for name, block, key in fields:
        image = ((legacy.get(block) or {}).get(key) or {}).get("image")
        if image:
            yield "v1alpha1.Config", f"{block}.{key}.image", name, image
    for document in config.documents:
        name = _DOCUMENTS.get(document.kind.name, "")
        if name and document.data.get("image") and document.data.get("enabled") is not False:
            yield document.id, "image", name, document.data["image"]
