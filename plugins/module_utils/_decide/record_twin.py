# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two records of one physical machine (design sections 3 and 6, laws 3 and 4).

A copied file gives one machine two records: each could be approved, and sent to, as if it were alone, and a rejection of the
one would not hold for the other. Compared is what the records say, so that a weak identity which a person has resolved by a
serial of its own is no twin of the record with the same UUID.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._model.approval import approval_state, was_sent
from .._model.hardware import meaningful
from .._model.identity import Identity, swapped_uuid
from .._model.machine import cluster_of
from .._model.records import Record, text_at
from .same_machine import difference, recorded_identity


def one_machine(one: Identity, other: Identity) -> bool:
    """Whether one machine could answer to both identities: something that they record is equal, and nothing contradicts it.

    Equal permanent MACs are one machine whatever else is recorded. Equal serials under two UUIDs are not: the nodes of one
    chassis share them. A UUID in the other byte order is the same board.
    """
    first, second = meaningful(one), meaningful(other)
    if first.macs and first.macs == second.macs:
        return True
    both_uuids, both_serials, both_macs = first.uuid and second.uuid, first.serial and second.serial, first.macs and second.macs
    same_uuid = bool(both_uuids) and second.uuid in (first.uuid, swapped_uuid(first.uuid))
    same_serial, shared_macs = bool(both_serials) and first.serial == second.serial, bool(set(first.macs) & set(second.macs))
    contradicted = both_uuids and not same_uuid or both_serials and not same_serial or both_macs and not shared_macs
    return not contradicted and (same_uuid or same_serial or shared_macs)


def is_decided(machine: Record) -> bool:
    """Whether a person decided on a record, or something was sent to its machine. A pending one stands in nobody's way."""
    return approval_state(machine) != "pending" or was_sent(machine)


def twin_of(machine: Record, others: Iterable[Record]) -> Record | None:
    """Another decided record, of any cluster, of the machine that this one records."""
    mine = recorded_identity(machine.spec)
    return next((other for other in others if other.name != machine.name and is_decided(other) and one_machine(mine, recorded_identity(other.spec))), None)


def answers_to(found: Identity, machine: Record, others: Iterable[Record]) -> Record | None:
    """Another decided record that the node which answers for this machine fits as well."""
    return next((other for other in others if other.name != machine.name and is_decided(other)
                 and not difference(recorded_identity(other.spec), found)), None)


def told_of(other: Record) -> str:
    """Which record it is, and what was decided on it or done, as a sentence."""
    done = "has joined" if text_at(other.status, "appliedConfigHash") else "was sent a configuration" if was_sent(other) else f"is {approval_state(other)}"
    return f"Record {other.name} of cluster {cluster_of(other) or '(none)'}, which {done}, is of the same machine."


#: What a person does about two records of one machine.
TWIN_HINT = "Delete the record that is wrong with talos_machine and state: absent, or correct its spec.identity."

__all__ = ["TWIN_HINT", "answers_to", "is_decided", "one_machine", "told_of", "twin_of"]
