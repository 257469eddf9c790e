# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Semantic comparison of two configurations: what differs, by path, whatever the text looks like.

Equal are: any order of documents and of keys, comments, quoting, spellings of durations, addresses, URLs and whole numbers, empty values
and absent ones, and a default that one side writes out (DEFAULTS). The order within a list counts.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .documents import Config, Document
from .masking import fingerprint
from .schema import LEGACY
from .secret_paths import sensitive
from .url_passwords import without_url_passwords

# What an absent key means to Talos, where it is written out by some tool or node. Kind "" is the legacy document.
DEFAULTS: Mapping[tuple[str, str], Any] = {
    (LEGACY, "version"): "v1alpha1",
    (LEGACY, "debug"): False,
    (LEGACY, "persist"): True,
    (LEGACY, "machine.install.wipe"): False,
    (LEGACY, "machine.install.bootloader"): True,
    (LEGACY, "machine.install.legacyBIOSSupport"): False,
    (LEGACY, "machine.features.rbac"): True,
    (LEGACY, "machine.features.apidCheckExtKeyUsage"): True,
    (LEGACY, "machine.features.stableHostname"): False,
    (LEGACY, "machine.features.kubePrism.port"): 7445,
    (LEGACY, "machine.features.hostDNS.resolveMemberNames"): False,
    (LEGACY, "machine.time.disabled"): False,
    (LEGACY, "cluster.apiServer.disablePodSecurityPolicy"): True,
    (LEGACY, "cluster.allowSchedulingOnControlPlanes"): False,
    (LEGACY, "cluster.allowSchedulingOnMasters"): False,
    (LEGACY, "cluster.network.dnsDomain"): "cluster.local",
    (LEGACY, "cluster.network.cni.name"): "flannel",
    (LEGACY, "cluster.proxy.disabled"): False,
    (LEGACY, "cluster.coreDNS.disabled"): False,
    (LEGACY, "cluster.discovery.registries.service.disabled"): False,
    (LEGACY, "cluster.discovery.registries.service.endpoint"): "https://discovery.talos.dev/",
    (LEGACY, "cluster.externalCloudProvider.enabled"): False,
    ("UnattendedInstallConfig", "provisioning.wipe"): True,
    ("KubeControllerManagerConfig", "enabled"): True,
    ("KubeCoreDNSConfig", "enabled"): True,
    ("KubeProxyConfig", "enabled"): True,
    ("KubeSchedulerConfig", "enabled"): True,
    ("LinkConfig", "up"): True,
    ("BondConfig", "up"): True,
    ("BridgeConfig", "up"): True,
    ("DummyLinkConfig", "up"): True,
    ("VLANConfig", "up"): True,
    ("VLANConfig", "vlanMode"): "802.1q",
    ("UserVolumeConfig", "volumeType"): "partition",
}


@dataclass(frozen=True)
class Difference:
    """One path that differs. document: `Kind`, `Kind/name` or `v1alpha1`; path: below it, "" for a whole document.

    wanted and running: plain values, None where there is none. secret: shown as a fingerprint only.
    """

    document: str
    path: str
    wanted: Any = field(repr=False)
    running: Any = field(repr=False)
    secret: bool = False

    @property
    def where(self) -> str:
        return without_url_passwords(": ".join(part for part in (self.document, self.path) if part))

    def shown(self, value: Any) -> str:
        """A value as it may be shown: a secret as its fingerprint, a long text cut."""
        if value is None:
            return "(absent)"
        if self.secret:
            return fingerprint(str(value))
        text = value if isinstance(value, str) else str(value)
        return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters, {fingerprint(text)})"

    @property
    def sentence(self) -> str:
        return f"{self.where}: {self.shown(self.running)} -> {self.shown(self.wanted)}"


def differences(wanted: Config, running: Config) -> tuple[Difference, ...]:
    """What would change if `wanted` replaced `running`, in the order of the wanted documents, then those that would go."""
    left = {document.id: document for document in wanted.documents}
    right = {document.id: document for document in running.documents}
    found: list[Difference] = []
    for identity in (*left, *(other for other in right if other not in left)):
        one, other = left.get(identity), right.get(identity)
        kind = (one or other or wanted.documents[0]).kind.name
        found.extend(_document(identity, kind, flat(one) if one else None, flat(other) if other else None))
    return tuple(found)


def equal(wanted: Config, running: Config) -> bool:
    """Whether nothing differs in meaning."""
    return not differences(wanted, running)


def flat(document: Document) -> dict[str, Any]:
    """Every leaf of a document by its dotted path, normal form, without empty values and defaults."""
    kind = document.kind.name
    result: dict[str, Any] = {}
    for path, value in _leaves(document.kind.struct.output(document.data), ""):
        value = _normal(value)
        if value in ("", None) or DEFAULTS.get((kind, path), _NOTHING) == value:
            continue
        result[path] = value
    return result


_NOTHING = object()


def _normal(value: Any) -> Any:
    """A whole number is the same however it is written: Talos writes 3.0 as 3."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value) if isinstance(value, str) else value


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            # extraArgs: one value and a list of one value say the same
            single = isinstance(inner, list) and len(inner) == 1 and path.rsplit(".", 1)[-1] == "extraArgs"
            yield from _leaves(inner[0] if single else inner, f"{path}.{path_key(key)}" if path else path_key(key))
        if not value and _means_something(path):
            yield path, "{}"
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{index}")
    else:
        # an empty label or an empty argument is a setting, an empty field is none
        yield path, '""' if value in ("", None) and _is_map_entry(path) else value


def path_key(key: str) -> str:
    return f"[{key}]" if "." in key else key


_MAPS = (
    "nodeLabels", "nodeAnnotations", "nodeTaints", "labels", "annotations", "taints", "extraArgs", "sysctls", "sysfs", "env", "params", "variables",
)
_PRESENT_MEANS = ("nodeID", "noop")


def _is_map_entry(path: str) -> bool:
    head = path.split(".[", 1)[0] if path.endswith("]") else path.rpartition(".")[0]
    return head.rsplit(".", 1)[-1] in _MAPS


def _means_something(path: str) -> bool:
    return path.rsplit(".", 1)[-1] in _PRESENT_MEANS


def _document(identity: str, kind: str, left: dict[str, Any] | None, right: dict[str, Any] | None) -> Iterator[Difference]:
    if not left and not right and (left is None or right is None):
        # a document without any setting may still mean something (KubeNodeConfig); its coming and going is shown
        yield Difference(identity, "", "present" if left is not None else None, "present" if right is not None else None)
        return
    one, other = left or {}, right or {}
    for path in (*one, *(path for path in other if path not in one)):
        before, after = other.get(path), one.get(path)
        if before != after or type(before) is not type(after):
            secret = sensitive("" if kind == LEGACY else kind, tuple(path.replace("[", "").replace("]", "").split(".")))
            yield Difference(identity, path, after, before, secret)
