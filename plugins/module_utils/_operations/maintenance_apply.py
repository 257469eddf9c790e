# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_maintenance_apply`: send a configuration to machines in maintenance mode, once (design section 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from .._decide.approved import is_bootstrapped, is_control_plane
from .._decide.conditions import Status
from .._decide.lock import disruption_of
from .._decide.no_answer import with_stored
from .._decide.pinning import with_pin
from .._decide.provisioning import decide
from .._decide.provisioning_words import ApplyConfig, Follow, Pin, RecordPin, Refused, Send, Unchanged, Verdict
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.observed import Present, Unknown
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Target, Wait, plain
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Json, Record, condition_of, text_at
from .._model.timing import Timing
from .disruption import end_if_over
from .machine_effects import Effects
from .provisioning_reads import Job, Seen, Surroundings, begin, observe
from .rendering import Renderer
from .record_reads import MachineView, address_of, check_names, credentials_for, need_store
from .selecting import selected
from .send_config import Sent, send
from .stored import count_as_stored

#: How many machines are read or sent to at once.
_AT_ONCE = 64


@dataclass(frozen=True)
class Request:
    """The jobs, and whether a refusal fails the task (one named machine) or is listed (several)."""

    jobs: tuple[Job, ...]
    single: bool = True
    #: Further jobs by an expression over the records; `job_of` makes the job of a name.
    select: str = ""
    job_of: Callable[[str], Job] | None = None
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass
class _Machine:
    """One job on its way through the run."""

    job: Job
    verdict: Verdict
    seen: Seen | None = None
    sent: Sent | None = None
    pinned: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe all, decide, let the gate see the plan, send what may go now. Design section 9, steps 1 to 10."""
    if request.select and request.job_of is not None:
        names = selected(need_store(ports), request.select)
        request = replace(request, jobs=request.jobs + tuple(request.job_of(name) for name in names))
    if any(job.name for job in request.jobs):
        check_names(need_store(ports), (job.name for job in request.jobs))
    renderer = Renderer(need_store(ports)) if any(job.render for job in request.jobs) else None
    around = Surroundings(ports, request.timing, request.allow_loopback, renderer, tuple(job.name for job in request.jobs if job.name))
    request = replace(request, jobs=tuple(_rendered(around, job) for job in request.jobs))
    beside = tuple((job.name, job.hostname) for job in request.jobs if job.name and job.hostname)
    limit = asyncio.Semaphore(_AT_ONCE)
    await _end_disruptions(around, request.jobs)
    machines = list(await asyncio.gather(*(_observe(around, job, beside, limit) for job in request.jobs)))
    _in_turn(machines, ports.clock.now())
    plan = _plan(machines) + _lock_waits(around, machines)
    granted = gate(plan)
    effects = Effects(ports)
    if not ports.check:
        await _act(around, machines, granted, effects, limit)
    return _outcome(request, machines, plan, effects, ports)


def _rendered(around: Surroundings, job: Job) -> Job:
    try:
        return around.rendered(job)
    except TalosError as error:
        return replace(job, config=Unknown(error.reason, error.message, error.hint), render=False)


async def _end_disruptions(around: Surroundings, jobs: Sequence[Job]) -> None:
    """Control planes of a bootstrapped cluster wait for a machine that was disrupted: look whether it is over."""
    store = around.ports.store
    if store is None or around.ports.check:
        return
    wanted = [job.name for job in jobs if job.name and isinstance(job.config, Present) and job.config.value.role == "controlplane"]
    records = [record for name in wanted if (record := store.get(MACHINE, name)) is not None]
    for name in dict.fromkeys(cluster_of(record) for record in records):
        cluster = store.get(CLUSTER, name)
        disruption = disruption_of(cluster)
        machine = store.get(MACHINE, disruption.machine) if disruption is not None else None
        if cluster is None or machine is None:
            continue
        address = address_of(MachineView(machine, cluster, ()), around.allow_loopback)
        credentials = credentials_for(around.ports, name, cluster)
        if isinstance(address, Present) and isinstance(credentials, Present):
            await end_if_over(around.ports, cluster, address.value, credentials, identity_of(machine), around.timing, is_control_plane(machine))


async def _observe(around: Surroundings, job: Job, beside: tuple[tuple[str, str], ...], limit: asyncio.Semaphore) -> _Machine:
    async with limit:
        try:
            seen, verdict = await observe(around, begin(around, job, beside))
        except TalosError as error:
            return _Machine(job, Refused(Refusal(Target(name=job.label), error.reason, error.message, error.hint, "9/0-record")))
        return _Machine(job, verdict, seen)


def _in_turn(machines: Sequence[_Machine], now: float) -> None:
    """In a bootstrapped cluster one control plane joins after the other: the later ones wait for the first."""
    first: dict[str, str] = {}
    for machine in machines:
        if not isinstance(machine.verdict, Send) or machine.seen is None or machine.verdict.step.role != "controlplane":
            continue
        observation = machine.seen.observation
        if not is_bootstrapped(observation.cluster):
            continue
        ahead = first.setdefault(observation.target.cluster, machine.job.name)
        if ahead != machine.job.name:
            machine.seen = replace(machine.seen, observation=replace(observation, after=(ahead,)))
            machine.verdict = decide(machine.seen.observation, now)


def _plan(machines: Sequence[_Machine]) -> Plan:
    plan = Plan()
    for machine in machines:
        verdict = machine.verdict
        if isinstance(verdict, Refused):
            plan += Plan(refusals=(verdict.refusal,))
        elif isinstance(verdict, Pin):
            plan += Plan((verdict.record, verdict.send), warnings=verdict.warnings, waits=verdict.send.waits_for)
        elif isinstance(verdict, Send):
            plan += Plan((verdict.step,), warnings=verdict.warnings, waits=verdict.step.waits_for)
        elif isinstance(verdict, Unchanged):
            plan += Plan(warnings=verdict.warnings)
    return plan


def _lock_waits(around: Surroundings, machines: Sequence[_Machine]) -> Plan:
    """In check mode nothing is waited for: a lock that somebody holds now is listed with its deadline."""
    store = around.ports.store
    if store is None or not around.ports.check:
        return Plan()
    wanted = {machine.seen.observation.target.cluster: machine.job.label for machine in machines
              if machine.seen is not None and isinstance(machine.verdict, Send) and machine.verdict.step.role == "controlplane"}
    held = [(name, lease) for cluster, name in wanted.items() if (lease := store.leases.read(cluster)) is not None and lease.holder]
    return Plan(waits=tuple(Wait(f"the lock of its cluster, which {lease.holder} holds for {lease.purpose}", around.timing.lock_wait, name)
                            for name, lease in held))


async def _act(around: Surroundings, machines: Sequence[_Machine], granted: Plan, effects: Effects, limit: asyncio.Semaphore) -> None:
    """Exactly the granted steps whose wait is over; beside them what is written down about each machine."""
    steps = {step.id: step for step in granted.steps if not step.waits_for}

    async def one(machine: _Machine) -> None:
        async with limit:
            try:
                await _act_on(around, machine, steps.get(_step_id(machine.verdict)), effects)
            except TalosError as error:
                machine.sent = Sent(False, Refused(Refusal(Target(name=machine.job.label), error.reason, error.message, error.hint,
                                                           "9/10-stopped")), error=error)

    await asyncio.gather(*(one(machine) for machine in machines))


def _step_id(verdict: Verdict) -> str:
    if isinstance(verdict, Pin):
        return verdict.record.id
    return verdict.step.id if isinstance(verdict, Send) else ""


async def _act_on(around: Surroundings, machine: _Machine, step: object, effects: Effects) -> None:
    seen, verdict = machine.seen, machine.verdict
    if seen is None:
        return
    record = seen.observation.machine
    if isinstance(verdict, Refused):
        effects.refused(record, verdict.refusal)
    elif isinstance(verdict, Follow) and verdict.settle and record is not None:
        count_as_stored(record, effects)
    elif isinstance(step, RecordPin) and record is not None:
        now = around.ports.clock.now()
        after = effects.status(record, lambda status: with_pin(status, step.fingerprint, now), expect=True)
        effects.event(after, "Normal", "MaintenanceIdentityRefreshed", f"The first certificate of the machine is {step.fingerprint}.")
        machine.pinned = True
    elif isinstance(step, ApplyConfig):
        machine.sent = await send(around, seen, step, effects)
        if isinstance(machine.sent.verdict, Refused):
            effects.refused(record, machine.sent.verdict.refusal)


def _outcome(request: Request, machines: Sequence[_Machine], plan: Plan, effects: Effects, ports: Ports) -> Outcome:
    rows = tuple(_row(machine) for machine in machines)
    refused = {machine.job.label: final for machine in machines if isinstance(final := _final(machine), Refused)}
    late = tuple(one.refusal for one in refused.values() if one.refusal not in plan.refusals)
    plan = replace(plan, refusals=plan.refusals + late)
    waiting = tuple(dict.fromkeys(f"{wait.target}: {wait.what}" for wait in plan.waits))
    executed = tuple(step for machine in machines if (step := _executed(machine)))
    alone = next(iter(refused.values()), None) if request.single else None
    errors = [machine.sent.error for machine in machines if machine.sent is not None and machine.sent.error is not None]
    return Outcome(
        plan=plan, executed=executed, machines=rows, transitions=tuple(effects.transitions), events=tuple(effects.events),
        blocked=tuple(name for name, one in refused.items() if not one.unreachable),
        unreachable=tuple(name for name, one in refused.items() if one.unreachable),
        waiting_for=waiting, requeue_after=request.timing.follow if waiting else None, refused=alone is not None,
        reason=alone.refusal.reason if alone else rows[0].reason if len(rows) == 1 else "",
        message=f"{alone.refusal.message} {alone.refusal.hint}".strip() if alone else rows[0].message if len(rows) == 1 else "",
        failure=replace(errors[0].failure, step=plan.steps[0].id if plan.steps else "") if alone is not None and errors else None,
        would_be=tuple(would for machine in machines if (would := _would_be(machine, ports))) if ports.check else (),
        extra={"node_warnings": [text for machine in machines if machine.sent for text in machine.sent.warnings]})


def _final(machine: _Machine) -> Verdict:
    """The last word on a machine: what the send said, where there was one."""
    if machine.sent is not None and not machine.sent.stored and machine.sent.verdict is not None:
        return machine.sent.verdict
    return machine.verdict


def _executed(machine: _Machine) -> str:
    if machine.pinned and isinstance(machine.verdict, Pin):
        return machine.verdict.record.id
    return machine.verdict.step.id if machine.sent and machine.sent.stored and isinstance(machine.verdict, Send) else ""


def _row(machine: _Machine) -> MachineRow:
    observation = machine.seen.observation if machine.seen else None
    record = observation.machine if observation else None
    final = _final(machine)
    reason, message = "", ""
    if machine.sent and machine.sent.stored:
        told = "was sent, no answer came, and it counts as stored" if machine.sent.unanswered else "was sent and stored"
        reason, message = "ConfigStored", f"The configuration {told}; follow it with talos_stage."
    elif isinstance(final, Refused):
        reason, message = final.refusal.reason, f"{final.refusal.message} {final.refusal.hint}".strip()
    elif isinstance(final, (Follow, Unchanged)):
        reason, message = "ConfigStored" if isinstance(final, Follow) else "", final.message
    elif isinstance(final, Pin):
        message = "The certificate is recorded now; the configuration is sent by a later run that sees the same one."
    elif isinstance(final, Send) and final.step.waits_for:
        message = f"Waits for {', '.join(f'{wait.target}: {wait.what}' for wait in final.step.waits_for)}."
    ready = condition_of(record, "Ready") if record else None
    stage = "installing" if machine.sent and machine.sent.stored else text_at(record.status, "stage") if record else ""
    return MachineRow(machine.job.label, observation.target.cluster if observation else "", stage,
                      bool(ready and ready.status == "True"), reason, message, isinstance(final, (Send, Pin)))


def _data(status: Status) -> dict[str, Json]:
    return {key: plain(value) for key, value in status.items()}


def _would_be(machine: _Machine, ports: Ports) -> Record | None:
    """The record as the plan would leave it, for the later tasks of a check run."""
    record = machine.seen.observation.machine if machine.seen else None
    if record is None:
        return None
    now = ports.clock.now()
    if isinstance(machine.verdict, Pin):
        return replace(record, status=_data(with_pin(dict(record.status), machine.verdict.record.fingerprint, now)))
    if isinstance(machine.verdict, Send) and not machine.verdict.step.waits_for:
        return replace(record, status=_data(with_stored(dict(record.status), machine.verdict.step.config, now)))
    return None
