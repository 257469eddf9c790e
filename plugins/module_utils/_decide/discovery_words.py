# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of discovery: what is asked, which addresses are probed, and what was observed (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._model.endpoint import Endpoint, Probe
from .._model.observed import Absent, Observed
from .._model.records import Broken, Event, Record

if TYPE_CHECKING:
    from .._model.observations import NodeFacts

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
