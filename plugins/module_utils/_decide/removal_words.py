# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of removals and resets: what is looked at, and the steps (design section 14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .._model.identity import Identity
from .._model.observations import EtcdStatus, NodeFacts, Partition, StageReading
from .._model.observed import Absent, Observed
from .._model.plan import Step, Target
from .._model.records import Broken, Record
from .._model.workloads import Hosting
from .etcd_words import EtcdView

#: The condition that holds every send to a machine that is being removed, and its reasons (design section 3).
REMOVAL, REMOVING, DEAD_REMOVAL, BLOCKED = "Removal", "Removing", "DeadMemberRemoval", "RemovalBlocked"


@dataclass(frozen=True)
class MemberLook:
    """Whether a member's machine answers for it: EtcdStatus asked at its own address (`direct`), the same call through a healthy sibling that
    went on answering itself (`through`), and whether its Kubernetes Node is Ready. Absent is what was not asked."""

    direct: Observed[EtcdStatus] = field(default_factory=Absent)
    through: Observed[EtcdStatus] = field(default_factory=Absent)
    node_ready: Observed[bool] = field(default_factory=Absent)


@dataclass(frozen=True)
class AliveNode:
    """A node that answered with authentication. `etcd` is Absent on a worker."""

    identity: Identity
    stage: StageReading
    partitions: Observed[tuple[Partition, ...]]
    boot_id: Observed[str]
    etcd: Observed[EtcdStatus] = field(default_factory=Absent)


#: Kinds of local volumes: a claim on the node's disks, a folder of the node, an emptyDir.
CLAIM, FOLDER, SCRATCH = "claim", "folder", "scratch"


@dataclass(frozen=True)
class LocalVolume:
    """Data on the disks of one node. `claim`: the claim with its namespace, the folder's path, or the emptyDir's name. `pod` has it, '' for
    none now."""

    claim: str
    pod: str
    kind: str = CLAIM


@dataclass(frozen=True)
class RemovalWish:
    """What a person asked for. `record`: the record goes too, which a reset alone keeps."""

    confirm: str
    record: bool = True
    skip_drain: bool = False
    accept_data_loss: bool = False
    override: bool = False


@dataclass(frozen=True)
class Leaving:
    """One observation of a machine that is to go. `machines` are all of its cluster.

    `etcd`: as the other control planes tell it, None where nobody's etcd counts on the machine. `hosting`: None where this run cannot ask
    Kubernetes. `strict`: read under the lock, where nothing is taken for granted.
    """

    target: Target
    wish: RemovalWish
    machine: Record | None
    cluster: Record | None = None
    machines: tuple[Record, ...] = ()
    broken: Broken | None = None
    etcd: Observed[EtcdView] | None = None
    look: MemberLook = field(default_factory=MemberLook)
    node: Observed[AliveNode] = field(default_factory=Absent)
    maintenance: Observed[NodeFacts] = field(default_factory=Absent)
    hosting: Observed[Hosting] | None = None
    strict: bool = False


@dataclass(frozen=True)
class EvacuateStorage(Step):
    """Agree to the loss of the data that pods have on the node's own disks. Nothing is moved. `volumes`: claims and folders; what pods have in
    scratch volumes comes and goes with them."""

    action: ClassVar[str] = "EvacuateStorage"
    reversible: ClassVar[bool] = False

    volumes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DrainNode(Step):
    """Cordon and drain the Kubernetes Node."""

    action: ClassVar[str] = "DrainNode"
    disruption: ClassVar[str] = "drain"

    node: str = ""


@dataclass(frozen=True)
class DeleteNode(Step):
    """Delete the Kubernetes Node of a machine that is none any more."""

    action: ClassVar[str] = "DeleteNode"
    reversible: ClassVar[bool] = False

    node: str = ""


@dataclass(frozen=True)
class LeaveEtcd(Step):
    """The control plane's own member leaves etcd, and its data is deleted."""

    action: ClassVar[str] = "LeaveEtcd"
    disruption: ClassVar[str] = "wipe"
    reversible: ClassVar[bool] = False

    member: str = ""


@dataclass(frozen=True)
class ResetMachine(Step):
    """Wipe these partitions and restart into maintenance mode. Reaching that is its success; the call's OK says nothing."""

    action: ClassVar[str] = "ResetMachine"
    disruption: ClassVar[str] = "wipe"
    reversible: ClassVar[bool] = False

    partitions: tuple[str, ...] = ()
    machine_uuid: str = ""
