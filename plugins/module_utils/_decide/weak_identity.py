# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When an identity does not single out one machine (design section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .._model.hardware import is_placeholder_uuid, meaningful
from .._model.identity import Identity, canonical_uuid, swapped_uuid
from .._model.records import Record, condition_of
from .same_machine import recorded_identity


@dataclass(frozen=True)
class Suspect:
    """One identity and what it is held against: what else answers now, and what the store records (all clusters)."""

    identity: Identity
    live: tuple[Identity, ...] = ()
    recorded: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Weakness:
    """A rule's id and one clause that says why; `other` is the record that is in the way, or ''."""

    rule: str
    message: str
    other: str = ""


def contradicts(record: Identity, found: Identity) -> bool:
    """Whether a recorded serial or set of MACs is another than the one found; what was not recorded contradicts nothing."""
    wanted, seen = meaningful(record), meaningful(found)
    return bool(wanted.serial and wanted.serial != seen.serial) or bool(wanted.macs and wanted.macs != seen.macs)


def _empty(suspect: Suspect) -> Weakness | None:
    if canonical_uuid(suspect.identity.uuid):
        return None
    return Weakness("6/weak-uuid-empty", "it reports no UUID")


def _placeholder(suspect: Suspect) -> Weakness | None:
    uuid = canonical_uuid(suspect.identity.uuid)
    if not uuid or not is_placeholder_uuid(uuid):
        return None
    return Weakness("6/weak-uuid-placeholder", f"its UUID {uuid} is a maker's default that many boards share")


def _live(suspect: Suspect) -> Weakness | None:
    mine = meaningful(suspect.identity)
    if mine.uuid and any(meaningful(other).uuid == mine.uuid and meaningful(other) != mine for other in suspect.live):
        return Weakness("6/weak-uuid-live", f"another machine answers with the same UUID {mine.uuid} now")
    return None


def _recorded(suspect: Suspect) -> Weakness | None:
    mine = meaningful(suspect.identity)
    for record in suspect.recorded:
        theirs = recorded_identity(record.spec)
        if mine.uuid and meaningful(theirs).uuid == mine.uuid and contradicts(theirs, suspect.identity):
            return Weakness("6/weak-uuid-recorded", f"machine {record.name} has the same UUID with another serial or other MACs",
                            record.name)
    return None


def _swapped(suspect: Suspect) -> Weakness | None:
    mine = meaningful(suspect.identity).uuid
    other = swapped_uuid(mine)
    if not other or other == mine:
        return None
    for record in suspect.recorded:
        if recorded_identity(record.spec).uuid == other:
            return Weakness("6/uuid-byte-swapped", f"its UUID is that of machine {record.name} in another byte order: probably one board",
                            record.name)
    if any(canonical_uuid(found.uuid) == other for found in suspect.live):
        return Weakness("6/uuid-byte-swapped", f"a machine answers with its UUID in another byte order ({other}): probably one board")
    return None


#: One row a way to be weak; a test takes each away.
RULES: tuple[tuple[str, Callable[[Suspect], Weakness | None]], ...] = (
    ("6/weak-uuid-empty", _empty),
    ("6/weak-uuid-placeholder", _placeholder),
    ("6/weak-uuid-live", _live),
    ("6/weak-uuid-recorded", _recorded),
    ("6/uuid-byte-swapped", _swapped),
)


def weaknesses(suspect: Suspect) -> tuple[Weakness, ...]:
    """Everything that makes the identity weak; () is a strong one."""
    return tuple(found for rule, check in RULES if (found := check(suspect)) is not None)


def is_weak(machine: Record, others: Iterable[Record], identity: Identity | None = None) -> bool:
    """Whether this machine's identity, as recorded or as found, is weak, or a person had to resolve it."""
    rest = tuple(other for other in others if other.name != machine.name)
    suspect = Suspect(recorded_identity(machine.spec) if identity is None else identity, (), rest)
    return bool(weaknesses(suspect)) or condition_of(machine, "WeakIdentity") is not None or machine.name.startswith("weak-")


def unique_parts(identity: Identity, others: Iterable[Record]) -> tuple[str, ...]:
    """Which parts of an identity are real and in no other record: what resolves a weak one."""
    mine = meaningful(identity)
    theirs = [meaningful(recorded_identity(record.spec)) for record in others]
    parts = []
    if mine.uuid and all(other.uuid not in (mine.uuid, swapped_uuid(mine.uuid)) for other in theirs):
        parts.append("uuid")
    if mine.serial and all(other.serial != mine.serial for other in theirs):
        parts.append("serial")
    if mine.macs and not any(set(other.macs) & set(mine.macs) for other in theirs):
        parts.append("macs")
    return tuple(parts)
