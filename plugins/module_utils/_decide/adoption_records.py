# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which record stands for a node that is looked at (design sections 3, 6 and 15).

A record may know its machine by less than a UUID, and one machine may have two records. Of several the one counts that says most against an
adoption, so that a copied file takes back neither a rejection nor an approval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .._model.approval import approval_state
from .._model.hardware import meaningful
from .._model.identity import Identity, canonical_uuid, swapped_uuid
from .._model.machine import cluster_of
from .._model.records import Record
from .record_twin import is_decided, one_machine
from .same_machine import recorded_identity


@dataclass(frozen=True)
class Recorded:
    """The machines of a store as an adoption for one cluster looks at them."""

    cluster: str
    machines: tuple[Record, ...]

    def of(self, identity: Identity) -> Record | None:
        """The record of the machine with this identity, None where it has none."""
        near = {record.name: record for mark in (*_marks(identity), swapped_uuid(canonical_uuid(identity.uuid)))
                for record in self._by_mark.get(mark, ())}
        mine = (record for record in near.values() if same_machine(identity, recorded_identity(record.spec)))
        return min(mine, key=lambda record: (self._weight(record), record.name), default=None)

    @cached_property
    def _by_mark(self) -> dict[str, list[Record]]:
        """By everything that may tell a machine, so that no node is compared with all records."""
        found: dict[str, list[Record]] = {}
        for record in self.machines:
            for mark in _marks(recorded_identity(record.spec)):
                found.setdefault(mark, []).append(record)
        return found

    def _weight(self, record: Record) -> int:
        """Rejected here, decided for another cluster, approved here, pending here, pending elsewhere."""
        here = cluster_of(record) == self.cluster
        if approval_state(record) == "rejected" and here:
            return 0
        if is_decided(record):
            return 2 if here else 1
        return 3 if here else 4


def same_machine(one: Identity, other: Identity) -> bool:
    """Whether both are of one machine. A node that was read with authentication is known by its UUID alone (section 10)."""
    uuid = canonical_uuid(one.uuid)
    return bool(uuid) and uuid == canonical_uuid(other.uuid) or one_machine(one, other)


def _marks(identity: Identity) -> Iterator[str]:
    known = meaningful(identity)
    yield from (mark for mark in (canonical_uuid(identity.uuid), known.serial, *known.macs) if mark)
