# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module returns: the same keys on every path (design section 20)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from .._model.errors import Failure, TalosError
from .._model.records import Json
from .plan_text import plan_lines

if TYPE_CHECKING:
    from .._model.outcome import Outcome
    from .._model.plan import Plan, Refusal

#: Above this the events of ansible-runner would drop the whole result.
LARGEST_RESULT = 500_000
#: What is left out first when a result is too large; the rest is small or needed.
_EXPENDABLE = ("diff", "events", "transitions")
_LISTED = (200, 20)
#: So much of a machine's message stays where the messages alone are too much.
_TOLD_OF_A_MACHINE = 100
#: How many refusals of one operation its message tells.
_TOLD = 10
_REASONS = {"blocked": "BlockedMachines", "unreachable": "UnreachableMachines", "drift": "DriftFound"}
_WORDS = {"blocked": "Blocked", "unreachable": "Out of reach", "drift": "Drifted"}
#: `unreachable` is Ansible's own word for a host that cannot be reached: a list there would fail the task.
UNREACHABLE = "unreachable_machines"
_RESULT_KEYS = frozenset({
    "changed", "reason", "msg", "refusals", "plan", "plan_id", "machines", "transitions", "events", "blocked", "unreachable", UNREACHABLE,
    "waiting_for", "requeue_after", "interrupted", "failed", "failure", "truncated", "diff"})


@dataclass(frozen=True)
class Result:
    """The keys for exit_json or fail_json, not yet masked."""

    values: dict[str, Json] = field(default_factory=dict)
    failed: bool = False


def of_outcome(outcome: Outcome, plans: Sequence[Plan], *, check: bool, fail_on: Sequence[str], shown: bool = False,
               held: Callable[[Outcome], Sequence[Refusal]] | None = None) -> Result:
    """The result of an operation that came to its end, refused ones included.

    `shown`: the plan was shown as lines of the task, so the difference does not hold it once more. `held` gives the refusals that
    keep steps of an approved plan from being done: whoever approved them is not told that all is well.
    """
    plan = outcome.plan if outcome.plan.steps or outcome.plan.refusals or not plans else plans[0]
    values = _base(plan)
    refusal = plan.refusals[0] if plan.refusals else None
    told = next((name for name in fail_on if _tripped(name, outcome)), "")
    approved = () if outcome.refused or held is None else tuple(held(outcome))
    failed = outcome.refused or bool(told) or bool(approved)
    values["changed"] = _changed(plan, outcome, check)
    values["reason"] = outcome.reason or (refusal.reason if refusal and outcome.refused else "")
    values["msg"] = outcome.message or (_refusal_text(refusal) if refusal and outcome.refused else "")
    if refusal and outcome.refused and values["msg"] == _refusal_text(refusal):
        # A person mends all of them at once.
        values["msg"] = " ".join(dict.fromkeys(map(_refusal_text, plan.refusals[:_TOLD])))
    if told and not outcome.refused:
        values["reason"] = _REASONS[told]
        listed = outcome.blocked if told == "blocked" else outcome.unreachable if told == "unreachable" else _drifted(outcome)
        values["msg"] = f"{_WORDS[told]}: {', '.join(listed)}. {_why(plan, listed) or outcome.message}".strip()
    if approved:
        values["reason"] = approved[0].reason
        values["msg"] = f"Steps of the approved plan are refused. {' '.join(dict.fromkeys(f'{one.target}: {_refusal_text(one)}' for one in approved[:_TOLD]))}"
    values["refusals"] = [_refusal(one) for one in plan.refusals]
    if not values["msg"]:
        values["msg"] = _summary(plan, outcome, check)
    # Where one named operation is refused, msg and refusals say why; once more beside the machine would only make it harder to read.
    said = {_refusal_text(one) for one in plan.refusals} if outcome.refused else frozenset()
    values["machines"] = [asdict(replace(row, message="") if row.message in said else row) for row in outcome.machines]
    values["transitions"] = [asdict(move) for move in outcome.transitions]
    values["events"] = [{"object": f"{event.ref.kind}/{event.ref.name}", "type": event.type, "reason": event.reason,
                         "message": event.message, "time": event.time} for event in outcome.events]
    values["blocked"] = list(outcome.blocked)
    values[UNREACHABLE] = list(outcome.unreachable)
    values["waiting_for"] = list(outcome.waiting_for)
    values["requeue_after"] = outcome.requeue_after
    values["interrupted"] = outcome.interrupted
    if failed or outcome.failure is not None:
        values["failure"] = _failure(outcome.failure or Failure())
    differences: list[Json] = [{"prepared": "\n".join(plan_lines(plan, check)) + "\n"}] if plan.steps and not shown else []
    for entry in outcome.differences:
        header = entry.header or "record"
        differences.append({"before": entry.before, "after": entry.after, "before_header": header, "after_header": header})
    if differences:
        values["diff"] = differences
    values.update({key: value for key, value in outcome.extra.items() if key not in _RESULT_KEYS})
    return Result(values, failed)


def of_error(error: TalosError, plans: Sequence[Plan], *, changed: bool = False) -> Result:
    """The result of an operation that raised."""
    values = _base(plans[0] if plans else None)
    values["changed"] = changed
    values["reason"] = error.reason
    detail = " ".join(error.detail.split())
    message = error.message + (f" ({detail})" if detail and detail not in error.message else "")
    values["msg"] = f"{message} {error.hint}".strip()
    planned: list[Json] = list(map(_refusal, plans[0].refusals)) if plans else []
    values["refusals"] = [{"kind": "", "target": error.failure.node, "reason": error.reason, "message": message, "hint": error.hint}, *planned]
    values["failure"] = _failure(error.failure)
    values["interrupted"] = error.reason == "Interrupted"
    return Result(values, failed=True)


def fitted(values: Mapping[str, Json]) -> dict[str, Json]:
    """The same result, cut down to what callbacks carry; `truncated` says so. Every machine stays, with its stage and reason."""
    kept = dict(values)
    if _size(kept) <= LARGEST_RESULT:
        return kept
    kept["truncated"] = True
    for key in _EXPENDABLE:
        if key in kept:
            kept[key] = [] if key != "diff" else {"prepared": "The difference is too large to be shown.\n"}
        if _size(kept) <= LARGEST_RESULT:
            return kept
    for left in (*_LISTED, 0):
        for key, value in sorted(kept.items(), key=lambda item: -_size(item[1])):
            if isinstance(value, list) and key != "machines":
                kept[key] = value[:left]
            elif isinstance(value, (dict, str)) and key not in ("failure", "diff"):
                kept[key] = value[:10_000] if isinstance(value, str) else {}
            if _size(kept) <= LARGEST_RESULT:
                return kept
    for longest in (_TOLD_OF_A_MACHINE, 0):
        machines = kept.get("machines")
        if isinstance(machines, list):
            kept["machines"] = [{**row, "message": str(row.get("message") or "")[:longest]} if isinstance(row, dict) else row for row in machines]
        if _size(kept) <= LARGEST_RESULT:
            return kept
    return {key: value for key, value in kept.items() if _size(value) < LARGEST_RESULT // 20}


def _size(value: object) -> int:
    return len(json.dumps(value, default=str))


def _base(plan: Plan | None) -> dict[str, Json]:
    """Every key, for a plan or for a task that did not come as far as one."""
    return {
        "changed": False, "reason": "", "msg": "", "refusals": [], "plan": [step.describe() for step in plan.steps] if plan else [],
        "plan_id": plan.id if plan else "",
        "machines": [], "transitions": [], "events": [], "blocked": [], UNREACHABLE: [], "waiting_for": [],
        "requeue_after": None, "interrupted": False,
    }


def _failure(failure: Failure) -> Json:
    return dict(asdict(failure))


def _changed(plan: Plan, outcome: Outcome, check: bool) -> bool:
    """Whether the plan has a step (design section 20); of a step that this run was kept from, whether it was done."""
    if check:
        return plan.changed and not outcome.refused and not outcome.found_done
    if outcome.refused or outcome.interrupted:
        return bool(outcome.executed)
    kept = {str(refusal.target) for refusal in plan.refusals}
    return not outcome.found_done and any(step.id in outcome.executed or str(step.target) not in kept for step in plan.steps)


def _refusal(refusal: Refusal) -> Json:
    return {"kind": refusal.target.kind, "target": str(refusal.target), "reason": refusal.reason, "message": refusal.message, "hint": refusal.hint}


def _refusal_text(refusal: Refusal) -> str:
    return f"{refusal.message} {refusal.hint}".strip()


def _why(plan: Plan, machines: Sequence[Json]) -> str:
    """The refusals of these machines, each text once."""
    return " ".join(dict.fromkeys(_refusal_text(refusal) for refusal in plan.refusals if refusal.target.name in machines))


def _tripped(name: str, outcome: Outcome) -> bool:
    if name == "blocked":
        return bool(outcome.blocked)
    if name == "unreachable":
        return bool(outcome.unreachable)
    return bool(_drifted(outcome))


def _drifted(outcome: Outcome) -> list[str]:
    return [row.name for row in outcome.machines if row.reason == "Drifted"]


def _summary(plan: Plan, outcome: Outcome, check: bool) -> str:
    """What was done, and what was not and why not: nobody reads "nothing to do" where everything is held."""
    parts = [f"{word}: {_some(names)}" for word, names in (("held", outcome.blocked), ("out of reach", outcome.unreachable)) if names]
    if not plan.steps:
        idle = "Nothing is done" if parts else "Nothing to do"
        first = f"{idle} now; waiting for {', '.join(outcome.waiting_for)}" if outcome.waiting_for else idle
    else:
        count = "1 step" if len(plan.steps) == 1 else f"{len(plan.steps)} steps"
        first = f"{count} to do" if check else f"{len(outcome.executed)} of {count} done"
    return "; ".join((first, *parts)) + "."


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_TOLD]) + (f" and {len(names) - _TOLD} more" if len(names) > _TOLD else "")
