# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What discovery decides: its two steps, and the verdict that a result shows (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .._model.endpoint import Endpoint
from .._model.observations import NodeFacts
from .._model.plan import Plan, Step
from .._model.records import Event, Record
from .status_change import StatusChange


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
