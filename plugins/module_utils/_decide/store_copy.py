# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the records of one store may be moved to another (design section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from .._model.approval import status_lost
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.ports import LeaseView
from .._model.records import Broken, Json, Record
from .._model.store_place import StorePlace


@dataclass(frozen=True)
class Side:
    """One of the two stores as read. `bundles`: the form of each bundle that the source's clusters name, or its content where both have it."""

    description: str
    place: StorePlace
    records: tuple[Record, ...] = ()
    broken: tuple[Broken, ...] = ()
    vanished: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """`leases`: those of the source that somebody else holds. `unlockable`: why the source cannot be locked from here, or ''.
    `unequal`: bundles that both have and that differ. `clear`: whether bundles that were not would be in the clear."""

    source: Side
    target: Side
    leases: tuple[LeaseView, ...] = ()
    unlockable: str = ""
    bundles: tuple[str, ...] = ()
    unequal: tuple[str, ...] = ()
    clear: bool = False


@dataclass(frozen=True)
class MoveStore(Step):
    """Close the source, copy its records, statuses, events and bundles, and open the target."""

    action: ClassVar[str] = "MoveStore"

    source: str = ""
    destination: str = ""
    records: tuple[str, ...] = field(default=(), repr=False, metadata={"plan": "digest"})


def decide_store_copy(seen: Seen) -> Plan:
    """One step, or the first refusal that holds. A move that was finished is done, and one that was interrupted goes on."""
    source, target = seen.source, seen.target
    step_target = Target(kind="Store", name=target.description)
    if moved_already(source.place, target.place) and target.place.live:
        return Plan()
    for rule, gate in GATES:
        refusal = next(gate(seen), None)
        if refusal is not None:
            return Plan(refusals=(replace(refusal, target=step_target, rule=rule),))
    warnings = tuple(Warn(step_target, f"The bundle {name} will stand in the clear in {target.description}.", "4/copy-bundle-clear")
                     for name in seen.bundles if seen.clear)
    if not source.place.live:
        why = f"moving the records of {source.description} was begun and not finished"
    else:
        why = f"{len(source.records)} record{'' if len(source.records) == 1 else 's'} of {source.description}, which is closed by it"
    names = tuple(sorted(f"{record.kind} {record.name}" for record in source.records))
    return Plan((MoveStore(step_target, why, source.description, target.description, names),), warnings=warnings)


def moved_already(source: StorePlace, target: StorePlace) -> bool:
    """Whether the source says that its records went to this very target."""
    return bool(source.moved_to and source.moved_to_id == target.id)


def fills(source: StorePlace, target: StorePlace) -> bool:
    """Whether what is in the target is a copy of the source's records, whole or in part, that no run has worked with since."""
    return bool(source.id and source.id in (target.filled_from_id, target.moved_to_id))


def copied(record: Record, via: str) -> Record:
    """The record as it is written into the target: the one who copies vouches for its approval."""
    if "approvedVia" not in record.spec or not via:
        return record
    spec: Mapping[str, Json] = {**record.spec, "approvedVia": via}
    return replace(record, spec=spec)


Gate = Callable[[Seen], Iterator[Refusal]]


def _no(reason: str, message: str, hint: str) -> Refusal:
    return Refusal(Target(kind="Store"), reason, message, hint)


def _same(seen: Seen) -> Iterator[Refusal]:
    if seen.source.description == seen.target.description or seen.source.place.id and seen.source.place.id == seen.target.place.id:
        yield _no("InvalidInput", f"Source and target are the same store, {seen.source.description}.", "Name another store to copy to.")


def _elsewhere(seen: Seen) -> Iterator[Refusal]:
    place = seen.source.place
    if place.moved_to and place.moved_to_id != seen.target.place.id:
        yield _no("StoreMoved", f"The records of {seen.source.description} were moved to {place.moved_to}.", "Copy from that store.")


def _unfinished(seen: Seen) -> Iterator[Refusal]:
    if seen.source.place.filled_from:
        yield _no("StoreMoved", f"The records of {seen.source.place.filled_from} are being moved to {seen.source.description}, and not all of them are there.",
                  "Finish that first: run store_copy again with those two stores.")


def _foreign(seen: Seen) -> Iterator[Refusal]:
    place, source = seen.target.place, seen.source.place.id
    for word, other, known in (("to", place.moved_to, place.moved_to_id), ("from", place.filled_from, place.filled_from_id)):
        if other and known != source:
            yield _no("StoreMoved", f"{seen.target.description} holds records that are moving {word} {other}.", "Choose another store to copy to.")


def _in_use(seen: Seen) -> Iterator[Refusal]:
    if (seen.target.records or seen.target.broken) and not fills(seen.source.place, seen.target.place):
        count = len(seen.target.records) + len(seen.target.broken)
        yield _no("RecordExists", f"{seen.target.description} holds {count} record{'' if count == 1 else 's'} of its own.",
                  "Choose an empty store to copy to: records of two stores are not mixed.")


def _unlockable(seen: Seen) -> Iterator[Refusal]:
    if seen.unlockable and seen.source.place.live:
        yield _no("NoLock", seen.unlockable, "Copy from the place that locks the store, or take it over first.")


def _held(seen: Seen) -> Iterator[Refusal]:
    for view in seen.leases if seen.source.place.live else ():
        yield _no("LockHeld", f"The lock {view.name} of {seen.source.description} is held by {view.holder} for {view.purpose}.",
                  "Wait until that run has ended, and stop the loop while the records are moved.")


def _broken(seen: Seen) -> Iterator[Refusal]:
    for entry in seen.source.broken:
        yield _no("RecordBroken", f"{entry.kind} {entry.name} cannot be read ({entry.source}): {entry.message}.", "Repair it first; nothing is left behind.")


def _lost(seen: Seen) -> Iterator[Refusal]:
    names = [*(record.name for record in seen.source.records if status_lost(record)), *seen.source.vanished]
    for name in names:
        yield _no("StatusMissing", f"The status of the approved machine {name}, or its record, is missing, and with it what was sent to it.",
                  "Bring it back, trust the machine again, or delete its record: a new store would forget that it is missing.")


def _unequal(seen: Seen) -> Iterator[Refusal]:
    for name in seen.unequal:
        yield _no("RecordExists", f"Both stores have a secrets bundle {name}, and they differ.", "Remove the one that is not the cluster's.")


GATES: tuple[tuple[str, Gate], ...] = (
    ("4/copy-same", _same),
    ("4/copy-moved-elsewhere", _elsewhere),
    ("4/copy-source-unfinished", _unfinished),
    ("4/copy-target-foreign", _foreign),
    ("4/copy-target-in-use", _in_use),
    ("4/copy-no-lock", _unlockable),
    ("4/copy-lease-held", _held),
    ("4/copy-broken", _broken),
    ("4/copy-status-lost", _lost),
    ("4/copy-bundle-differs", _unequal),
)
