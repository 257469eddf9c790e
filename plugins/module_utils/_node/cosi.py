# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of a node over the COSI State API: where each lives, and Get and List with absent and unknown kept apart.

A valid type in the wrong namespace, or in another case, answers OK with nothing (Talos fact), so an empty answer proves
absence only because type and namespace stand here as Talos registers them, and a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .caller import Caller
from .calls import STATE, call
from .failures import again
from .messages import message_class, method

try:
    from google.protobuf.message import DecodeError
except ImportError:
    DecodeError = ValueError  # type: ignore[assignment,misc]


@dataclass(frozen=True)
class Kind:
    """One resource type: `spec` is the full name of its message; `id` '' where there are many."""

    type: str
    namespace: str
    spec: str
    id: str = ""


_DEFINITIONS = "talos.resource.definitions."
SYSTEM_INFORMATION = Kind("SystemInformations.hardware.talos.dev", "hardware", _DEFINITIONS + "hardware.SystemInformationSpec",
                          "systeminformation")
LINKS = Kind("LinkStatuses.net.talos.dev", "network", _DEFINITIONS + "network.LinkStatusSpec")
HOSTNAME = Kind("HostnameStatuses.net.talos.dev", "network", _DEFINITIONS + "network.HostnameStatusSpec", "hostname")
DISKS = Kind("Disks.block.talos.dev", "runtime", _DEFINITIONS + "block.DiskSpec")
SYSTEM_DISK = Kind("SystemDisks.block.talos.dev", "runtime", _DEFINITIONS + "block.SystemDiskSpec", "system-disk")
DISCOVERED_VOLUMES = Kind("DiscoveredVolumes.block.talos.dev", "runtime", _DEFINITIONS + "block.DiscoveredVolumeSpec")
VOLUMES = Kind("VolumeStatuses.block.talos.dev", "runtime", _DEFINITIONS + "block.VolumeStatusSpec")
MACHINE_STATUS = Kind("MachineStatuses.runtime.talos.dev", "runtime", _DEFINITIONS + "runtime.MachineStatusSpec", "machine")
SECURITY_STATE = Kind("SecurityStates.talos.dev", "runtime", _DEFINITIONS + "runtime.SecurityStateSpec", "securitystate")
VERSION = Kind("Versions.runtime.talos.dev", "runtime", _DEFINITIONS + "runtime.VersionSpec", "version")
BOOT_ID = Kind("BootIDs.runtime.talos.dev", "runtime", _DEFINITIONS + "runtime.BootIDSpec", "boot-id")
UNATTENDED_INSTALL = Kind("UnattendedInstallStatuses.runtime.talos.dev", "runtime", _DEFINITIONS + "runtime.UnattendedInstallStatusSpec",
                          "unattended-install")
MACHINE_TYPE = Kind("MachineTypes.config.talos.dev", "config", "resource.config.MachineTypeSpec", "machine-type")
MACHINE_CONFIG = Kind("MachineConfigs.config.talos.dev", "config", "resource.config.MachineConfigSpec", "v1alpha1")


async def get(caller: Caller, kind: Kind, identity: str = "") -> Observed[Any]:
    """The spec of one resource. Never raises for what the node says; the reason then is that of `Unknown`."""
    wanted = identity or kind.id
    request = method(STATE, "Get").request(namespace=kind.namespace, type=kind.type, id=wanted)
    source = f"{kind.type}/{wanted}"
    try:
        answers = await caller.send(call(STATE, "Get"), request)
        return Present(_spec(kind, answers[0].resource), source)
    except TalosError as error:
        return _not_there(error, source)
    except (DecodeError, ValueError):
        return Unknown("AnswerInvalid", f"The resource {source} cannot be read.", source)


async def items(caller: Caller, kind: Kind) -> Observed[tuple[tuple[str, Any], ...]]:
    """All resources of a type as pairs of id and spec, sorted by id; `Absent` when there are none."""
    request = method(STATE, "List").request(namespace=kind.namespace, type=kind.type)
    try:
        answers = await caller.send(call(STATE, "List"), request)
        found = [(answer.resource.metadata.id, _spec(kind, answer.resource)) for answer in answers]
    except TalosError as error:
        return _not_there(error, kind.type)
    except (DecodeError, ValueError):
        return Unknown("AnswerInvalid", f"The resources {kind.type} cannot be read.", kind.type)
    if not found:
        return Absent(kind.type)
    return Present(tuple(sorted(found, key=lambda item: item[0])), kind.type)


def needed(observed: Observed[Any], caller: Caller) -> Any:
    """The value, None when absent; raises a TalosError for what is unknown."""
    if isinstance(observed, Unknown):
        raise again(observed.reason, caller.node, observed.message)
    return observed.value if isinstance(observed, Present) else None


def _spec(kind: Kind, resource: Any) -> Any:
    return message_class(kind.spec).FromString(resource.spec.proto_spec)


def _not_there(error: TalosError, source: str) -> Observed[Any]:
    """NOT_FOUND is absent, and so is a type that this version of Talos does not have: it refuses that one with
    PERMISSION_DENIED and this very text, to an admin too."""
    if error.reason == "NotFound":
        return Absent(source)
    if error.reason == "PermissionDenied" and error.detail.startswith("resource type ") and error.detail.endswith(" is not supported"):
        return Absent(source)
    return Unknown(error.reason, error.text, source)
