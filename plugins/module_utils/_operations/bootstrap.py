# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_bootstrap`: start the etcd of a new cluster, once, under its lock (design section 9, "Bootstrap")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .._decide.approved import in_cluster, is_control_plane
from .._decide.bootstrap import (
    Bootstrap, Bootstrapping, Done, Go, NeedAnswers, Refused, Verdict, cluster_target, decide_bootstrap, sent_control_planes,
    with_bootstrapped, with_bootstrapping, without_bootstrapping,
)
from .._decide.conditions import Status
from .._decide.following import Answer, is_member
from .._decide.same_machine import difference
from .._model.approval import was_sent
from .._model.credentials import Credentials
from .._model.errors import LOCK_REASONS, TalosError
from .._model.identity import Identity
from .._model.machine import cluster_of, dial_endpoint, identity_of
from .._model.observations import Endpoint
from .._model.observed import Observed, Present
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Wait, plain
from .._model.ports import Gate, Ports, Session
from .._model.records import CLUSTER, MACHINE, Record
from .._model.timing import Timing
from .lease import held
from .life_reads import look, unknown
from .record_reads import credentials_for, no_cluster, rules_for
from .teller import Teller


@dataclass(frozen=True)
class Request:
    """Which control plane of which cluster ('' is the one that its record names).

    `wait`: for how many seconds a refusal that passes by itself is waited for.
    """

    cluster: str
    machine: str
    wait: float = 600.0
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass(frozen=True)
class _Result:
    """How the step ended. `found`: under the lock it was done already, by another run."""

    done: bool = False
    found: Done | None = None
    refused: Refused | None = None
    error: TalosError | None = None


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe, decide, show the plan, and bootstrap on readings made again under the lock."""
    if ports.store is None:
        target = cluster_target(request.cluster, "", None)
        refused = Refused(Refusal(target, "NoLock", "A bootstrap needs the lock of its cluster, and without a store there is none.",
                                  "Name a store and the cluster's record.", "13/no-store"))
        plan = Plan(refusals=(refused.refusal,))
        gate(plan)
        return _outcome(request, plan, _Result(refused=refused), None)
    request = replace(request, cluster=request.cluster or _cluster_of(ports, request.machine))
    deadline = ports.clock.monotonic() + request.wait
    seen, verdict = await _observe_until(request, ports, deadline)
    if ports.check and isinstance(verdict, Refused) and verdict.later is not None:
        verdict = Go(verdict.later)
    plan = _plan(request, verdict)
    granted = gate(plan)
    result = _Result(refused=verdict if isinstance(verdict, Refused) else None)
    if isinstance(verdict, Done) and verdict.note and not ports.check:
        _write(ports, seen.cluster, lambda status: with_bootstrapped(status, ports.clock.now()))
    if isinstance(verdict, Go) and any(step.id == verdict.step.id for step in granted.steps):
        result = await _until_done(request, ports, verdict.step, deadline)
    return _outcome(request, plan, result, _would_be(ports, seen, verdict), verdict)


async def _observe_until(request: Request, ports: Ports, deadline: float) -> tuple[Bootstrapping, Verdict]:
    """Observe; wait for what passes by itself, except in check mode."""
    teller = Teller(ports, request.machine)
    while True:
        seen, verdict = await _observe(request, ports)
        left = deadline - ports.clock.monotonic()
        if not isinstance(verdict, Refused) or not verdict.passing or ports.check or left <= 0:
            return seen, verdict
        teller(verdict.refusal.message)
        await ports.clock.sleep(min(request.timing.follow, left))


async def _observe(request: Request, ports: Ports) -> tuple[Bootstrapping, Verdict]:
    seen = _records(request, ports)
    verdict = decide_bootstrap(seen)
    if isinstance(verdict, NeedAnswers):
        answers = await asyncio.gather(*(_ask(request, ports, seen, machine) for machine in sent_control_planes(seen)))
        seen = replace(seen, answers=tuple(answers))
        verdict = decide_bootstrap(seen)
    return seen, verdict


def _cluster_of(ports: Ports, name: str) -> str:
    machine = ports.store.get(MACHINE, name) if ports.store is not None else None
    if machine is None:
        raise TalosError("RecordNotFound", f"There is no machine {name} in the store.", "Check the name; talos_machine_info lists the machines.")
    return cluster_of(machine)


def _records(request: Request, ports: Ports) -> Bootstrapping:
    if ports.store is None:
        raise ValueError("a bootstrap without a store is refused before anything is read")
    cluster = ports.store.get(CLUSTER, request.cluster)
    if cluster is None:
        raise no_cluster(ports.store, request.cluster)
    machines = in_cluster(ports.store.list(MACHINE).records, request.cluster)
    machine = next((entry for entry in machines if entry.name == request.machine), None)
    if machine is None:
        raise TalosError("RecordNotFound", f"There is no machine {request.machine} in cluster {request.cluster}.",
                         "Check the name; talos_machine_info lists the machines.")
    return Bootstrapping(cluster_target(request.cluster, cluster.uid, machine), cluster, machine, machines,
                         would_be_sent=frozenset(entry.name for entry in machines if is_control_plane(entry) and _only_would_be_sent(ports, entry)))


def _only_would_be_sent(ports: Ports, machine: Record) -> bool:
    """Whether it is only in this check run that the machine was sent a configuration."""
    if ports.recorded is None or not was_sent(machine):
        return False
    recorded = ports.recorded(MACHINE, machine.name)
    return recorded is None or not was_sent(recorded)


async def _ask(request: Request, ports: Ports, seen: Bootstrapping, machine: Record) -> tuple[str, Observed[Answer]]:
    try:
        endpoint = _endpoint(request, seen, machine)
        credentials = credentials_for(ports, request.cluster, seen.cluster)
        following = await look(ports, endpoint, credentials, Identity(), request.timing, insecurely=False)
        answer = following.answer
    except TalosError as error:
        answer = unknown(error)
    return machine.name, answer


def _endpoint(request: Request, seen: Bootstrapping, machine: Record) -> Endpoint:
    endpoint = dial_endpoint(machine)
    rules_for(seen.cluster, request.allow_loopback, endpoint)
    return endpoint


def _credentials(request: Request, ports: Ports, seen: Bootstrapping) -> Credentials:
    found = credentials_for(ports, request.cluster, seen.cluster)
    if isinstance(found, Present):
        return found.value
    raise TalosError("SecretsUnavailable", getattr(found, "message", "") or "There are no credentials for the cluster.",
                     "Give talosconfig, or a secrets bundle that can be read.")


async def _until_done(request: Request, ports: Ports, step: Bootstrap, deadline: float) -> _Result:
    """Try until the node takes it, refuses it for good, or the time is over."""
    teller = Teller(ports, request.machine)
    while True:
        try:
            result = await _under_lock(request, ports, step)
        except TalosError as error:
            rule = "13/lock" if error.reason in LOCK_REASONS else "9/bootstrap-failed"
            return _Result(refused=Refused(Refusal(step.target, error.reason, error.message, error.hint, rule)), error=error)
        left = deadline - ports.clock.monotonic()
        if result.done or result.refused is None or not result.refused.passing or left <= 0:
            return result
        teller(result.refused.refusal.message)
        await ports.clock.sleep(min(request.timing.follow, left))


async def _under_lock(request: Request, ports: Ports, step: Bootstrap) -> _Result:
    async with held(ports, request.cluster, f"bootstrap of {request.machine}", request.timing) as lease:
        seen, verdict = await _observe(request, ports)
        if isinstance(verdict, Done):
            if verdict.note:
                _write(ports, seen.cluster, lambda status: with_bootstrapped(status, ports.clock.now()))
            return _Result(found=verdict)
        if not isinstance(verdict, Go) or verdict.step.id != step.id or seen.machine is None or seen.cluster is None:
            return _Result(refused=verdict if isinstance(verdict, Refused) else Refused(Refusal(
                step.target, "RecordChanged", "The machine changed while the lock was waited for.", "Run this again.", "9/bootstrap-changed")))
        machine = seen.machine
        async with ports.nodes.authenticated(_endpoint(request, seen, machine), _credentials(request, ports, seen)) as session:
            other = difference(identity_of(machine), await session.identity())
            if other:
                return _Result(refused=Refused(Refusal(step.target, "EndpointIdentityMismatch", f"Another machine answers: {other}.",
                                                       "Edit spec.endpoint.", "9/bootstrap-other-node")))
            cluster = _write(ports, seen.cluster, lambda status: with_bootstrapping(status, machine.name, ports.clock.now()), expect=True)
            try:
                lease.confirm()
            except TalosError:
                _write(ports, cluster, lambda status: without_bootstrapping(status, machine.name))
                raise
            ports.progress(f"{machine.name}: bootstrapping etcd")
            return await _call(request, ports, seen, cluster, session, step)


async def _call(request: Request, ports: Ports, seen: Bootstrapping, cluster: Record, session: Session, step: Bootstrap) -> _Result:
    """The call, and what its answer means."""
    try:
        await session.bootstrap()
    except TalosError as error:
        if error.reason in ("BootstrapNotAvailable", "FailedPrecondition"):
            _write(ports, cluster, lambda status: without_bootstrapping(status, request.machine))
            return _Result(refused=Refused(Refusal(step.target, error.reason, error.message, error.hint, "9/bootstrap-not-available"), True), error=error)
        if await _became_member(request, ports, seen):
            _write(ports, cluster, lambda status: with_bootstrapped(status, ports.clock.now()))
            return _Result(done=True)
        if error.reason == "AlreadyExists":
            _write(ports, cluster, lambda status: without_bootstrapping(status, request.machine))
            return _Result(refused=Refused(Refusal(
                step.target, "AlreadyExists", "The node has etcd data and is no member that answers with a leader.",
                "Restore etcd from a backup, or wipe the node and provision it again.", "9/bootstrap-data-without-member")), error=error)
        return _Result(refused=Refused(Refusal(
            step.target, error.reason, f"{error.message} It is not known whether the bootstrap began; only {request.machine} may be bootstrapped now.",
            "Run this again: it looks first.", "9/bootstrap-unconfirmed")), error=error)
    _write(ports, cluster, lambda status: with_bootstrapped(status, ports.clock.now()))
    return _Result(done=True)


async def _became_member(request: Request, ports: Ports, seen: Bootstrapping) -> bool:
    """Whether the node is a voting member with a leader, looked at twice a follow interval apart."""
    if seen.machine is None:
        return False
    for unused in range(2):
        await ports.clock.sleep(request.timing.follow)
        dummy, answer = await _ask(request, ports, seen, seen.machine)
        if isinstance(answer, Present) and not difference(identity_of(seen.machine), answer.value.identity) and is_member(answer.value.etcd):
            return True
    return False


def _write(ports: Ports, cluster: Record | None, change: Callable[[Status], Status], *, expect: bool = False) -> Record:
    if ports.store is None or cluster is None:
        raise ValueError("a bootstrap has a store and a cluster")
    return ports.store.patch_status(cluster.ref, cluster.uid, change, expect=cluster if expect else None)


def _plan(request: Request, verdict: Verdict) -> Plan:
    if isinstance(verdict, Go):
        return Plan((replace(verdict.step, waits_for=tuple(replace(wait, deadline=request.wait) for wait in verdict.step.waits_for)),))
    if isinstance(verdict, Refused):
        waits = (Wait(verdict.refusal.message, request.wait, request.machine),) if verdict.passing else ()
        return Plan(refusals=(verdict.refusal,), waits=waits)
    return Plan()


def _would_be(ports: Ports, seen: Bootstrapping, verdict: Verdict) -> Record | None:
    if not ports.check or seen.cluster is None or not isinstance(verdict, (Go, Done)):
        return None
    status = with_bootstrapped(dict(seen.cluster.status), ports.clock.now())
    return replace(seen.cluster, status={key: plain(value) for key, value in status.items()})


def _waiting_for(plan: Plan) -> tuple[str, ...]:
    return (*(wait.what for wait in plan.waits), *(f"{wait.target}: {wait.what}" for step in plan.steps for wait in step.waits_for))


def _outcome(request: Request, plan: Plan, result: _Result, would_be: Record | None, verdict: Verdict | None = None) -> Outcome:
    refusal = result.refused.refusal if result.refused is not None else None
    verdict = result.found or verdict
    plan = plan.refused(refusal)
    message = verdict.message if isinstance(verdict, Done) else f"etcd was bootstrapped on {request.machine}." if result.done else ""
    told = f"{refusal.message} {refusal.hint}".strip() if refusal else message
    row = MachineRow(request.machine, request.cluster, "", False, refusal.reason if refusal else "", told, result.done)
    return Outcome(
        plan=plan, executed=tuple(step.id for step in plan.steps) if result.done else (), machines=(row,) if request.machine else (),
        blocked=(request.machine,) if refusal and request.machine else (), waiting_for=_waiting_for(plan),
        found_done=result.found is not None, refused=refusal is not None, reason=refusal.reason if refusal else "", message=told,
        failure=replace(result.error.failure, step=plan.steps[0].id if plan.steps else "") if refusal and result.error else None,
        would_be=(would_be,) if would_be is not None else ())
