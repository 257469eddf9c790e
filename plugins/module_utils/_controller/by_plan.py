# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations that stand beside the machines, as the controller has them: a look that does nothing, and the carrying out of granted steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from .._model.errors import TalosError
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Target
from .._model.ports import Gate
from .._operations.rounds import Round

#: An operation that waits for its gate.
Run = Callable[[Gate], Awaitable[Outcome]]


async def planned(run: Run, target: Target, rule: str) -> tuple[Plan, Outcome | None]:
    """The last plan of the operation with every step withheld, and its end. One that raises is refused under that rule, and has no end."""
    plans: list[Plan] = []

    def withhold(plan: Plan) -> Plan:
        plans.append(plan)
        return replace(plan, steps=())

    try:
        outcome = await run(withhold)
    except TalosError as error:
        return Plan(refusals=(Refusal(target, error.reason, error.message, error.hint, rule),)), None
    return plans[-1] if plans else Plan(), outcome


async def carried_out(run: Run, granted: frozenset[str]) -> Outcome:
    """The operation with its granted steps, all others withheld. Raises TalosError."""
    return await run(lambda plan: replace(plan, steps=tuple(step for step in plan.steps if step.id in granted)))


def done_by(outcome: Outcome) -> tuple[str, ...]:
    """The ids of the steps that were done. Raises TalosError where it was refused before any was."""
    if outcome.refused and not outcome.executed:
        refusal = outcome.plan.refusals[-1]
        raise TalosError(refusal.reason, refusal.message, refusal.hint)
    return outcome.executed


def round_of(name: str, cluster: str, plan: Plan, after: float) -> Round:
    """The look of a subject that is no machine; it is looked at again `after` seconds."""
    return Round(name, cluster, plan, MachineRow(name, cluster), after, not plan.steps, held=bool(plan.refusals))
