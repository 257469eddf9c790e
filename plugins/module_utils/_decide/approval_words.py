# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of an approval: what a person says, what was read, and the two steps (design section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from .._model.observations import NodeFacts
from .._model.observed import Absent, Observed
from .._model.plan import Plan, Step
from .._model.ports import Actor
from .._model.records import Broken, Json, Record
from .status_change import StatusChange


@dataclass(frozen=True)
class Wanted:
    """What a person says of one machine. None, '' or an empty mapping leaves what the record has.

    `cluster` is the one that the machine has to belong to. `install`, `disks` and `network` are parts of a TalosMachine's spec in its own spelling.
    """

    name: str
    state: str = "approved"
    cluster: str = ""
    role: str = ""
    hostname: str = ""
    labels: Mapping[str, str] | None = None
    taints: tuple[Mapping[str, Json], ...] | None = None
    install: Mapping[str, Json] | None = None
    disks: tuple[Mapping[str, Json], ...] | None = None
    network: Mapping[str, Json] | None = None
    fingerprint: str = ""
    accept_weak_identity: bool = False
    override: bool = False
    allow_loopback: bool = False
    settle: float = 5.0


@dataclass(frozen=True)
class Candidate:
    """What was read. `machines` are the records of all clusters. `node` is Absent where the node was not asked, Unknown
    where it is silent; `home` the same for `spec.endpoint`, where the machine was seen somewhere else."""

    machine: Record | None
    actor: Actor
    cluster: Record | None = None
    machines: tuple[Record, ...] = ()
    broken: Broken | None = None
    node: Observed[NodeFacts] = field(default_factory=Absent)
    home: Observed[NodeFacts] = field(default_factory=Absent)


@dataclass(frozen=True)
class ApproveMachine(Step):
    """Write a person's approval with everything that it sets. The fingerprint is the one that is accepted by it."""

    action: ClassVar[str] = "ApproveMachine"

    role: str = ""
    hostname: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "digest"})
    fingerprint: str = ""
    approved_disk: Mapping[str, Json] = field(default_factory=dict)
    weak: bool = False
    before: Record = field(default_factory=lambda: Record("TalosMachine", ""), metadata={"plan": "skip"})
    spec: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "skip"})
    change: StatusChange | None = field(default=None, metadata={"plan": "skip"})
    override: bool = field(default=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class RejectMachine(Step):
    """Write a person's rejection: the machine is left alone until somebody approves it."""

    action: ClassVar[str] = "RejectMachine"

    before: Record = field(default_factory=lambda: Record("TalosMachine", ""), metadata={"plan": "skip"})
    spec: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "skip"})
    change: StatusChange | None = field(default=None, metadata={"plan": "skip"})
    override: bool = field(default=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class Decision:
    """The plan, and the record as it would be after it (the present one where nothing changes).

    `left_over` is what an earlier decision of the same words still owes to the status: a crash came after its spec.
    """

    plan: Plan
    record: Record | None = None
    fingerprint: str = ""
    left_over: StatusChange | None = None
