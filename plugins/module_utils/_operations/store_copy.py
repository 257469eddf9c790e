# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Move the records of one store to another (design section 4).

The order is what makes a crash harmless: the target is marked as being filled, the source as moved, everything is copied, and last the
target is opened. At no time do runs work with both; between the marks with none, and the next run goes on.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from .._decide.store_copy import MoveStore, Seen, Side, copied, decide_store_copy, fills, moved_already
from .._model.approval import approval_state
from .._model.errors import TalosError
from .._model.outcome import Outcome, refused_by
from .._model.ports import Gate, LeaseView, Ports
from .._model.records import BACKUP, CLUSTER, CONFIG_PATCH, MACHINE, RECLAIM, Json, Record, leader_lock, text_at
from .._model.store_place import MovableStore, StorePlace
from .._model.timing import Timing
from .lease import held

#: Clusters first, since everything else names one.
ORDER = (CLUSTER, CONFIG_PATCH, MACHINE, RECLAIM, BACKUP)
#: How the locks of records are called: a run may hold one of these.
LOCKS = {CLUSTER: "", BACKUP: "backup.", RECLAIM: "reclaim."}
#: What of a kind's spec names something that lies among the secrets: a bundle, the keys of a bucket, a talosconfig.
SECRETS = {CLUSTER: ("secretsRef",), BACKUP: ("destination", "s3", "credentialsRef"), RECLAIM: ("talosconfigRef",)}
#: How often what changed while it was copied is copied again.
_ROUNDS = 5


@dataclass(frozen=True)
class Request:
    """From where to where. `into_files`: the target keeps bundles as files. `locks`: further ones that somebody may hold."""

    source: MovableStore
    target: MovableStore
    into_files: bool = False
    locks: tuple[str, ...] = (leader_lock("runner"),)
    timing: Timing = field(default_factory=Timing)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read both, decide, show the plan, move. Raises TalosError as stores do."""
    seen = _observe(request, ports.clock.now())
    plan = decide_store_copy(seen)
    granted = gate(plan)
    if plan.refusals:
        return refused_by(plan)
    executed = []
    for step in granted.steps:
        if isinstance(step, MoveStore):
            await _move(request, ports)
            executed.append(step.id)
    moved = sorted(f"{record.kind}/{record.name}" for record in seen.source.records)
    message = "" if plan.steps else f"The records of {seen.source.description} are in {seen.target.description} already."
    told: list[Json] = [*moved]
    return Outcome(plan=plan, executed=tuple(executed), message=message, extra={"records": told})


def _observe(request: Request, now: float) -> Seen:
    source, target = request.source, request.target
    bundles = _bundles(source)
    both = [name for name in bundles if target.bundle_form(name) != "absent"]
    unequal = tuple(name for name in both if target.bundle(name) != source.bundle(name))
    new = tuple(name for name in bundles if name not in both)
    return Seen(_side(source), _side(target), _held_by_others(request, now), source.leases.no_lock(), new, unequal, request.into_files)


def _side(store: MovableStore) -> Side:
    listings = [store.list(kind) for kind in ORDER]
    return Side(store.description, store.place(), tuple(record for listing in listings for record in listing.records),
                tuple(entry for listing in listings for entry in listing.broken), tuple(name for listing in listings for name in listing.vanished))


def _locks(request: Request) -> tuple[str, ...]:
    """Names of the locks that a run on the source may hold, in the order in which several are taken."""
    named = {f"{prefix}{record.name}" for kind, prefix in LOCKS.items() for record in request.source.list(kind).records}
    return tuple(sorted({*named, *request.locks}))


def _held_by_others(request: Request, now: float) -> tuple[LeaseView, ...]:
    """Those that were renewed lately; whether an old one is over is found out when it is taken."""
    found = (request.source.leases.read(name) for name in _locks(request))
    return tuple(view for view in found if view is not None and view.holder and now < view.renewed_at + view.duration)


async def _move(request: Request, ports: Ports) -> None:
    source, target = request.source, request.target
    source.copying = target.copying = True
    try:
        async with AsyncExitStack() as locks:
            if source.place().live:
                for name in _locks(request):
                    await locks.enter_async_context(held(_on(ports, source), name, "moving the records to another store", request.timing))
            _close(source, target)
            ports.progress(f"{source.description} is closed")
            _copy_all(request, ports)
            target.set_place(StorePlace())
            ports.progress(f"{target.description} is open")
    finally:
        source.copying = target.copying = False


def _on(ports: Ports, source: MovableStore) -> Ports:
    return Ports(ports.nodes, source, ports.clock, ports.progress, ports.actor, holder=ports.holder)


def _close(source: MovableStore, target: MovableStore) -> None:
    """Mark both, the target first: a run that comes between finds the source open or nothing open."""
    here, there = source.place(), target.place()
    if not here.id:
        here = source.set_place(here)
    if not fills(here, StorePlace(filled_from_id=there.filled_from_id)):
        there = target.set_place(StorePlace(filled_from=source.description, filled_from_id=here.id))
    if not moved_already(here, there):
        source.set_place(StorePlace(moved_to=target.description, moved_to_id=there.id))


def _copy_all(request: Request, ports: Ports) -> None:
    """Copy until nothing differs: a status that was on its way when the source was closed is copied too."""
    source, target = request.source, request.target
    via = target.account() or ports.actor.via
    for name in _bundles(source):
        if target.bundle_form(name) == "absent":
            target.write_bundle(name, source.bundle(name))
    for dummy in range(_ROUNDS):
        if not sum(_copy_kind(source, target, kind, via, ports) for kind in ORDER):
            break
    else:
        raise TalosError("RecordChanged", f"Something goes on writing to {source.description} although it is closed.",
                         "Stop the loop and every run on it, and run this again.")
    there = set(target.events())
    for event in source.events():
        if event not in there:
            target.record_event(event)


def _copy_kind(source: MovableStore, target: MovableStore, kind: str, via: str, ports: Ports) -> int:
    """How many records were written or deleted."""
    wanted = {record.name: copied(record, via) for record in source.list(kind).records}
    listed = target.list(kind)
    there = {record.name: record for record in listed.records}
    done = 0
    for name in sorted(there.keys() - wanted.keys()):
        target.delete(there[name])
        done += 1
    for name, record in wanted.items():
        done += _put(target, record, there.get(name))
    if done:
        ports.progress(f"{done} of kind {kind} copied")
    return done


def _put(target: MovableStore, record: Record, there: Record | None) -> int:
    if there is not None and not _equal(there, record):
        target.delete(there)
        there = None
    if there is None:
        target.create(record)
        return 1
    if dict(there.status) == _status(record, there.uid) or not there.status and not record.status and approval_state(record) != "approved":
        return 0
    target.patch_status(there.ref, there.uid, lambda dummy: {**_status(record, there.uid)})
    return 1


def _equal(there: Record, record: Record) -> bool:
    return (dict(there.spec), dict(there.labels), dict(there.annotations)) == (dict(record.spec), dict(record.labels), dict(record.annotations))


def _status(record: Record, uid: str) -> dict[str, Json]:
    return {**record.status, "recordUID": uid}


def _bundles(source: MovableStore) -> tuple[str, ...]:
    """The bundles, and the credentials beside them, that records name and that are there."""
    named = {text_at(record.spec, *path, "name") for kind, path in SECRETS.items() for record in source.list(kind).records} - {""}
    return tuple(sorted(name for name in named if source.bundle_form(name) != "absent"))
