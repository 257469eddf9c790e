# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of discovery: what is asked and observed, and the two steps (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .._model.observations import Endpoint, NodeFacts, Probe
from .._model.observed import Absent, Observed
from .._model.plan import Plan, Step
from .._model.records import Broken, Event, Record
from .status_change import StatusChange

PENDING_LIMIT = 100


@dataclass(frozen=True)
class KubernetesHost:
    """An address of a Node of the managed cluster; `reset_at` is the marker that this product's own reset left."""

    node: str
    address: str
    reset_at: str = ""


@dataclass(frozen=True)
class Discovery:
    """What is asked for. `named` are the addresses that a person named: these are always probed. `whole` is True where
    everything in the cluster's `spec.discovery` was looked at, and nothing narrower."""

    cluster: str
    named: tuple[Endpoint, ...] = ()
    register: bool = True
    pending_limit: int = PENDING_LIMIT
    whole: bool = False
    settle: float = 5.0


@dataclass(frozen=True)
class Answer:
    """One address of this pass. `facts` where it is in maintenance mode and could be read; else `problem` says why not."""

    probe: Probe
    facts: NodeFacts | None = None
    problem: str = ""


@dataclass(frozen=True)
class World:
    """What was read. `machines` are the records of all clusters; `events` those of the cluster."""

    answers: tuple[Answer, ...]
    cluster: Record | None = None
    machines: tuple[Record, ...] = ()
    broken: tuple[Broken, ...] = ()
    events: tuple[Event, ...] = ()
    hosts: Observed[tuple[KubernetesHost, ...]] = field(default_factory=Absent)


@dataclass(frozen=True)
class Skipped:
    """An address that is not probed, and the rule."""

    endpoint: Endpoint
    rule: str
    message: str


@dataclass(frozen=True)
class Targets:
    """Which addresses a pass probes."""

    probe: tuple[Endpoint, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class CreateMachine(Step):
    """Create a pending machine and pin the certificate that it showed twice."""

    action: ClassVar[str] = "CreateMachine"

    address: str = ""
    uuid: str = ""
    macs: tuple[str, ...] = ()
    fingerprint: str = ""
    weak: bool = False
    record: Record = field(default_factory=lambda: Record("TalosMachine", ""), metadata={"plan": "skip"})
    endpoint: Endpoint = field(default_factory=lambda: Endpoint(""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class RefreshPin(Step):
    """Record the new certificate, disks and links of a pending machine (status only)."""

    action: ClassVar[str] = "RefreshPin"

    fingerprint: str = ""
    previous: str = ""
    change: StatusChange | None = field(default=None, metadata={"plan": "skip"})
    endpoint: Endpoint = field(default_factory=lambda: Endpoint(""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class Found:
    """One answer as the result shows it. `rule` is the row that decided about it."""

    endpoint: Endpoint
    kind: str
    machine: str = ""
    message: str = ""
    rule: str = ""
    weak: bool = False
    facts: NodeFacts | None = None


@dataclass(frozen=True)
class Verdict:
    """The decision: the plan, what else is written down, and what was found. `silent` addresses, where nothing listens, are
    only counted, unless a machine is known there."""

    plan: Plan
    changes: tuple[StatusChange, ...] = ()
    events: tuple[Event, ...] = ()
    found: tuple[Found, ...] = ()
    silent: int = 0
