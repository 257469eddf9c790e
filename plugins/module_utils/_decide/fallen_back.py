# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told of a machine that fell back to maintenance mode: its plan, its condition, its row (design section 12)."""

from __future__ import annotations

from dataclasses import dataclass

from .._model.plan import Plan, Warn
from .._model.records import Condition
from .conditions import Status, list_at_status, refusal_conditions, with_condition
from .no_answer import with_left_over_stored
from .provisioning_words import Follow, Refused, Remove, Send, Unchanged, Verdict

#: Refusals that end by themselves: somebody else is at it, or the node is on its way up.
_PASSING = frozenset({"LockHeld", "SendingUnconfirmed", "NotInMaintenance", "RecordChanged"})


@dataclass(frozen=True)
class Told:
    """A verdict for people. `reason` is of the closed list; `settled`: nothing more happens without a person or a change of the world."""

    plan: Plan
    reason: str
    message: str
    settled: bool = False


def told_of(verdict: Verdict) -> Told:
    """The plan of a verdict, and its words."""
    if isinstance(verdict, Refused):
        refusal = verdict.refusal
        warnings = (Warn(refusal.target, refusal.message, refusal.rule),) if refusal.reason == "StateNotFound" else ()
        return Told(Plan(refusals=(refusal,), warnings=warnings), refusal.reason, f"{refusal.message} {refusal.hint}".strip(),
                    refusal.reason not in _PASSING)
    if isinstance(verdict, Remove):
        return Told(Plan((verdict.step, verdict.send), warnings=verdict.warnings), "StaleEtcdMember", _words(verdict.step.why))
    if isinstance(verdict, Send):
        return Told(Plan((verdict.step,), warnings=verdict.warnings), "AwaitingInstall", _words(verdict.step.why))
    if isinstance(verdict, Follow):
        return Told(Plan(), "ConfigStored", verdict.message)
    if isinstance(verdict, Unchanged):
        return Told(Plan(warnings=verdict.warnings), "", verdict.message, True)
    raise ValueError(f"no end of a look: {type(verdict).__name__}")


def _words(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def with_told(status: Status, told: Told, generation: int, now: float) -> Status:
    """The status of the machine after the look: it is in maintenance mode, and why nothing or what is sent."""
    if not told.reason:
        return status
    status = {**status, "stage": "maintenance", "stageObserved": False}
    conditions = refusal_conditions(told.reason, told.message, generation)
    for condition in conditions or refusal_conditions("ReprovisionBlocked", told.message, generation):
        status = with_condition(status, condition, now)
    return status


def with_good_read(status: Status, generation: int, now: float) -> Status:
    """The status of a converged machine that answered with authentication: whatever was seen in maintenance mode is over. A send whose
    answer was lost had been stored (section 9, step 10), and the machine is followed."""
    if status.get("sending"):
        return with_left_over_stored(status)
    if "wipeSeen" in status:
        status = {key: value for key, value in status.items() if key != "wipeSeen"}
    if any(entry.get("type") == "Provisioned" and entry.get("status") == "False" for entry in list_at_status(status)):
        status = with_condition(status, Condition("Provisioned", "True", "NodeJoined", "The node runs and is a part of its cluster.", generation), now)
    return status
