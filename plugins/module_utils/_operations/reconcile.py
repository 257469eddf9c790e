# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which phase of its life a machine is in, and the round of that phase (design section 9, steps 1 to 4; sections 10 to 12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from .._decide.approved import has_converged, held_for_adoption, is_followed
from .._decide.lock import disruption_of
from .._model.approval import approval_state, status_lost, was_sent
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.outcome import MachineRow
from .._model.plan import Plan, Refusal, Step
from .._model.records import CLUSTER, MACHINE, Record, condition_of, text_at
from . import converge, follow_round, provision_round, reprovision
from .machine_effects import Effects
from .provisioning_reads import Surroundings
from .record_reads import need_store, read_machine
from .rounds import Acted, Round

Act = Callable[[Surroundings, Round, Step, Effects], Awaitable[Acted]]

#: The phases of a record; UNDECIDED and HELD machines wait for a person and are not dialled.
UNDECIDED, HELD, PROVISION, FOLLOW, CONVERGED = "undecided", "held", "provision", "follow", "converged"


@dataclass(frozen=True)
class Looked:
    """A round, and how its steps are carried out. `role` as the record says; `joining`: sent, and not joined yet."""

    round: Round
    act: Act
    control_plane: bool = False
    joining: bool = False


def phase_of(machine: Record) -> str:
    """The phase that the record says; a lost status is only followed, with authentication."""
    if approval_state(machine) != "approved":
        return UNDECIDED
    if status_lost(machine) or is_followed(machine):
        return FOLLOW
    if has_converged(machine):
        return CONVERGED
    return HELD if held_for_adoption(machine) else PROVISION


async def look(around: Surroundings, name: str, effects: Effects) -> Looked:
    """One look at one machine. Raises TalosError `RecordNotFound`, `RecordBroken` and what the store raises."""
    view = read_machine(need_store(around.ports), name)
    machine, phase = view.machine, phase_of(view.machine)
    control_plane = text_at(machine.spec, "role") == "controlplane"
    if phase == UNDECIDED:
        return Looked(_undecided(around, machine), _nothing, control_plane)
    if phase == HELD:
        return Looked(_held(around, machine), _nothing, control_plane)
    if _only_would_be_sent(around, machine):
        row = MachineRow(name, cluster_of(machine), text_at(machine.status, "stage"), False, "ConfigStored",
                         "An earlier task of this check run would have sent it its configuration; what follows is seen then.")
        return Looked(Round(name, cluster_of(machine), Plan(), row, around.timing.follow, True), _nothing, control_plane)
    try:
        looked = await _of_phase(around, name, phase, effects)
    except TalosError as error:
        if error.reason == "RecordNotFound":
            raise
        refusal = Refusal(view.target, error.reason, error.message, error.hint, "9/look")
        effects.refused(machine, refusal)
        return Looked(_failed(around, machine, refusal), _nothing, control_plane)
    return replace(looked, round=_confirmed(around, machine, phase, _disrupted(around, looked.round)), control_plane=control_plane,
                   joining=phase == FOLLOW and not looked.round.row.ready)


def _only_would_be_sent(around: Surroundings, machine: Record) -> bool:
    """Whether it is only in this check run that the machine was sent a configuration: there is nothing to see on it."""
    recorded = around.ports.recorded
    if recorded is None or not was_sent(machine):
        return False
    real = recorded(MACHINE, machine.name)
    return real is None or not was_sent(real)


def _disrupted(around: Surroundings, found: Round) -> Round:
    """While its own disruption stands open a machine that answers is not settled, and is looked at again soon (section 13)."""
    disruption = disruption_of(need_store(around.ports).get(CLUSTER, found.cluster) if found.cluster else None)
    if disruption is None or disruption.machine != found.name or found.silent or around.ports.check:
        return found
    return replace(found, settled=False, requeue_after=min(found.requeue_after, around.timing.follow))


def _confirmed(around: Surroundings, machine: Record, phase: str, found: Round) -> Round:
    """A left-over `sending` becomes a stored configuration when its machine answers (section 9, 10), which the next look follows until it has joined."""
    if phase != CONVERGED or "sending" not in machine.status or found.silent or around.ports.check:
        return found
    return replace(found, settled=False, requeue_after=min(found.requeue_after, around.timing.follow))


async def _of_phase(around: Surroundings, name: str, phase: str, effects: Effects) -> Looked:
    if phase == PROVISION:
        return Looked(await provision_round.look(around, name, effects), provision_round.act)
    if phase == FOLLOW:
        return Looked(await follow_round.look(around, name, effects), _nothing)
    found = await converge.look(around, name, effects, lambda why: reprovision.look(around, name, effects, why))
    return Looked(found, reprovision.act if isinstance(found.carry, reprovision.FellBack) else converge.act)


async def _nothing(around: Surroundings, found: Round, step: Step, effects: Effects) -> Acted:
    raise ValueError(f"a round without steps cannot do {step.action}")


def _undecided(around: Surroundings, machine: Record) -> Round:
    """A pending or rejected machine: what is recorded is all there is to say."""
    rejected = approval_state(machine) == "rejected"
    weak = condition_of(machine, "WeakIdentity")
    told = "It was rejected: nothing is ever sent to it." if rejected else "It waits for a person's decision (talos_machine_approval)."
    if weak is not None and not rejected:
        told = f"It waits for a person, since its identity does not single it out: {weak.message}"
    row = MachineRow(machine.name, cluster_of(machine), text_at(machine.status, "stage"), False,
                     "Rejected" if rejected else "PendingApproval", told)
    return Round(machine.name, cluster_of(machine), Plan(), row, around.timing.reread, True)


def _held(around: Surroundings, machine: Record) -> Round:
    """An adopted machine before its release: its condition says what it waits for (section 15)."""
    ready = condition_of(machine, "Ready")
    row = MachineRow(machine.name, cluster_of(machine), text_at(machine.status, "stage"), False, "AdoptionHeld", ready.message if ready else "")
    return Round(machine.name, cluster_of(machine), Plan(), row, around.timing.reread, True)


def _failed(around: Surroundings, machine: Record, refusal: Refusal) -> Round:
    row = MachineRow(machine.name, cluster_of(machine), text_at(machine.status, "stage"), False, refusal.reason,
                     f"{refusal.message} {refusal.hint}".strip())
    return Round(machine.name, cluster_of(machine), Plan(refusals=(refusal,)), row, around.timing.reread, True, held=True)


def row_now(around: Surroundings, found: Round) -> MachineRow:
    """The row of a machine after something was done to it, as its record tells it."""
    machine = need_store(around.ports).get(MACHINE, found.name)
    if machine is None:
        return found.row
    ready = condition_of(machine, "Ready")
    return MachineRow(found.name, found.cluster, text_at(machine.status, "stage"), bool(ready and ready.status == "True"),
                      ready.reason if ready else "", ready.message if ready else "", True)
