# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What came of a look or a step, also of one that raised."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._model.errors import TalosError
from .._model.outcome import MachineRow
from .._model.plan import Plan, Refusal, Step, Target
from .._operations.machine_effects import Effects
from .._operations.reconcile import Looked
from .._operations.rounds import Acted, Round


#: The reason of a store that does not answer: what needs it is tried again.
OUT_OF_REACH = "StoreUnreachable"


@dataclass(frozen=True)
class Landed:
    """A look or a step that came to its end. `acted` holds the ids of what was done, `refusal` why it was not."""

    name: str
    effects: Effects
    looked: Looked | None = None
    tried: bool = False
    acted: tuple[str, ...] = ()
    refusal: Refusal | None = None


def raised(name: str, effects: Effects, error: Exception) -> Landed:
    """The end of one that raised. A record that is gone is none."""
    if isinstance(error, TalosError):
        if error.reason == "RecordNotFound":
            return Landed(name, effects)
        return Landed(name, effects, refusal=Refusal(Target(name=name), error.reason, error.message, error.hint, "9/look"))
    told = f"Something unexpected happened: {type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}."
    return Landed(name, effects, refusal=Refusal(
        Target(name=name), "InternalError", told, "This is a fault of the collection; please report it.", "9/look"))


def failed(name: str, refusal: Refusal, known: Looked | None, after: float) -> Looked:
    """A look that raised: the machine stays as it was last seen, held by what happened, and is looked at again `after` seconds. A store that is out
    of reach comes back, so nobody is settled by that."""
    row = known.round.row if known is not None else MachineRow(name)
    row = replace(row, ready=False, reason=refusal.reason, message=f"{refusal.message} {refusal.hint}".strip())
    found = Round(name, row.cluster, Plan(refusals=(refusal,)), row, after, refusal.reason != OUT_OF_REACH, held=True)
    return Looked(found, of_another_kind, known.control_plane if known is not None else False)


def gist(found: Round) -> tuple[object, ...]:
    """What of a look tells that something happened."""
    return found.row.stage, found.row.reason, found.settled, tuple((step.id, step.waits_for) for step in found.plan.steps)


async def of_another_kind(around: object, found: Round, step: Step, effects: Effects) -> Acted:
    """A look that is no machine's has no step of its own."""
    raise ValueError(f"{found.name} has no step {step.action} of its own")
