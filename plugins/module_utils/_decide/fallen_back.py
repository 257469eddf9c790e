# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told of a machine that fell back to maintenance mode: its plan, its condition, its row (design section 12)."""

from __future__ import annotations

from dataclasses import dataclass

from .._model.plan import Plan, Warn
from .conditions import Status, refusal_conditions, with_condition
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
