# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A round of an approved machine that was never sent a configuration (design section 9, steps 1 to 10)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._decide.etcd_words import RemoveEtcdMember
from .._decide.no_answer import with_stored
from .._decide.pinning import with_pin
from .._decide.provisioning_words import ApplyConfig, Follow, Pin, RecordPin, Refused, Remove, Send, Unchanged, Verdict
from .._decide.rejoin import decide_join
from .._decide.reprovision import reading_of
from .._decide.wipe_evidence import with_reading
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.observed import Present
from .._model.outcome import MachineRow
from .._model.plan import Plan, Refusal, Step, plain
from .._model.records import Record, text_at
from .machine_effects import Effects
from .member_removal import remove
from .provisioning_reads import Job, Seen, Surroundings, begin, observe
from .rounds import Acted, Round
from .send_config import send
from .stored import count_as_stored


@dataclass(frozen=True)
class Provisioned:
    """What `act` needs of the look."""

    seen: Seen
    verdict: Verdict


async def look(around: Surroundings, name: str, effects: Effects) -> Round:
    """Observe and decide; a refusal is written as conditions, and a send that counts as stored is written as that.

    Raises TalosError `RecordNotFound`.
    """
    seen, verdict = await observe(around, begin(around, Job(name, render=True, rules=decide_join), beside=()))
    machine, now = seen.observation.machine, around.ports.clock.now()
    reading = reading_of(seen.observation) if isinstance(verdict, Remove) else None
    if machine is not None and (reading is not None or machine.status.get("wipeSeen")):
        machine = effects.status(machine, lambda status: with_reading(status, reading, now))
    if isinstance(verdict, Refused):
        effects.refused(machine, verdict.refusal)
    elif isinstance(verdict, Follow) and verdict.settle and machine is not None:
        count_as_stored(machine, effects)
    elif isinstance(verdict, Unchanged) and machine is not None and (runs := _runs(seen)):
        # It answers with authentication: what it runs was stored, whoever sent it, and section 11 is what matters (section 9, step 2).
        effects.status(machine, lambda status: with_stored(status, runs, now))
    return _round(around, name, seen, verdict)


def _runs(seen: Seen) -> str:
    """The hash of the configuration that the node was read to run, or ''."""
    running = seen.observation.running
    return running.value.config_sha256 if isinstance(running, Present) else ""


def _round(around: Surroundings, name: str, seen: Seen, verdict: Verdict) -> Round:
    machine = seen.observation.machine
    cluster, stage = (cluster_of(machine), text_at(machine.status, "stage")) if machine is not None else ("", "")
    plan, row = Plan(), MachineRow(name, cluster, stage)
    again, settled, silent = around.timing.follow, False, False
    if isinstance(verdict, Refused):
        refusal = verdict.refusal
        plan, silent, settled = Plan(refusals=(refusal,)), verdict.unreachable, True
        row = replace(row, reason=refusal.reason, message=f"{refusal.message} {refusal.hint}".strip())
        again = around.timing.follow if silent or passes(refusal) else around.timing.reread
        settled = not passes(refusal)
    elif isinstance(verdict, Pin):
        plan = Plan((verdict.record, _under_lock(verdict.send)), warnings=verdict.warnings)
        row = replace(row, reason="AwaitingInstall", message="Its certificate is recorded first; the next look that sees the same one sends.")
    elif isinstance(verdict, Remove):
        plan = Plan((verdict.step, _under_lock(verdict.send)), warnings=verdict.warnings)
        row = replace(row, reason="StaleEtcdMember", message=f"Before it is sent its configuration: {verdict.step.why}.")
    elif isinstance(verdict, Send):
        plan = Plan((_under_lock(verdict.step),), warnings=verdict.warnings)
        row = replace(row, reason="AwaitingInstall", message="It is approved, in maintenance mode as itself, and is sent its configuration.")
    elif isinstance(verdict, Follow):
        row, again = replace(row, reason="ConfigStored", message=verdict.message), 0.0
    elif isinstance(verdict, Unchanged):
        known = bool(_runs(seen))
        plan, settled, again = Plan(), not known, 0.0 if known else around.timing.reread
        row = replace(row, reason="ConfigStored", message=verdict.message)
    return Round(name, cluster, plan, row, again, settled, silent, held=bool(plan.refusals), carry=Provisioned(seen, verdict))


def would_be(found: Round, now: float) -> Record | None:
    """The record as the plan would leave it, for the later tasks of a check run."""
    carried = found.carry
    machine = carried.seen.observation.machine if isinstance(carried, Provisioned) else None
    if machine is None or not isinstance(carried, Provisioned) or not isinstance(carried.verdict, (Pin, Send)):
        return None
    step = carried.verdict.send if isinstance(carried.verdict, Pin) else carried.verdict.step
    status = {key: plain(value) for key, value in with_stored(dict(machine.status), step.config, now).items()}
    return replace(machine, status=status)


#: Refusals that end by themselves: somebody else is at it, or the node is on its way up.
_PASSING = frozenset({"LockHeld", "SendingUnconfirmed", "NotInMaintenance", "FailedPrecondition", "RecordChanged"})


def passes(refusal: Refusal) -> bool:
    """Whether the same may go in a while, without a person."""
    return refusal.reason in _PASSING or refusal.rule == "9/6-unsettled"


def _under_lock(step: ApplyConfig) -> ApplyConfig:
    """Control planes take the lock of their cluster for the send (section 9, step 9)."""
    return replace(step, locked=step.role == "controlplane")


async def act(around: Surroundings, found: Round, step: Step, effects: Effects) -> Acted:
    """Record the pin, remove the stale member, or send: exactly this step."""
    carried = found.carry
    if not isinstance(carried, Provisioned):
        raise ValueError("the round is not one of this file")
    machine = carried.seen.observation.machine
    try:
        if isinstance(step, RecordPin) and machine is not None:
            now = around.ports.clock.now()
            after = effects.status(machine, lambda status: with_pin(status, step.fingerprint, now), expect=True)
            effects.event(after, "Normal", "MaintenanceIdentityRefreshed", f"The first certificate of the machine is {step.fingerprint}.")
            return Acted(True)
        if isinstance(step, RemoveEtcdMember):
            return await remove(around, carried.seen, step, effects)
        if not isinstance(step, ApplyConfig):
            raise ValueError(f"no step of provisioning: {step.action}")
        sent = await send(around, carried.seen, step, effects)
    except TalosError as error:
        return Acted(False, Refusal(step.target, error.reason, error.message, error.hint, "9/10-stopped"), error)
    if sent.stored:
        return Acted(True)
    refusal = sent.verdict.refusal if isinstance(sent.verdict, Refused) else None
    if refusal is not None:
        effects.refused(machine, refusal)
    return Acted(False, refusal, sent.error)
