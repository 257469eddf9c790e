# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`etcd_restore`: etcd out of a snapshot, on a fresh first control plane, under the lock (design section 17)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from .._decide.approved import in_cluster
from .._decide.bootstrap import cluster_target
from .._decide.conditions import Status
from .._decide.following import Answer, is_member
from .._decide.restore import (
    Done, Go, Install, NeedAnswers, Refused, RestoreEtcd, Restoring, Snapshot, Verdict, asked_control_planes, decide_restore, restore_warnings, with_restored,
    with_restoring, without_restoring,
)
from .._decide.same_machine import difference
from .._model.backups import Archive, Destination, Keys, parsed_name
from .._model.errors import LOCK_REASONS, TalosError
from .._model.identity import Identity
from .._model.machine import dial_endpoint, identity_of
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Step, Wait, plain
from .._model.ports import Gate, Ports, Session
from .._model.records import CLUSTER, MACHINE, Record, list_at, text_at
from .._model.timing import Timing
from . import reconcile
from .backup_place import open_place, place_of, read_backup
from .in_thread import in_thread
from .lease import held
from .life_reads import look, unknown
from .machine_effects import Effects
from .provisioning_reads import Surroundings
from .record_reads import credentials_for, need_store, no_cluster, rules_for
from .rendering import Renderer
from .rounds import Round
from .snapshot_stream import Passing, shown_size
from .teller import Teller


#: What a node says that did not begin.
_NOT_BEGUN = frozenset({"BootstrapNotAvailable", "FailedPrecondition", "AlreadyExists", "NotControlPlane", "PermissionDenied", "NodeRefused"})


@dataclass(frozen=True)
class Request:
    """Which snapshot goes onto which control plane. `snapshot` '' is the newest of the cluster that lies at the place. `wait`: for how many
    seconds that what passes by itself is waited for, each time."""

    cluster: str
    machine: str
    backup: str = ""
    source: Destination = field(default_factory=Destination)
    keys: Keys = field(default_factory=Keys)
    snapshot: str = ""
    confirm: str = ""
    lost: tuple[str, ...] = ()
    skip_hash_check: bool = False
    wait: float = 600.0
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass
class _Run:
    """One run: what it was asked, and what it found out once."""

    request: Request
    ports: Ports
    place: Destination
    record: Record | None
    archive: Archive | None = None
    snapshot: Observed[Snapshot] = field(default_factory=Absent)
    #: It was sent its configuration: where it still answers in maintenance mode it is about to install, and is waited for.
    installed: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read the snapshot to its end, observe, decide, show the plan; install a wiped machine first; restore under the lock."""
    if ports.store is None:
        alone = Refusal(cluster_target(request.cluster, "", None), "NoLock", "A restore needs the lock of its cluster, and without a store there is none.",
                        "Name a store and the cluster's record.", "13/no-store")
        gate(Plan(refusals=(alone,)))
        return _outcome(request, Plan(refusals=(alone,)), (), alone)
    record = read_backup(ports, request.backup)
    one = _Run(request, ports, place_of(record, request.source), record)
    deadline = ports.clock.monotonic() + request.wait
    seen, verdict = await _observe_until(one, deadline)
    plan = await _plan(one, seen, verdict, deadline)
    granted = {step.id for step in gate(plan).steps}
    executed: list[str] = []
    refusal: Refusal | None = verdict.refusal if isinstance(verdict, Refused) else None
    error: TalosError | None = None
    if isinstance(verdict, Done) and seen.cluster is not None and not ports.check:
        _write(ports, seen.cluster, lambda status: with_restored(status, ports.clock.now()))
    if isinstance(verdict, (Install, Go)) and verdict.step.id in granted:
        try:
            if isinstance(verdict, Install):
                executed += await _install(one, granted, deadline)
                one.installed = True
            refusal = await _under_lock(one, verdict.step, ports.clock.monotonic() + request.wait)
            executed += [] if refusal is not None else [verdict.step.id]
        except TalosError as caught:
            error = caught
            rule = "13/lock" if error.reason in LOCK_REASONS else "17/restore-failed"
            told = (held for held in plan.refusals if (held.reason, held.message) == (caught.reason, caught.message))
            refusal = next(told, Refusal(seen.target, error.reason, error.message, error.hint, rule))
    return _outcome(request, plan, tuple(executed), refusal, _would_be(ports, seen, verdict), error, verdict.message if isinstance(verdict, Done) else "")


async def _observe_until(one: _Run, deadline: float) -> tuple[Restoring, Verdict]:
    """Observe; wait for what passes by itself, except in check mode."""
    ports, teller = one.ports, Teller(one.ports, one.request.machine)
    while True:
        seen, verdict = await _observe(one)
        left = deadline - ports.clock.monotonic()
        if not isinstance(verdict, Refused) or not verdict.passing or ports.check or left <= 0:
            return seen, verdict
        teller(verdict.refusal.message)
        await ports.clock.sleep(min(one.request.timing.follow, left))


async def _observe(one: _Run) -> tuple[Restoring, Verdict]:
    seen = _records(one)
    verdict = decide_restore(seen)
    if isinstance(verdict, Refused) and verdict.refusal.rule == "17/snapshot-invalid" and isinstance(one.snapshot, Absent):
        # Everything that needs no reading speaks first: a snapshot of gigabytes is not read in vain.
        one.snapshot = await _read_snapshot(one)
        seen = replace(seen, snapshot=one.snapshot)
        verdict = decide_restore(seen)
    if isinstance(verdict, NeedAnswers):
        found = await asyncio.gather(*(_ask(one, seen, machine) for machine in asked_control_planes(seen)))
        seen = replace(seen, answers=tuple((name, answer) for name, answer, dummy in found),
                       wiped=not one.installed and any(name == seen.target.name and wiped for name, dummy, wiped in found))
        verdict = decide_restore(seen)
    return seen, verdict


def _records(one: _Run) -> Restoring:
    request, store = one.request, need_store(one.ports)
    cluster = store.get(CLUSTER, request.cluster)
    if cluster is None:
        raise no_cluster(store, request.cluster)
    machines = in_cluster(store.list(MACHINE).records, request.cluster)
    machine = next((entry for entry in machines if entry.name == request.machine), None)
    if machine is None:
        raise TalosError("RecordNotFound", f"There is no machine {request.machine} in cluster {request.cluster}.",
                         "Check the name; talos_machine_info lists the machines.")
    return Restoring(cluster_target(request.cluster, cluster.uid, machine), cluster, machine, machines, one.place, one.snapshot, request.confirm,
                     request.lost, request.skip_hash_check)


async def _read_snapshot(one: _Run) -> Observed[Snapshot]:
    """Read it to its end: nothing is sent that is not whole."""
    request = one.request
    try:
        one.archive = open_place(one.ports, one.place, request.keys)
        name = request.snapshot or await _newest(one.archive, request.cluster, one.record)
        one.ports.progress(f"{request.cluster}: reading {name} in {one.place}")
        passing = Passing()

        def read(archive: Archive) -> None:
            with archive.read(name) as pieces:
                for piece in pieces:
                    passing.take(piece)

        archive = one.archive
        await in_thread(lambda: read(archive))
    except TalosError as error:
        return Unknown(error.reason, error.text)
    saved = next((text_at(entry, "sha256") for entry in list_at(one.record.status if one.record else {}, "backups") if text_at(entry, "name") == name), "")
    return Present(Snapshot(name, passing.size, passing.sha256, passing.problem(), saved), str(one.place))


async def _newest(archive: Archive, cluster: str, record: Record | None) -> str:
    """The newest snapshot that this product wrote there for the cluster, of the record where one is named."""
    named = [(parts.time, entry.name) for entry in await in_thread(archive.stored) if (parts := parsed_name(entry.name)) is not None
             and parts.cluster == cluster and (record is None or parts.record == record.name)]
    if not named:
        raise TalosError("SnapshotNotFound", f"No snapshot of cluster {cluster} lies there.", "Name the file with snapshot, and check the place.")
    return max(named)[1]


async def _ask(one: _Run, seen: Restoring, machine: Record) -> tuple[str, Observed[Answer], bool]:
    """The control plane's authenticated answer; for the machine itself also whether it waits in maintenance mode, as itself."""
    own = machine.name == one.request.machine
    try:
        endpoint = dial_endpoint(machine)
        rules_for(seen.cluster, one.request.allow_loopback, endpoint)
        credentials = credentials_for(one.ports, one.request.cluster, seen.cluster)
        found = await look(one.ports, endpoint, credentials, Identity(), one.request.timing, insecurely=own)
    except TalosError as error:
        return machine.name, unknown(error), False
    wiped = own and isinstance(found.insecure, Present) and not difference(identity_of(machine), found.insecure.value.identity)
    return machine.name, found.answer, wiped


def _around(one: _Run) -> Surroundings:
    """The surroundings of a pass over the one machine, for which the confirmed restore lifts what holds a wiped control plane (section 12)."""
    request, store = one.request, need_store(one.ports)
    return Surroundings(one.ports, request.timing, request.allow_loopback, Renderer(store), names=(request.machine,), discard_etcd=request.cluster)


async def _first_round(one: _Run, deadline: float) -> Round:
    """What the wiped machine calls for; what holds it and passes by itself is waited for, except in check mode."""
    ports, teller = one.ports, Teller(one.ports, one.request.machine)
    while True:
        found = (await reconcile.look(_around(one), one.request.machine, Effects(ports))).round
        left = deadline - ports.clock.monotonic()
        if not found.held or found.settled or found.plan.steps or ports.check or left <= 0:
            return found
        teller(found.row.message)
        await ports.clock.sleep(min(found.requeue_after, one.request.timing.follow, left))


async def _plan(one: _Run, seen: Restoring, verdict: Verdict, deadline: float) -> Plan:
    warnings = restore_warnings(seen) if isinstance(verdict, (Install, Go)) else ()
    if isinstance(verdict, Refused):
        waits = (Wait(verdict.refusal.message, one.request.wait, one.request.machine),) if verdict.passing else ()
        return Plan(refusals=(verdict.refusal,), waits=waits)
    steps: tuple[Step, ...] = (verdict.step,) if isinstance(verdict, (Install, Go)) else ()
    if isinstance(verdict, Install):
        first = await _first_round(one, deadline)
        passing = () if first.settled else tuple(Wait(held.message, one.request.wait, one.request.machine) for held in first.plan.refusals)
        return Plan((*first.plan.steps, *steps), () if passing else first.plan.refusals, (*warnings, *first.plan.warnings), passing)
    return Plan(steps, warnings=warnings)


async def _install(one: _Run, granted: set[str], deadline: float) -> list[str]:
    """Send the wiped machine its configuration, step by step as the controller does; gives the ids of what was done. Raises TalosError."""
    done: list[str] = []
    ports, teller = one.ports, Teller(one.ports, one.request.machine)
    while True:
        around, effects = _around(one), Effects(ports)
        looked = await reconcile.look(around, one.request.machine, effects)
        steps = looked.round.plan.steps
        # One that still answers in maintenance mode was sent its configuration and has not begun to install, or was wiped once more.
        if not steps and not looked.round.held and looked.joining and looked.round.row.stage != "maintenance":
            return done
        if looked.round.held and looked.round.settled and not steps:
            refusal = looked.round.plan.refusals[0]
            raise TalosError(refusal.reason, refusal.message, refusal.hint)
        step = steps[0] if steps else None
        if step is not None and step.id not in granted:
            raise TalosError("PlanChanged", f"{one.request.machine} calls for another step now: {step.action}.", "Run this again, and read the plan.")
        if step is not None and not step.waits_for:
            acted = await looked.act(around, looked.round, step, effects)
            if acted.done:
                done.append(step.id)
                continue
            teller(acted.refusal.message if acted.refusal is not None else looked.round.row.message)
        else:
            teller(looked.round.row.message)
        left = deadline - ports.clock.monotonic()
        if left <= 0:
            raise TalosError("TimedOut", f"{one.request.machine} was not installed in time. {looked.round.row.message}".rstrip(), "Run this again.")
        await ports.clock.sleep(min(looked.round.requeue_after, one.request.timing.follow, left))


async def _under_lock(one: _Run, step: RestoreEtcd, deadline: float) -> Refusal | None:
    """Observe again until the machine waits for etcd, then restore under the lock; gives why not. Raises TalosError."""
    request, ports = one.request, one.ports
    seen, verdict = await _observe_until(one, deadline)
    if isinstance(verdict, Refused):
        return verdict.refusal
    async with held(ports, request.cluster, f"restore of etcd on {request.machine}", request.timing) as lease:
        seen, verdict = await _observe(one)
        if not isinstance(verdict, Go) or verdict.step.id != step.id or seen.machine is None or seen.cluster is None:
            return verdict.refusal if isinstance(verdict, Refused) else Refusal(
                step.target, "RecordChanged", "The machine changed while the lock was waited for.", "Run this again.", "17/restore-changed")
        credentials = credentials_for(ports, request.cluster, seen.cluster)
        if not isinstance(credentials, Present):
            raise TalosError("SecretsUnavailable", "There are no credentials for the cluster.", "Give talosconfig, or a secrets bundle.")
        async with ports.nodes.authenticated(dial_endpoint(seen.machine), credentials.value) as session:
            other = difference(identity_of(seen.machine), await session.identity())
            if other:
                return Refusal(step.target, "EndpointIdentityMismatch", f"Another machine answers: {other}.", "Edit spec.endpoint.", "17/restore-other-node")
            by = ports.actor.by or ports.holder
            cluster = _write(ports, seen.cluster, lambda status: with_restoring(status, request.machine, by, ports.clock.now()), expect=True)
            try:
                await _upload(one, session, step)
                lease.confirm()
            except BaseException:
                # An upload alone changes nothing: etcd is begun by the call that follows.
                _write(ports, cluster, lambda status: without_restoring(status, request.machine))
                raise
            try:
                await session.bootstrap(recover=True, unverified=request.skip_hash_check)
            except TalosError as error:
                if error.reason in _NOT_BEGUN:
                    _write(ports, cluster, lambda status: without_restoring(status, request.machine))
                    raise
                ports.progress(f"{request.machine}: the answer was lost ({error.message}); looking whether etcd comes up")
        return await _until_member(one, seen, cluster, step)


async def _upload(one: _Run, session: Session, step: RestoreEtcd) -> None:
    """Stream it from its place to the node. What is sent is hashed again: it has to be what was read before."""
    archive, name = one.archive, step.snapshot
    if archive is None:
        raise ValueError("the snapshot was read from its archive before")
    passing = Passing()
    size = one.snapshot.value.size if isinstance(one.snapshot, Present) else 0
    one.ports.progress(f"{one.request.machine}: sending {name}, {shown_size(size)}")

    def pieces() -> Iterator[bytes]:
        with archive.read(name) as read:
            for piece in read:
                passing.take(piece)
                yield piece

    await session.etcd_recover(pieces())
    if passing.sha256 != step.sha256:
        raise TalosError("SnapshotInvalid", f"{name} changed while it was sent.", "Nothing was begun with it. Run this again.")


async def _until_member(one: _Run, seen: Restoring, cluster: Record, step: RestoreEtcd) -> Refusal | None:
    """Wait for the member that the snapshot makes; `status.operation` stays until it is there."""
    request, ports = one.request, one.ports
    teller, deadline = Teller(ports, request.machine), ports.clock.monotonic() + request.wait
    while seen.machine is not None:
        dummy, answer, unused = await _ask(one, seen, seen.machine)
        if isinstance(answer, Present) and is_member(answer.value.etcd):
            _write(ports, cluster, lambda status: with_restored(status, ports.clock.now()))
            return None
        if isinstance(answer, Present) and any(service.id == "etcd" and service.state == "Failed" for service in answer.value.services):
            return Refusal(step.target, "SnapshotInvalid", "The node did not take the snapshot: its etcd failed.", "Run this again with another snapshot.",
                           "17/restore-refused-by-node")
        if ports.clock.monotonic() >= deadline:
            return Refusal(step.target, "TimedOut", "etcd did not come up from the snapshot in time.", "Run this again: it looks first.",
                           "17/restore-unconfirmed-end")
        teller("etcd comes up from the snapshot")
        await ports.clock.sleep(min(request.timing.follow, 5.0))
    return None


def _write(ports: Ports, cluster: Record, change: Callable[[Status], Status], *, expect: bool = False) -> Record:
    return need_store(ports).patch_status(cluster.ref, cluster.uid, change, expect=cluster if expect else None)


def _would_be(ports: Ports, seen: Restoring, verdict: Verdict) -> Record | None:
    if not ports.check or seen.cluster is None or not isinstance(verdict, (Go, Install)):
        return None
    status = with_restored(dict(seen.cluster.status), ports.clock.now())
    return replace(seen.cluster, status={key: plain(value) for key, value in status.items()})


def _outcome(request: Request, plan: Plan, executed: tuple[str, ...], refusal: Refusal | None, would_be: Record | None = None,
             error: TalosError | None = None, message: str = "") -> Outcome:
    plan = plan.refused(refusal)
    restored = next((step for step in plan.steps if isinstance(step, RestoreEtcd)), None)
    done = restored is not None and restored.id in executed
    if done and restored is not None:
        message = f"etcd runs on {request.machine} as {restored.snapshot} holds it."
    told = f"{refusal.message} {refusal.hint}".strip() if refusal else message
    row = MachineRow(request.machine, request.cluster, "", False, refusal.reason if refusal else "", told, bool(executed))
    waiting = (*(wait.what for wait in plan.waits), *(f"{wait.target}: {wait.what}" for step in plan.steps for wait in step.waits_for))
    return Outcome(plan=plan, executed=executed, machines=(row,), blocked=(request.machine,) if refusal else (), waiting_for=waiting,
                   refused=refusal is not None, reason=refusal.reason if refusal else "", message=told,
                   failure=replace(error.failure, step=restored.id if restored else "") if error is not None else None,
                   would_be=(would_be,) if would_be is not None else (), extra={"snapshot": restored.snapshot if restored else ""})
