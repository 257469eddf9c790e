# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a change needs a reboot, by the Talos version that the node runs (reference: apply modes and reboots).

Talos 1.12 and 1.13 look at the legacy document only, and take a list of its sections at once; 1.14 never asks for a reboot. A host
name counts as reboot-required on every version (design section 8).
"""
from __future__ import annotations

from dataclasses import dataclass

from .compare import Difference, differences
from .contract import minor
from .documents import Config
from .schema import LEGACY

_AT_ONCE_MACHINE = (
    "ca", "acceptedCAs", "time", "certSANs", "install", "network", "sysfs", "sysctls", "logging", "controlPlane", "kubelet", "kernel", "registries",
    "pods", "seccompProfiles", "nodeAnnotations", "nodeLabels", "nodeTaints",
)
_AT_ONCE_FEATURES = ("kubernetesTalosAPIAccess", "kubePrism", "hostDNS", "imageCache", "nodeAddressSortAlgorithm")
_HOST_NAME = {(LEGACY, "machine.network.hostname"), ("HostnameConfig", "hostname"), ("HostnameConfig", "auto")}
# Applied at once, but without effect until a service or the node restarts.
_LATER = (
    (LEGACY, "cluster.etcd"), (LEGACY, "machine.env"), (LEGACY, "machine.kernel"), ("EnvironmentConfig", ""), ("KernelModuleConfig", ""),
    ("VolumeConfig", "encryption"), ("UserVolumeConfig", "encryption"), ("RawVolumeConfig", "encryption"), ("SwapVolumeConfig", "encryption"),
)
_NEVER = ((LEGACY, "machine.install"), ("UnattendedInstallConfig", ""))


@dataclass(frozen=True)
class Effect:
    """reboot: what Talos takes only with a reboot. later: what it takes at once, but what has effect only after a restart of etcd, of
    services or of the node. never: install settings, which an installed node does not look at. Each in order of the differences.
    """

    reboot: tuple[Difference, ...]
    later: tuple[Difference, ...]
    never: tuple[Difference, ...]

    @property
    def needs_reboot(self) -> bool:
        return bool(self.reboot)


def effect(running: Config, wanted: Config, node_version: str) -> Effect:
    """What the change from running to wanted needs on a node of that Talos version."""
    version = minor(node_version)
    found = differences(wanted, running)
    reboot = tuple(difference for difference in found if _reboots(difference, version))
    later = tuple(difference for difference in found if difference not in reboot and _matches(difference, _LATER))
    never = tuple(difference for difference in found if difference not in reboot and _matches(difference, _NEVER))
    return Effect(reboot, later, never)


def _kind(difference: Difference) -> str:
    return difference.document.split("/", 1)[0]


def _matches(difference: Difference, places: tuple[tuple[str, str], ...]) -> bool:
    return any(
        _kind(difference) == kind and (not path or difference.path == path or difference.path.startswith(f"{path}.")) for kind, path in places
    )


def _reboots(difference: Difference, version: str) -> bool:
    if (_kind(difference), difference.path) in _HOST_NAME:
        # `auto` alone (stable to off without a name) changes the name, too
        return True
    if _kind(difference) != LEGACY or version not in ("1.12", "1.13"):
        return False
    path = difference.path.split(".")
    if path[0] in ("debug", "cluster"):
        return False
    if path[0] == "version":
        return False  # does not count as set
    if path[0] == "machine" and len(path) > 1:
        if path[1] == "features":
            return len(path) < 3 or path[2] not in _AT_ONCE_FEATURES
        return path[1] not in _AT_ONCE_MACHINE
    return True
