# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an operation hands up: the plan, what was done, and how the world looks now (design section 20)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import Failure
from .plan import Plan
from .records import Event, Json, JsonMap, Record, Ref


@dataclass(frozen=True)
class MachineRow:
    """One machine in a result."""

    name: str
    cluster: str = ""
    stage: str = ""
    ready: bool = False
    reason: str = ""
    message: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Transition:
    """A stage or a condition that moved; an effect, not a step."""

    machine: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """One entry of Ansible's `diff`: masked texts or mappings."""

    before: Json
    after: Json
    header: str = ""


@dataclass(frozen=True)
class Outcome:
    """The end of one operation, in both modes. `refused` is a refusal of the one named operation: the task fails."""

    plan: Plan = field(default_factory=Plan)
    executed: tuple[str, ...] = ()
    machines: tuple[MachineRow, ...] = ()
    transitions: tuple[Transition, ...] = ()
    events: tuple[Event, ...] = ()
    blocked: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    requeue_after: float | None = None
    reason: str = ""
    message: str = ""
    refused: bool = False
    #: The steps of the plan were found done, by another run, when their turn came: nothing was changed by this one.
    found_done: bool = False
    interrupted: bool = False
    failure: Failure | None = None
    differences: tuple[Difference, ...] = ()
    #: Records as the plan would leave them: filled in check mode, so that the later tasks of the same check run plan with
    #: them (section 20). `uid` as the store would give it. `would_delete` names the records that would be gone.
    would_be: tuple[Record, ...] = ()
    would_delete: tuple[Ref, ...] = ()
    #: What the module adds under its own keys (e.g. `fingerprint`, `records`); plain data, no secrets.
    extra: JsonMap = field(default_factory=dict)


def refused_by(plan: Plan) -> Outcome:
    """The end of an operation whose plan is refused: the task fails with the first of its refusals. The plan holds at least one."""
    first = plan.refusals[0]
    return Outcome(plan=plan, refused=True, reason=first.reason, message=f"{first.message} {first.hint}".strip())
