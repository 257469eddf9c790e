# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was read from a node, as values. Sizes are bytes, times UTC seconds since the epoch unless said.

Design sections 5 and 6; field meanings from Talos's resources (Disks, LinkStatuses, SystemInformations …).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .endpoint import PROBE_KINDS, Certificate, Endpoint, Probe
from .identity import Identity
from .observed import Absent, Observed

#: What is read elsewhere as observations too.
__all__ = ["PROBE_KINDS", "Certificate", "Endpoint", "Probe"]


#: `Disk.contents` where the volumes of the node could not be read: such a disk is never taken for a blank one.
CONTENTS_UNKNOWN = ("unknown",)


@dataclass(frozen=True)
class Disk:
    """One block device. `usb`, `readonly`, `boot_medium` and `cdrom` make it unfit unless named outright (section 7)."""

    name: str
    path: str
    size: int
    wwid: str = ""
    serial: str = ""
    model: str = ""
    uuid: str = ""
    bus_path: str = ""
    transport: str = ""
    modalias: str = ""
    subsystem: str = ""
    rotational: bool = False
    readonly: bool = False
    cdrom: bool = False
    usb: bool = False
    boot_medium: bool = False
    symlinks: tuple[str, ...] = ()
    #: What is on it: partition labels and file systems, e.g. ("STATE xfs", "EPHEMERAL xfs") or ("ext4",); () is blank.
    contents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """One network link; `permanent_mac` is '' where the kernel tells none; `physical` as section 6 means it."""

    name: str
    permanent_mac: str = ""
    mac: str = ""
    physical: bool = False
    up: bool = False
    speed_megabits: int = 0
    bus_path: str = ""
    driver: str = ""


@dataclass(frozen=True)
class Partition:
    """A discovered volume: a Talos partition label tells whether a disk was wiped (section 12)."""

    device: str
    parent: str
    label: str
    filesystem: str = ""
    size: int = 0


#: Talos's stages, as `TalosMachine.status.stage` spells them.
STAGES = ("unknown", "booting", "installing", "maintenance", "running", "rebooting", "shuttingDown", "resetting", "upgrading")


@dataclass(frozen=True)
class StageReading:
    """MachineStatus, with v1.14's unattended install beside it ('' where there is none)."""

    stage: str
    ready: bool = False
    unmet: tuple[str, ...] = ()
    unattended_install: str = ""


@dataclass(frozen=True)
class NodeFacts:
    """Everything that discovery and provisioning read of a node, over one connection."""

    endpoint: Endpoint
    certificate: Certificate
    identity: Identity
    stage: Observed[StageReading] = field(default_factory=Absent)
    disks: Observed[tuple[Disk, ...]] = field(default_factory=Absent)
    links: Observed[tuple[Link, ...]] = field(default_factory=Absent)
    partitions: Observed[tuple[Partition, ...]] = field(default_factory=Absent)
    talos_version: str = ""
    secure_boot: Observed[bool] = field(default_factory=Absent)
    hostname: str = ""


@dataclass(frozen=True)
class ApplyReply:
    """What ApplyConfiguration answered; says nothing about what follows (Talos fact)."""

    mode: str
    details: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class EtcdMember:
    """One etcd member as a node lists it; `id` as 16 hex digits; a member that never started has no name."""

    id: str
    name: str
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    learner: bool = False


@dataclass(frozen=True)
class EtcdStatus:
    """One member's own view; `leader` '' means that it sees none."""

    member_id: str
    leader: str
    learner: bool = False
    raft_index: int = 0
    db_size: int = 0
    errors: tuple[str, ...] = ()
    db_size_in_use: int = 0


@dataclass(frozen=True)
class EtcdAlarm:
    """An alarm that one member has raised: `NOSPACE` or `CORRUPT`."""

    member_id: str
    kind: str


@dataclass(frozen=True)
class ServiceState:
    """One Talos service: state as Talos spells it; `healthy` None where the health is not known yet."""

    id: str
    state: str
    healthy: bool | None = None
    message: str = ""


@dataclass(frozen=True)
class NodePlace:
    """A Kubernetes Node: where its machine is (its InternalIPs), the systemUUID that its kubelet read ('' for none), and how it stands.

    `labelled`: its label kubernetes.io/hostname. `unschedulable`: it is cordoned. `cordoned_at` and `reset_at` are when this product
    cordoned it, or reset its machine; '' where it did not.
    """

    name: str
    addresses: tuple[str, ...] = ()
    system_uuid: str = ""
    uid: str = ""
    labelled: str = ""
    ready: bool = False
    unschedulable: bool = False
    cordoned_at: str = ""
    reset_at: str = ""
