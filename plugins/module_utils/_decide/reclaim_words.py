# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a reclaim: what is asked, what the inspection of a foreign node gave, and the two steps (design section 16)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .._model.identity import Identity
from .._model.observations import Disk, EtcdMember, EtcdStatus, NodeFacts, Partition, ServiceState, StageReading
from .._model.observed import Absent, Observed
from .._model.plan import Step, Target
from .._model.records import Broken, Record


@dataclass(frozen=True)
class ReclaimWish:
    """What a person asked for: the machine at `address` goes to `cluster`. `confirm`: its UUID as they typed it."""

    address: str
    cluster: str
    confirm: str = ""
    force_ungraceful: bool = False


@dataclass(frozen=True)
class Owner:
    """Whose a node is, as its own configuration says. `role`: controlplane or worker."""

    cluster_id: str = ""
    cluster_name: str = ""
    endpoint: str = ""
    role: str = ""


@dataclass(frozen=True)
class Managed:
    """A cluster of the store with the id of its bundle. Absent: it has no bundle yet."""

    record: Record
    cluster_id: Observed[str]


@dataclass(frozen=True)
class Inspection:
    """One look at a configured node; each reading is present, absent, or unknown with the reason. `etcd`: what its own member says.
    `others`: what the other members say, by member id."""

    identity: Observed[Identity] = field(default_factory=Absent)
    owner: Observed[Owner] = field(default_factory=Absent)
    stage: Observed[StageReading] = field(default_factory=Absent)
    hostname: Observed[str] = field(default_factory=Absent)
    version: Observed[str] = field(default_factory=Absent)
    boot_id: Observed[str] = field(default_factory=Absent)
    partitions: Observed[tuple[Partition, ...]] = field(default_factory=Absent)
    disks: Observed[tuple[Disk, ...]] = field(default_factory=Absent)
    services: Observed[tuple[ServiceState, ...]] = field(default_factory=Absent)
    etcd: Observed[EtcdStatus] = field(default_factory=Absent)
    members: Observed[tuple[EtcdMember, ...]] = field(default_factory=Absent)
    others: tuple[tuple[str, Observed[EtcdStatus]], ...] = ()


@dataclass(frozen=True)
class Reclaiming:
    """One observation of a machine that is to be reclaimed.

    `cluster`: the record of where it goes. `machines`: those of the whole store. `node`: unknown where the node gave no authenticated
    session. `gone`: etcd members that steps before this one in the same plan take away. `strict`: read under the leases. `listed`:
    whether the address is one of the cluster's `spec.discovery`.
    """

    target: Target
    wish: ReclaimWish
    cluster: Record | None = None
    machines: tuple[Record, ...] = ()
    broken: tuple[Broken, ...] = ()
    managed: tuple[Managed, ...] = ()
    node: Observed[Inspection] = field(default_factory=Absent)
    maintenance: Observed[NodeFacts] = field(default_factory=Absent)
    gone: frozenset[str] = frozenset()
    strict: bool = False
    listed: bool = True


@dataclass(frozen=True)
class ReclaimMachine(Step):
    """Wipe these partitions of a foreign node and restart it into maintenance mode. Reaching that is its success; the call's OK says
    nothing. `graceful`: a control plane leaves its etcd first."""

    action: ClassVar[str] = "ReclaimMachine"
    disruption: ClassVar[str] = "wipe"
    reversible: ClassVar[bool] = False

    machine_uuid: str = ""
    from_cluster: str = ""
    partitions: tuple[str, ...] = ()
    graceful: bool = True


@dataclass(frozen=True)
class RegisterMachine(Step):
    """Write the machine down as pending, as discovery does: a fresh pin, its disks and links."""

    action: ClassVar[str] = "RegisterMachine"

    machine_uuid: str = ""
