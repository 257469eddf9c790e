# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate between deciding and acting: shows each plan and holds it against an approved one (design section 20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .._model.errors import TalosError
from .._model.plan import Plan
from .._model.records import Json
from .plan_text import SHORT_ID, parameter_difference, plan_lines, saved_step_line
from .saved_plan import SavedPlan, SavedStep, of_plan

if TYPE_CHECKING:
    from .._model.outcome import Outcome
    from .._model.plan import Refusal


class RunGate:
    """Implements the port `Gate`.

    `expect` is an approved plan's id (None when there is none; a blank one is no plan's), `saved` the plans of this module in a
    plan file (None without a file). `show` takes a line; `tell_empty` False leaves out that there is nothing to do, for modules
    that only look. `plans` holds every plan that came through, the first being the task's plan.
    """

    def __init__(self, module: str, *, check: bool, show: Callable[[str], None], expect: str | None = None,
                 saved: Sequence[SavedPlan] | None = None, tell_empty: bool = True) -> None:
        self._module = module
        self._check = check
        self._show = show
        self._expect = expect.strip() if expect is not None else None
        self._saved = saved
        self._tell_empty = tell_empty
        self._approved: dict[str, SavedStep] | None = None
        #: An id of a plan with steps was expected, and the present plan has none.
        self._nothing_left = False
        self._shown = ""
        self._differing: list[str] = []
        self.plans: list[Plan] = []

    def __call__(self, plan: Plan) -> Plan:
        first = not self.plans
        self.plans.append(plan)
        try:
            self._hold(plan, first)
        except TalosError:
            self._tell(plan, withheld=True)
            for line in self._differing:
                self._show(f"  {line}")
            raise
        self._tell(plan, withheld=False)
        return replace(plan, steps=()) if self._check else plan

    def refused(self, outcome: Outcome) -> tuple[Refusal, ...]:
        """Refusals that keep an approved step from being done: of a saved plan its steps that are open, of an id whatever is left of it.

        A machine that does not answer is none: it is listed, and the saved plan goes on when it answers again (design section 2, law 11).
        """
        refusals = [one for one in outcome.plan.refusals if str(one.target) not in outcome.unreachable]
        if self._saved is not None:
            done = {*outcome.executed, *(item for entry in self._saved for item in entry.done)}
            targets = {str(step.description.get("target")) for entry in self._saved for step in entry.steps if step.id not in done}
            return tuple(one for one in refusals if str(one.target) in targets)
        return tuple(refusals) if self._nothing_left else ()

    def _tell(self, plan: Plan, *, withheld: bool) -> None:
        text = "\n".join(plan_lines(plan, self._check, withheld=withheld))
        if text != self._shown and (self._tell_empty or plan != Plan()):
            self._shown = text
            for line in text.splitlines():
                self._show(line)

    def _hold(self, plan: Plan, first: bool) -> None:
        if self._saved is not None:
            self._hold_against_file(plan, self._saved)
        elif self._expect is not None:
            self._hold_against_id(plan, self._expect, first)

    def _hold_against_id(self, plan: Plan, expect: str, first: bool) -> None:
        if first:
            # Nothing is left to do: whoever ran the approved plan again gets no failure for it.
            if len(expect) < SHORT_ID or (plan.steps and not plan.id.startswith(expect)):
                raise TalosError(
                    "PlanChanged", f"The present plan is {plan.id[:SHORT_ID]}, the approved one is {expect[:SHORT_ID] or 'not named'}: nothing was done.",
                    f"Read the present plan ({_summary(plan)}), and run with expect_plan_id: {plan.id} when you agree with it.")
            self._approved = {step.id: step for step in of_plan(self._module, plan).steps}
            self._nothing_left = not plan.id.startswith(expect)
        elif self._approved is not None:
            self._refuse_others(plan, self._approved, frozenset(), frozenset())

    def _hold_against_file(self, plan: Plan, saved: Sequence[SavedPlan]) -> None:
        approved = {step.id: step for entry in saved for step in entry.steps}
        done = frozenset(item for entry in saved for item in entry.done)
        # A file can hold the plans of several tasks of one module, of which this is one: only with its own plan it is compared.
        others = {step.id for entry in saved if len(saved) > 1 and not _is_of(entry, plan) for step in entry.steps}
        self._refuse_others(plan, approved, done | others, done)

    def _refuse_others(self, plan: Plan, approved: Mapping[str, SavedStep], elsewhere: frozenset[str], done: frozenset[str]) -> None:
        """Refuse what is not approved or was done; steps `elsewhere` are no part of the difference."""
        present = {step.id: step for step in of_plan(self._module, plan).steps}
        again = [step for key, step in present.items() if key in done]
        if again:
            raise TalosError(
                "PlanFinished", f"The saved plan was already carried out, and would do this again: {_listed(again)}.",
                "A plan runs once: save the present plan with save_plan, read it, and run that.")
        new = [step for key, step in present.items() if key not in approved]
        if not new:
            return
        gone = [step for key, step in approved.items() if key not in present and key not in elsewhere]
        pairs = [(step, next((old for old in gone if _same_deed(step.canonical, old.canonical)), None)) for step in new]
        if all(old is not None and _only_certificate(step.canonical, old.canonical) for step, old in pairs):
            raise TalosError(
                "PlanChanged", f"Only the certificate changed since the plan was saved, the identity is equal: {_listed(new)}. "
                "Talos issues a new certificate every 12 hours. Nothing was done.",
                "Save the plan again (the same task with --check and save_plan, or ichor.talos.plan), compare the fingerprint, and run that.")
        matched = [old for dummy, old in pairs if old is not None]
        self._differing = [_difference(step, old) for step, old in pairs]
        self._differing += [f"- {saved_step_line(step.description)} is only in the saved plan" for step in gone if step not in matched]
        raise TalosError(
            "PlanChanged", f"The present plan is not the saved one: {'; '.join(self._differing)}. Nothing was done.",
            "Save the present plan (the same task with --check and save_plan, or ichor.talos.plan), read it, and run that.")


def _same_deed(new: Json, old: Json) -> bool:
    """Whether two steps are the same action on the same target, whatever their parameters."""
    return isinstance(new, dict) and isinstance(old, dict) and all(new.get(key) == old.get(key) for key in ("action", "target"))


def _is_of(saved: SavedPlan, plan: Plan) -> bool:
    """Whether a saved plan has to do with the same things as a present one."""
    return any(_same_deed(step.canonical(), old.canonical) for step in plan.steps for old in saved.steps)


def _difference(new: SavedStep, old: SavedStep | None) -> str:
    if old is None:
        return f"+ {saved_step_line(new.description)} is not in the saved plan"
    return f"{saved_step_line(new.description)}: {parameter_difference(new.canonical, old.canonical)}"


def _only_certificate(new: Json, old: Json) -> bool:
    """Whether two steps differ in nothing but fingerprints."""
    return new != old and _without_fingerprints(new) == _without_fingerprints(old)


def _without_fingerprints(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_fingerprints(item) for key, item in value.items()
                if "fingerprint" not in key.lower() and key not in ("pin", "old_pin", "new_pin")}
    if isinstance(value, list):
        return [_without_fingerprints(item) for item in value]
    return value


def _listed(steps: Sequence[SavedStep]) -> str:
    return ", ".join(saved_step_line(step.description) for step in steps)


def _summary(plan: Plan) -> str:
    return "; ".join(saved_step_line(step.describe()) for step in plan.steps) or "nothing to do"
