# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_machine_removal`: drained, out of etcd, reset, its record deleted; a dead control plane through the others (design section 14)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from .._decide.conditions import Status, with_condition, without_conditions
from .._decide.etcd_words import RemoveEtcdMember
from .._decide.lock import disruption_of
from .._decide.machine_edit_words import DeleteRecord
from .._decide.removal import REPLACE, Verdict, decide_removal, proceeded
from .._decide.removal_gates import is_sent
from .._decide.removal_words import (
    BLOCKED, DEAD_REMOVAL, REMOVAL, REMOVING, DeleteNode, DrainNode, EvacuateStorage, LeaveEtcd, Leaving, RemovalWish, ResetMachine,
)
from .._model.errors import LOCK_REASONS, TalosError
from .._model.machine import cluster_of
from .._model.moments import moment
from .._model.observed import Present
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Step, Target
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Condition, Event, Ref
from .._model.timing import Timing
from .dead_member import Look, remove_member
from .disruption import withdraw
from .draining import delete_node, mark_reset
from .lease import held
from .node_cordon import take_back
from .record_reads import credentials_for
from .removal_reads import observe
from .resetting import send_reset, wait_for_maintenance


@dataclass(frozen=True)
class Request:
    """One machine and a person's word for it. `wish.record` False is a reset alone. `lift`: the removal is called off."""

    machine: str
    wish: RemovalWish
    lift: bool = False
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass
class _Run:
    """What was done so far."""

    executed: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    deleted: bool = False
    message: str = ""
    refusal: Refusal | None = None
    error: TalosError | None = None


@dataclass(frozen=True)
class LiftRemoval(Step):
    """Take the condition away that holds every send to the machine."""

    action: ClassVar[str] = "LiftRemoval"


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe, decide, show the plan, and act on exactly what the gate gave back."""
    if ports.store is None:
        refusal = Refusal(Target(name=request.machine), "NoLock", "A removal or a reset needs the lock of its cluster, and without a store there is "
                          "none.", "Name a store.", "13/no-store")
        gate(Plan(refusals=(refusal,)))
        return _outcome(request, Verdict(Plan(refusals=(refusal,))), None, _Run(refusal=refusal))
    seen = await observe(ports, request.machine, request.wish, request.allow_loopback)
    verdict = _lifting(seen) if request.lift else decide_removal(seen)
    granted = gate(verdict.plan)
    done = _Run(refusal=verdict.refusal)
    if granted.steps or (verdict.plan.waits and not ports.check and not verdict.plan.steps):
        try:
            await _act(request, ports, seen, verdict, granted.steps, done)
        except TalosError as error:
            rule = "13/lock" if error.reason in LOCK_REASONS else "14/failed"
            done.refusal, done.error = Refusal(seen.target, error.reason, error.message, error.hint, rule), error
        if done.refusal is not None and not done.deleted and seen.machine is not None and request.wish.record:
            try:
                _blocked(ports, seen, done, done.refusal)
            except TalosError as error:
                # What was done counts, and why it ended; the condition of before holds the machine.
                ports.progress(f"{request.machine}: why it stopped could not be written down: {error.message}")
    return _outcome(request, verdict, seen, done, check=ports.check)


def _lifting(seen: Leaving) -> Verdict:
    """A removal that is called off; a machine that is not being removed is left as it is."""
    if seen.wish.confirm != seen.target.name:
        return Verdict(Plan(refusals=(Refusal(seen.target, "ConfirmationMissing", "confirm is not the name of the machine.",
                                              f"Set confirm to {seen.target.name}.", "14/confirm"),)))
    if not proceeded(seen):
        return Verdict(Plan(), f"{seen.target.name} is not being removed.")
    return Verdict(Plan((LiftRemoval(seen.target, "a person calls its removal off; what was done of it stays done"),)))


async def _act(request: Request, ports: Ports, seen: Leaving, verdict: Verdict, granted: tuple[Step, ...], done: _Run) -> None:
    machine = seen.machine
    if machine is None or ports.store is None:
        return
    kinds = {type(step): step for step in granted}
    if LiftRemoval in kinds:
        ports.store.patch_status(machine.ref, machine.uid, lambda status: dict(without_conditions(status, (REMOVAL,))))
        done.executed.append(kinds[LiftRemoval].id)
        if isinstance(seen.hosting, Present) and seen.hosting.value.node.cordoned_at:
            stays = await take_back(ports, cluster_of(machine), seen.hosting.value.node.name)
            done.message = f"Its Node stays cordoned: {stays}." if stays else ""
        return
    if request.wish.record and is_sent(seen):
        _mark(ports, machine.name, DEAD_REMOVAL if verdict.dead else REMOVING, f"Confirmed by {ports.actor.by}. Only a person lifts it, with lift: true.")
    if verdict.dead:
        await _dead(request, ports, seen, granted, done)
        return
    sends = tuple(step for step in granted if isinstance(step, (EvacuateStorage, DrainNode, LeaveEtcd, ResetMachine)))
    if sends:
        went = await send_reset(ports, machine.name, request.wish, sends, request.timing, request.allow_loopback)
        done.executed.extend(went.done)
        done.refusal, done.error = went.refusal, went.error
        if went.refusal is not None:
            return
    if sends or verdict.plan.waits:
        labels = next((step.partitions for step in sends if isinstance(step, ResetMachine)), ())
        done.refusal = await wait_for_maintenance(ports, machine, labels, request.timing)
        if done.refusal is not None:
            return
        done.message = f"{machine.name} is in maintenance mode."
    node_step = kinds.get(DeleteNode)
    if node_step is not None and isinstance(seen.hosting, Present):
        await delete_node(ports, machine, seen.hosting.value.node)
        done.executed.append(node_step.id)
    _delete(ports, granted, done)


async def _dead(request: Request, ports: Ports, seen: Leaving, granted: tuple[Step, ...], done: _Run) -> None:
    """The member through the others, then the record, both under the lock."""
    removal = next((step for step in granted if isinstance(step, RemoveEtcdMember)), None)
    if removal is not None and isinstance(seen.node, Present):
        # An etcd that starts does not answer either: the look under the lock is the second one.
        ports.progress(f"{request.machine}: it answers and its etcd does not; looking again in {request.timing.follow:g} s")
        await ports.clock.sleep(request.timing.follow)
    async with held(ports, seen.target.cluster, f"removing the dead control plane {request.machine}", request.timing) as lease:
        latest = seen

        async def look() -> Look:
            nonlocal latest
            latest = await observe(ports, request.machine, request.wish, request.allow_loopback, strict=True)
            verdict = decide_removal(latest)
            step = next((one for one in verdict.plan.steps if isinstance(one, RemoveEtcdMember)), None)
            given = credentials_for(ports, latest.target.cluster, latest.cluster)
            gone = verdict.dead and verdict.refusal is None
            refusal = None if step is not None or gone else verdict.refusal or Refusal(
                latest.target, "RecordChanged", "The machine answers again, or is gone from the records.", "Run this again.", "14/changed")
            return Look(step, latest.etcd, given.value if isinstance(given, Present) else None, refusal)

        if removal is not None:
            ended = await remove_member(ports, look, removal, lease, request.timing)
            if isinstance(ended, TalosError):
                raise ended
            if ended is not None:
                done.refusal = ended
                return
            done.executed.append(removal.id)
            _event(ports, seen, done, f"The etcd member of the dead control plane {request.machine} was removed. {REPLACE}")
        else:
            checked = await look()
            if checked.step is not None or checked.refusal is not None:
                done.refusal = checked.refusal or Refusal(seen.target, "RecordChanged", "etcd lists the machine again.", "Run this again.", "14/changed")
                return
        if latest.machine is not None:
            await mark_reset(ports, latest.machine, latest.hosting)
        lease.confirm()
        _delete(ports, granted, done)
        done.message = f"{request.machine} was removed as dead. {REPLACE}"


def _delete(ports: Ports, granted: tuple[Step, ...], done: _Run) -> None:
    step = next((one for one in granted if isinstance(one, DeleteRecord)), None)
    if step is None or ports.store is None:
        return
    record = ports.store.get(MACHINE, step.target.name)
    if record is not None:
        if record.uid != step.target.uid:
            raise TalosError("RecordChanged", f"The record of {step.target.name} is another one now.", "Look at it, and run this again.")
        cluster = ports.store.get(CLUSTER, cluster_of(record))
        open_one = disruption_of(cluster)
        if cluster is not None and open_one is not None and open_one.machine == record.name:
            withdraw(ports, cluster, open_one)  # without the record its evidence would never come; a person has confirmed it by name
        ports.progress(f"{record.name}: deleting its record")
        ports.store.delete(record)
    done.executed.append(step.id)
    done.deleted = True


def _blocked(ports: Ports, seen: Leaving, done: _Run, refusal: Refusal) -> None:
    """A removal that stopped half-way says so; one that has done nothing is none."""
    record = ports.store.get(MACHINE, seen.target.name) if ports.store is not None else None
    if record is None or ports.store is None:
        return
    if not done.executed and not proceeded(seen):
        ports.store.patch_status(record.ref, record.uid, lambda status: dict(without_conditions(status, (REMOVAL,))))
    elif not proceeded(replace(seen, machine=record), DEAD_REMOVAL):
        _mark(ports, record.name, BLOCKED, f"{refusal.message} {refusal.hint}".strip())


def _mark(ports: Ports, name: str, reason: str, message: str) -> None:
    """The condition that holds every send to the machine."""
    record = ports.store.get(MACHINE, name) if ports.store is not None else None
    if record is None or ports.store is None:
        return
    now = ports.clock.now()

    def change(status: Status) -> Status:
        return with_condition(status, Condition(REMOVAL, "True", reason, message, record.generation), now)

    ports.store.patch_status(record.ref, record.uid, change)


def _event(ports: Ports, seen: Leaving, done: _Run, message: str) -> None:
    """On the cluster: the machine's record goes."""
    if ports.store is not None and seen.cluster is not None:
        event = Event(Ref(CLUSTER, seen.cluster.name), "Warning", "DeadMemberRemoved", message, moment(ports.clock.now()))
        ports.store.record_event(event)
        done.events.append(event)


def _outcome(request: Request, verdict: Verdict, seen: Leaving | None, done: _Run, *, check: bool = False) -> Outcome:
    plan, refusal = verdict.plan, done.refusal
    plan = plan.refused(refusal)
    told = f"{refusal.message} {refusal.hint}".strip() if refusal is not None else done.message or verdict.done
    cluster = seen.target.cluster if seen is not None else ""
    row = MachineRow(request.machine, cluster, "", False, refusal.reason if refusal is not None else "", told, bool(verdict.plan.steps))
    waits = tuple(f"{wait.target}: {wait.what}" for wait in (*plan.waits, *(wait for step in plan.steps for wait in step.waits_for)))
    silent = refusal is not None and refusal.reason == "NodeUnreachable"
    failure = replace(done.error.failure, step=plan.steps[0].id if plan.steps else "") if done.error is not None and refusal is not None else None
    return Outcome(
        plan=plan, executed=tuple(done.executed), machines=(row,), events=tuple(done.events), refused=refusal is not None, message=told,
        reason=refusal.reason if refusal is not None else "", blocked=(request.machine,) if refusal is not None and not silent else (),
        unreachable=(request.machine,) if silent else (), waiting_for=tuple(dict.fromkeys(waits)) if check else (), failure=failure,
        would_delete=tuple(Ref(MACHINE, step.target.name) for step in plan.steps if isinstance(step, DeleteRecord)) if check and refusal is None else ())
