# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which steps a run may do: those of the plan that was shown, and what later observations call for (design section 20)."""

from __future__ import annotations

from collections.abc import Sequence

from .._model.errors import TalosError
from .._model.plan import Plan, Step, Warn
from .._model.ports import Gate


class Granted:
    """Asks the gate about each step once. `again` is how many seconds a step that was done stays done before it may be done anew.

    The first plan that the gate refuses ends the run; a later one that a saved plan does not hold is only listed as new.
    """

    def __init__(self, gate: Gate, bounded: bool, again: float) -> None:
        self._gate, self._bounded, self._again = gate, bounded, again
        self._asked: set[str] = set()
        self._granted: set[str] = set()
        self._withheld: dict[str, Step] = {}
        self._done: dict[str, float] = {}
        self._warned: set[Warn] = set()
        self.first = Plan()
        #: Plans that arose later, in order.
        self.later: list[Plan] = []

    def begin(self, plan: Plan) -> None:
        """Show the whole plan. Raises what the gate raises."""
        self.first = plan
        self._warned.update(plan.warnings)
        self._asked.update(step.id for step in plan.steps)
        self._granted.update(step.id for step in self._gate(plan).steps)

    def __contains__(self, step: Step) -> bool:
        return step.id in self._granted

    def ask(self, steps: Sequence[Step], warnings: Sequence[Warn]) -> None:
        """Have the gate see the steps that were not in any plan yet, as a plan of their own."""
        new = tuple(step for step in steps if step.id not in self._asked)
        told = tuple(warning for warning in warnings if warning not in self._warned)
        if not new:
            return
        self._warned.update(told)
        self._asked.update(step.id for step in new)
        plan = Plan(new, warnings=told)
        self.later.append(plan)
        try:
            self._granted.update(step.id for step in self._gate(plan).steps)
        except TalosError as error:
            if error.reason not in ("PlanChanged", "PlanFinished"):
                raise
            self._withheld.update({step.id: step for step in new})

    def did(self, step_id: str, now: float) -> None:
        """A step was carried out."""
        self._done[step_id] = now

    def rests(self, step: Step, now: float) -> float:
        """For how many seconds the step is not done again: it was just done and is called for again. 0 when it may go."""
        at = self._done.get(step.id)
        if at is None:
            return 0.0
        return float("inf") if self._bounded else max(0.0, at + self._again - now)

    def done_for_good(self, step: Step, seen: float) -> bool:
        """Whether the step was done under a saved plan before it was called for again, at that time: it is not done a second time."""
        at = self._done.get(step.id)
        return self._bounded and at is not None and seen > at

    @property
    def executed(self) -> tuple[str, ...]:
        return tuple(self._done)

    @property
    def withheld(self) -> tuple[Step, ...]:
        """What later observations called for and the saved plan does not hold."""
        return tuple(self._withheld.values())
