# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RPCs of each Talos version: which exist, who may call them, which of them write.

Roles are those of talos-api.md 2.4; a method without a rule is for admins only. A method that a version does not have is
UNIMPLEMENTED for everybody, before any role is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

ADMIN, OPERATOR, READER = "os:admin", "os:operator", "os:reader"
ETCD_BACKUP, META_WRITER, IMPERSONATOR = "os:etcd:backup", "os:meta:writer", "os:impersonator"

_ADMIN = frozenset((ADMIN,))
_OPERATOR = frozenset((ADMIN, OPERATOR))
_READER = frozenset((ADMIN, OPERATOR, READER))
_MAINTENANCE = frozenset((ADMIN, READER))  # the handler refuses readers outside maintenance mode
_ETCD = frozenset((ADMIN, OPERATOR, READER, ETCD_BACKUP))
_SNAPSHOT = frozenset((ADMIN, OPERATOR, ETCD_BACKUP))
_META = frozenset((ADMIN, META_WRITER))

NOT_AUTHORIZED = "not authorized"


@dataclass(frozen=True)
class Rpc:
    """One RPC: the roles that may call it, whether it changes anything, the versions that have it, how it streams."""

    roles: frozenset[str]
    write: bool = False
    first: int = 12
    last: int = 99
    kind: str = "unary"


def _table() -> dict[str, dict[str, Rpc]]:
    machine: dict[str, Rpc] = {}

    def add(names: str, rpc: Rpc) -> None:
        machine.update({name: rpc for name in names.split()})

    add(
        "Version Hostname ServiceList CPUInfo CPUFreqStats DiskStats LoadAvg Memory Mounts NetworkDeviceStats Netstat Processes Stats "
        "SystemStat Containers LogsContainers",
        Rpc(_READER),
    )
    add("Events Dmesg Logs List DiskUsage ImageList", Rpc(_READER, kind="server-stream"))
    add("EtcdMemberList EtcdStatus EtcdAlarmList", Rpc(_ETCD))
    add("EtcdSnapshot", Rpc(_SNAPSHOT, kind="server-stream"))
    add("EtcdAlarmDisarm EtcdDefragment ServiceStart ServiceStop ServiceRestart Reboot Shutdown Restart ImagePull", Rpc(_OPERATOR, True))
    add("PacketCapture", Rpc(_OPERATOR, kind="server-stream"))
    add("ApplyConfiguration", Rpc(_MAINTENANCE, True))
    add(
        "Bootstrap Reset Rollback Upgrade EtcdRemoveMemberByID EtcdLeaveCluster EtcdForfeitLeadership EtcdDowngradeEnable EtcdDowngradeCancel",
        Rpc(_ADMIN, True),
    )
    add("EtcdDowngradeValidate GenerateClientConfiguration", Rpc(_ADMIN))
    add("EtcdRecover", Rpc(_ADMIN, True, kind="client-stream"))
    add("Kubeconfig Read Copy", Rpc(_ADMIN, kind="server-stream"))
    add("MetaWrite MetaDelete", Rpc(_META, True))
    add("GenerateConfiguration", Rpc(_ADMIN, last=12))
    state = {
        "Get": Rpc(_READER),
        "List": Rpc(_READER, kind="server-stream"),
        "Watch": Rpc(_READER, kind="server-stream"),
        "Create": Rpc(_ADMIN, True),
        "Update": Rpc(_ADMIN, True),
        "Destroy": Rpc(_ADMIN, True),
        "Teardown": Rpc(_ADMIN, True, first=14),
        "TeardownAndDestroy": Rpc(_ADMIN, True, first=14),
    }
    return {
        "machine.MachineService": machine,
        "cosi.resource.State": state,
        "storage.StorageService": {"Disks": Rpc(_READER), "BlockDeviceWipe": Rpc(_MAINTENANCE, True)},
        "time.TimeService": {"Time": Rpc(_READER), "TimeCheck": Rpc(_READER)},
        "inspect.InspectService": {"ControllerRuntimeDependencies": Rpc(_READER)},
        "cluster.ClusterService": {"HealthCheck": Rpc(_READER, kind="server-stream")},
        "machine.LifecycleService": {
            "Install": Rpc(_ADMIN, True, 13, kind="server-stream"),
            "Upgrade": Rpc(_ADMIN, True, 13, kind="server-stream"),
        },
        "machine.ImageService": {
            "List": Rpc(_READER, first=13, kind="server-stream"),
            "Pull": Rpc(_OPERATOR, True, 13, kind="server-stream"),
            "Import": Rpc(_ADMIN, True, 13, kind="client-stream"),
            "Remove": Rpc(_ADMIN, True, 13),
            "Verify": Rpc(frozenset((ADMIN, "os:image:verifier")), first=13),
        },
        "machine.DebugService": {"ContainerRun": Rpc(_ADMIN, True, 13, kind="bidi-stream")},
        "machine.LVMService": {name: Rpc(_MAINTENANCE, True, 14) for name in ("LogicalVolumeRemove", "VolumeGroupRemove", "PhysicalVolumeRemove")},
        "machine.MDService": {"Destroy": Rpc(_MAINTENANCE, True, 14)},
    }


SERVICES = _table()

# Only these may be asked of several nodes at once.
MULTI_SERVICES = frozenset(
    ("machine.MachineService", "cluster.ClusterService", "inspect.InspectService", "storage.StorageService", "time.TimeService")
)


def find(version: int, service: str, method: str) -> Rpc | None:
    """The RPC as the given minor version has it, or None. `version` is 12, 13 or 14."""
    rpc = SERVICES.get(service, {}).get(method)
    return rpc if rpc is not None and rpc.first <= version <= rpc.last else None


def knows_service(version: int, service: str) -> bool:
    return any(rpc.first <= version <= rpc.last for rpc in SERVICES.get(service, {}).values())


def split(path: str) -> tuple[str, str] | None:
    """Service and method of a path, or None when it has no slash between them."""
    head, slash, method = path.lstrip("/").rpartition("/") if path.count("/") > 1 else ("", "", "")
    return (head, method) if slash else None


def allowed(rpc: Rpc, roles: frozenset[str]) -> bool:
    return bool(rpc.roles & roles)
