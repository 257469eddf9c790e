# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of adoption: what a person wants, what was read, what each node comes to, and the steps (design section 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from .._machineconfig.capture import Atom
from .._machineconfig.documents import Config
from .._machineconfig.secrets import Bundle
from .._model.observations import NodeFacts
from .._model.observed import Absent, Observed
from .._model.plan import Plan, Step
from .._model.ports import Actor
from .._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Broken, Json, Record


@dataclass(frozen=True)
class AdoptWish:
    """What a person wants. `add`: machines for a cluster that is managed already. `imported`: a bundle that is brought, or why it cannot be
    used; `faults`: what is wrong with it. `bundle`: the name of the bundle in the store, '' for what the cluster's record says, else the
    cluster's name. `count`: of control planes, 0 for as many as there are. `consent`: to what is of class B; a saved plan is one, too.
    `release`: let machines go whose configuration is that of the records; else they stay held. `network`: `spec.cni` of a new cluster, empty
    for what the configurations say.
    """

    cluster: str
    addresses: tuple[str, ...] = ()
    add: bool = False
    imported: Observed[Bundle] = Absent()
    faults: tuple[str, ...] = ()
    bundle: str = ""
    count: int = 0
    kubernetes_version: str = ""
    consent: bool = False
    release: bool = True
    allow_loopback: bool = False
    actor: Actor = field(default_factory=lambda: Actor("", ""))
    network: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class LiveNode:
    """A node as it was read with authentication. `text`: what it runs; `kept`: what it keeps for its next boot, None where that is the same."""

    address: str
    facts: NodeFacts
    text: bytes = field(repr=False)
    kept: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AdoptSeen:
    """What was read. `nodes`: by address as it was named. `bundle`: the one in the store. `machines` and `patches`: all of the store."""

    cluster: Record | None = None
    broken: tuple[Broken, ...] = ()
    machines: tuple[Record, ...] = ()
    patches: tuple[Record, ...] = ()
    bundle: Observed[Bundle] = Absent()
    nodes: tuple[tuple[str, Observed[LiveNode]], ...] = ()
    #: How many members etcd has, where a control plane was asked.
    members: Observed[int] = Absent()


@dataclass(frozen=True)
class Blocked:
    """Why a machine is not adopted: class C, with its path and what to do. `path`: '' where it is about the whole machine."""

    path: str
    what: str
    hint: str
    rule: str
    reason: str = "ConfigInvalid"

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.what}" if self.path else self.what


@dataclass(frozen=True)
class Member:
    """A node on its way to be adopted. `config`: what it runs, by the schema of the contract. `spec`: of its record. `record`: the one that is
    there. `atoms`: class A. `owned`: the paths of class B, whose values are kept by patches as well. `blocked`: class C.
    """

    node: LiveNode
    name: str
    role: str
    config: Config | None = field(default=None, repr=False)
    spec: Mapping[str, Json] = field(default_factory=dict)
    record: Record | None = None
    atoms: tuple[Atom, ...] = ()
    owned: tuple[Atom, ...] = ()
    blocked: tuple[Blocked, ...] = ()

    @property
    def uuid(self) -> str:
        return self.node.facts.identity.uuid

    @property
    def kept(self) -> tuple[Atom, ...]:
        """What its patches have to hold."""
        return (*self.atoms, *self.owned)


@dataclass(frozen=True)
class KeepBundle(Step):
    """Put the cluster's secrets into the store, for its owner only. `authority` tells them apart without telling them."""

    action: ClassVar[str] = "StoreSecrets"

    authority: str = ""
    bundle: Bundle | None = field(default=None, repr=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class AdoptCluster(Step):
    """Create the record of the cluster, which says that it was bootstrapped."""

    action: ClassVar[str] = "AdoptCluster"

    settings: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "digest"})
    record: Record = field(default_factory=lambda: Record(CLUSTER, ""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class AdoptPatch(Step):
    """Write a patch that holds what the nodes have beside what the records say."""

    action: ClassVar[str] = "AdoptPatch"

    settings: Mapping[str, Json] = field(default_factory=dict, repr=False, metadata={"plan": "digest"})
    before: Record | None = field(default=None, metadata={"plan": "skip"})
    record: Record = field(default_factory=lambda: Record(CONFIG_PATCH, ""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class AdoptMachine(Step):
    """Create the record of a machine, or complete the pending one: approved, and held until it is released."""

    action: ClassVar[str] = "AdoptMachine"

    settings: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "digest"})
    before: Record | None = field(default=None, metadata={"plan": "skip"})
    record: Record = field(default_factory=lambda: Record(MACHINE, ""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class ReleaseMachine(Step):
    """Let a held machine go, once a reading made for it shows no difference. `running`: SHA-256 of what it ran when this was planned."""

    action: ClassVar[str] = "ReleaseMachine"

    running: str = ""
    at: str = field(default="", metadata={"plan": "skip"})


@dataclass(frozen=True)
class Adoption:
    """The plan, and what each node comes to. `silent`: addresses that gave no answer, and why."""

    plan: Plan
    members: tuple[Member, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    silent: tuple[tuple[str, str], ...] = ()
    cluster: Record | None = None
