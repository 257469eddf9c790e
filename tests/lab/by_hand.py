# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person does to a node with talosctl: `patch mc`, and the image tags that `upgrade-k8s` changes.

The node goes through the same checks and does the same as after a call; only the log has it as done by hand, not as a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.lab import apply
from tests.lab.calllog import digest
from tests.lab.canonical import canonical
from tests.lab.machineconfig import Config, Document

if TYPE_CHECKING:
    from tests.lab.node import Node

MODES = {"reboot": apply.REBOOT, "auto": apply.AUTO, "no-reboot": apply.NO_REBOOT, "staged": apply.STAGED, "try": apply.TRY}
_TRY_SECONDS = 60.0
# Where the images stand: the path in the v1alpha1 document, the kind of 1.14's document, Talos's own image, whether workers have it.
_IMAGES = (
    (("machine", "kubelet"), "KubeletConfig", "ghcr.io/siderolabs/kubelet", True),
    (("cluster", "apiServer"), "KubeAPIServerConfig", "registry.k8s.io/kube-apiserver", False),
    (("cluster", "controllerManager"), "KubeControllerManagerConfig", "registry.k8s.io/kube-controller-manager", False),
    (("cluster", "scheduler"), "KubeSchedulerConfig", "registry.k8s.io/kube-scheduler", False),
    (("cluster", "proxy"), "KubeProxyConfig", "registry.k8s.io/kube-proxy", False),
)


def edit(node: Node, patch: Mapping[str, Any], kind: str = "v1alpha1", mode: str = "auto") -> str:
    """Merges `patch` into the document of a kind, None taking a key away, and applies the result; gives what apply says. Refusal as apply's."""
    return _send(node, canonical(_patched(_running(node), patch, kind)), mode)


def write(node: Node, text: str, mode: str = "auto") -> str:
    """Applies a whole configuration, verbatim."""
    return _send(node, text, mode)


def upgrade_kubernetes(node: Node, version: str) -> str:
    """`upgrade-k8s --to version` on one node: the tags of every image that the configuration has, none of the rest."""
    config = _running(node)
    for path, kind, image, everywhere in _IMAGES:
        if not everywhere and not config.control_plane:
            continue
        found: Any = config.document(kind)
        if found is not None:
            config = _patched(config, {"image": _tagged(found.get("image"), image, version)}, kind)
        elif config.version < 14 or _at(config, path):
            tagged = _tagged(_at(config, path).get("image"), image, version)
            config = _patched(config, {path[0]: {path[1]: {"image": tagged}}}, "v1alpha1")
    return _send(node, canonical(config), "no-reboot")


def _running(node: Node) -> Config:
    boot = node.boot
    if boot is None or boot.active is None or not boot.active.complete:
        raise ValueError(f"{node.name} has no configuration that runs")
    return boot.active


def _at(config: Config, path: tuple[str, str]) -> dict[str, Any]:
    return dict(((config.v1alpha1 or {}).get(path[0]) or {}).get(path[1]) or {})


def _tagged(present: Any, image: str, version: str) -> str:
    repository = str(present).rpartition(":")[0] if present else image
    return f"{repository}:v{version.removeprefix('v')}"


def _patched(config: Config, patch: Mapping[str, Any], kind: str) -> Config:
    documents = [replace(document, tree=_merged(document.tree, patch)) if document.kind == kind else document for document in config.documents]
    if not any(document.kind == kind for document in documents):
        documents.append(Document(kind, "v1alpha1", "", 1, {"apiVersion": "v1alpha1", "kind": kind, **deepcopy(dict(patch))}))
    return replace(config, documents=documents)


def _merged(tree: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    out = deepcopy(dict(tree))
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping):
            out[key] = _merged(out.get(key) or {}, value)
        else:
            out[key] = deepcopy(value)
    return out


def _send(node: Node, text: str, mode: str) -> str:
    if mode not in MODES:
        raise ValueError(f"mode is one of {', '.join(MODES)}")
    boot = node.boot
    if boot is None or not boot.configured:
        raise ValueError(f"{node.name} has no configuration that runs")
    raw = text.encode()
    config, unused = apply.check(boot, raw, False, MODES[mode])
    number, details, reason = apply.effective(boot, config, MODES[mode], False)
    if number == apply.TRY:
        apply.attempt(boot, config, _TRY_SECONDS)
    else:
        apply.store(boot, config, number)
    node.note("edited-by-hand", mode=number, **digest(raw))
    return details + reason
