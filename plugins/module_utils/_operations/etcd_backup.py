# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`etcd_backup`: a snapshot of etcd, streamed to a folder or a store that speaks S3 (design section 17)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from .._decide.approved import approved_control_planes, in_cluster
from .._decide.backup import Asked, BackingUp, DeleteBackups, TakeBackup, Taken, decide_backup, is_due, surplus, with_backup, with_told
from .._decide.same_machine import difference
from .._model.approval import was_sent
from .._model.backups import Archive, Destination, Keys, Stored
from .._model.endpoint import Endpoint
from .._model.errors import TalosError
from .._model.machine import dial_endpoint, identity_of
from .._model.observed import Absent, Observed, Present, Unknown, value_or
from .._model.observations import EtcdStatus
from .._model.outcome import Outcome
from .._model.plan import Plan, Refusal, Target
from .._model.ports import Gate, Ports, Session
from .._model.records import BACKUP, CLUSTER, MACHINE, Json, Record, dig, text_at
from .._model.timing import Timing
from .backup_place import open_place, place_of, read_backup, read_place
from .in_thread import in_thread
from .lease import held
from .life_reads import unknown
from .record_reads import credentials_for, no_cluster, rules_for
from .snapshot_stream import Passing, shown_size

#: Seconds between two lines about a snapshot that is on its way.
_TELL = 10.0


@dataclass(frozen=True)
class Request:
    """`backup` names a record, which says cluster, destination and keep where the task does not. `machine` or `address`: the one control
    plane that is asked. `scheduled`: only while the record's schedule calls for it."""

    cluster: str = ""
    backup: str = ""
    machine: str = ""
    address: Endpoint | None = None
    destination: Destination = field(default_factory=Destination)
    keys: Keys = field(default_factory=Keys)
    keep: int = 0
    scheduled: bool = False
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass(frozen=True)
class _Seen:
    """The observation, with what acting needs of it."""

    observation: BackingUp
    archive: Archive | None
    where: dict[str, tuple[Endpoint, Record | None]]


@dataclass
class _Done:
    executed: list[str] = field(default_factory=list)
    taken: Taken | None = None
    deleted: tuple[str, ...] = ()
    error: TalosError | None = None
    elsewhere: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe, decide, show the plan; then stream, check, keep, and delete what is over."""
    seen = await _observe(request, ports)
    plan = decide_backup(seen.observation)
    granted = gate(plan)
    tell(ports, seen.observation.record, seen.observation.cluster, plan.refusals[0] if plan.refusals else None)
    done = _Done()
    if any(isinstance(step, TakeBackup) for step in granted.steps) and seen.archive is not None:
        await _act(request, ports, seen, seen.archive, granted, done)
        if done.error is not None:
            tell(ports, seen.observation.record, seen.observation.cluster, _failure(seen.observation, done.error))
    return _outcome(seen.observation, plan, done)


async def _observe(request: Request, ports: Ports) -> _Seen:
    record = read_backup(ports, request.backup)
    name = request.cluster or (text_at(record.spec, "clusterRef") if record is not None else "")
    if not name:
        raise TalosError("InvalidInput", "It is not said whose etcd is saved.", "Set cluster, or backup with the name of a record.")
    cluster = ports.store.get(CLUSTER, name) if ports.store is not None else None
    if ports.store is not None and cluster is None:
        raise no_cluster(ports.store, name)
    place = place_of(record, request.destination)
    archive, stored = await _place(ports, place, request.keys)
    where = _planes(request, ports, name)
    asked = await asyncio.gather(*(_ask(request, ports, name, cluster, entry, *known) for entry, known in where.items()))
    kept = dig(record.spec, "keep") if record is not None and not request.keep else request.keep
    own = (Target(kind=BACKUP, name=record.name, cluster=name, cluster_id=cluster.uid if cluster else "", uid=record.uid) if record is not None
           else Target(kind=CLUSTER, name=name, cluster=name, cluster_id=cluster.uid if cluster else "", uid=cluster.uid if cluster else ""))
    seen = BackingUp(own, place, stored, tuple(asked), cluster, record, kept if isinstance(kept, int) else 0, ports.clock.now())
    return _Seen(seen, archive, where)


async def _place(ports: Ports, place: Destination, keys: Keys) -> tuple[Archive | None, Observed[tuple[Stored, ...]]]:
    if not place.s3 and not place.path:
        return None, Absent("no destination was given")
    try:
        archive = open_place(ports, place, keys)
    except TalosError as error:
        return None, Unknown(error.reason, error.text)
    return archive, await read_place(archive)


def _planes(request: Request, ports: Ports, cluster: str) -> dict[str, tuple[Endpoint, Record | None]]:
    """Who can be asked: the control planes that were sent a configuration, or the one that was named."""
    if request.address is not None:
        return {str(request.address): (request.address, None)}
    if ports.store is None:
        raise TalosError("InvalidInput", "There is neither a store nor an address.", "Give address, the one of a control plane.")
    found: dict[str, tuple[Endpoint, Record | None]] = {}
    for machine in approved_control_planes(in_cluster(ports.store.list(MACHINE).records, cluster)):
        if was_sent(machine) and request.machine in ("", machine.name):
            found[machine.name] = (dial_endpoint(machine), machine)
    if request.machine and not found:
        raise TalosError("RecordNotFound", f"Cluster {cluster} has no control plane {request.machine} that was sent a configuration.", "Check the name.")
    return found


async def _ask(request: Request, ports: Ports, name: str, cluster: Record | None, label: str, endpoint: Endpoint, machine: Record | None) -> Asked:
    try:
        async with _session(request, ports, name, cluster, endpoint, machine) as session:
            return Asked(label, Present(await session.etcd_status(), str(endpoint)))
    except TalosError as error:
        return Asked(label, unknown(error))


@asynccontextmanager
async def _session(request: Request, ports: Ports, name: str, cluster: Record | None, endpoint: Endpoint, machine: Record | None) -> AsyncIterator[Session]:
    """A connection with the control plane itself. Raises TalosError."""
    rules_for(cluster, request.allow_loopback, endpoint)
    credentials = credentials_for(ports, name, cluster)
    if not isinstance(credentials, Present):
        raise TalosError("SecretsUnavailable", getattr(credentials, "message", "") or "There are no credentials.", "Give talosconfig.")
    async with ports.nodes.authenticated(endpoint, credentials.value) as session:
        other = difference(identity_of(machine), await session.identity()) if machine is not None else ""
        if other:
            raise TalosError("EndpointIdentityMismatch", f"Another machine answers at {endpoint}: {other}.", "Edit spec.endpoint.")
        yield session


async def _act(request: Request, ports: Ports, seen: _Seen, archive: Archive, granted: Plan, done: _Done) -> None:
    """Under a lease of the record, so that each due time is met once however many run."""
    record = seen.observation.record
    try:
        if record is None:
            await _take(request, ports, seen, archive, granted, done)
            return
        async with held(ports, f"backup.{record.name}", f"backup {record.name}", request.timing):
            again = read_backup(ports, record.name)
            if again is not None and request.scheduled and not is_due(again, ports.clock.now()):
                done.elsewhere = True
                return
            await _take(request, ports, seen, archive, granted, done)
    except TalosError as error:
        if request.scheduled and error.reason == "LockHeld":
            done.elsewhere = True  # another run takes it at this moment
            return
        done.error = error


async def _take(request: Request, ports: Ports, seen: _Seen, archive: Archive, granted: Plan, done: _Done) -> None:
    observation = replace(seen.observation, now=ports.clock.now())
    step = next(step for step in granted.steps if isinstance(step, TakeBackup))
    endpoint, machine = seen.where[step.source]
    async with _session(request, ports, observation.target.cluster, observation.cluster, endpoint, machine) as session:
        status = await session.etcd_status()
        done.taken = await _stream(ports, session, status, archive, observation, step.source)
    done.executed.append(step.id)
    prune = next((step for step in granted.steps if isinstance(step, DeleteBackups)), None)
    try:
        if prune is not None:
            done.deleted = await _prune(archive, observation, prune)
            done.executed.append(prune.id)
    finally:
        _write(ports, observation, done)


async def _stream(ports: Ports, session: Session, status: EtcdStatus, archive: Archive, seen: BackingUp, source: str) -> Taken:
    """From the node to the archive. Whatever ends it before the hash is right leaves nothing there."""
    name, passing, told = str(seen.name), Passing(), ports.clock.monotonic()
    about = f" of about {shown_size(status.db_size)}" if status.db_size else ""
    ports.progress(f"{seen.target}: saving etcd from {source} to {seen.destination}")
    writing = await in_thread(lambda: archive.begin(name))
    try:
        async for piece in session.etcd_snapshot():
            passing.take(piece)
            await in_thread(lambda piece=piece: writing.write(piece))  # type: ignore[misc]
            if ports.clock.monotonic() - told >= _TELL:
                told = ports.clock.monotonic()
                ports.progress(f"{seen.target}: {shown_size(passing.size)}{about}")
        passing.check(f"What {source} sent")
        await in_thread(writing.finish)
    except BaseException:
        writing.abandon()
        raise
    ports.progress(f"{seen.target}: saved {name}, {shown_size(passing.size)}")
    return Taken(name, seen.now, passing.size, passing.sha256, status.raft_index)


async def _prune(archive: Archive, seen: BackingUp, step: DeleteBackups) -> tuple[str, ...]:
    """Delete those of the plan that are still over now that the new one is whole."""
    over = surplus(await in_thread(archive.stored), seen.name, step.keep)
    gone = tuple(name for name in over if name in step.names)
    for name in gone:
        await in_thread(lambda name=name: archive.delete(name))  # type: ignore[misc]
    return gone


def _write(ports: Ports, seen: BackingUp, done: _Done) -> None:
    record, taken = seen.record, done.taken
    if ports.store is None or record is None or taken is None:
        return
    now = ports.clock.now()
    ports.store.patch_status(record.ref, record.uid, lambda status: with_told(
        with_backup(status, taken, done.deleted), record, seen.cluster, None, now, done=True))


def tell(ports: Ports, record: Record | None, cluster: Record | None, refusal: Refusal | None) -> None:
    """The record's conditions as they are before anything is taken; nothing is written where they say so already."""
    if ports.store is None or record is None or ports.check:
        return
    now = ports.clock.now()
    if with_told(dict(record.status), record, cluster, refusal, now) != dict(record.status):
        ports.store.patch_status(record.ref, record.uid, lambda status: with_told(status, record, cluster, refusal, now))


def _failure(seen: BackingUp, error: TalosError) -> Refusal:
    return Refusal(seen.target, error.reason, error.message, error.hint, "17/backup-failed")


def _outcome(seen: BackingUp, plan: Plan, done: _Done) -> Outcome:
    refusal = plan.refusals[0] if plan.refusals else None
    if done.error is not None:
        refusal = _failure(seen, done.error)
        plan = replace(plan, refusals=(*plan.refusals, refusal))
    taken = done.taken
    made: Json = None
    message = f"{refusal.message} {refusal.hint}".strip() if refusal is not None else "Another run took the backup." if done.elsewhere else ""
    if taken is not None:
        made = {"name": taken.name, "size": taken.size, "sha256": taken.sha256, "raft_index": taken.raft_index, "destination": str(seen.destination)}
        message = f"{taken.name} holds {shown_size(taken.size)} of etcd. {message}".strip()
    listed: list[Json] = [entry.name for entry in value_or(seen.stored, ())]
    return Outcome(plan=plan, executed=tuple(done.executed), refused=refusal is not None, reason=refusal.reason if refusal else "", message=message,
                   found_done=done.elsewhere, failure=done.error.failure if done.error is not None else None,
                   extra={"backup": made, "deleted": list(done.deleted), "found": listed})
