# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What discovery may write, by the state of the machine and where it answers: the table of design section 6."""

from __future__ import annotations

from dataclasses import dataclass

from .._model.approval import approval_state, status_missing, was_sent
from .._model.machine import pin_of
from .._model.records import Record

OWN = "own"
OTHER = "other"

#: States of a machine, as the table distinguishes them.
STATES = ("pending", "rejected", "approved-pinned", "approved-unpinned", "sent")


@dataclass(frozen=True)
class Row:
    """One cell. `probed`: the machine's own address is probed by discovery. `refresh`: pin, disks and links are recorded.
    `moves`: the address is recorded as `observedEndpoint`."""

    rule: str
    state: str
    place: str
    probed: bool = False
    refresh: bool = False
    moves: bool = False


TABLE: tuple[Row, ...] = (
    Row("6/pending-own", "pending", OWN, probed=True, refresh=True),
    Row("6/pending-other", "pending", OTHER, refresh=True, moves=True),
    Row("6/rejected-own", "rejected", OWN),
    Row("6/rejected-other", "rejected", OTHER, moves=True),
    Row("6/approved-pinned-own", "approved-pinned", OWN),
    Row("6/approved-pinned-other", "approved-pinned", OTHER, moves=True),
    Row("6/approved-unpinned-own", "approved-unpinned", OWN),
    Row("6/approved-unpinned-other", "approved-unpinned", OTHER),
    Row("6/sent-own", "sent", OWN),
    Row("6/sent-other", "sent", OTHER),
)


def state_of(machine: Record) -> str:
    """The state of a machine in the table; an approved one whose status was lost counts as sent: nobody knows better."""
    approval = approval_state(machine)
    if approval != "approved":
        return approval
    if status_missing(machine) or machine.status_set_aside or was_sent(machine):
        return "sent"
    return "approved-pinned" if pin_of(machine) else "approved-unpinned"


def row_of(state: str, place: str) -> Row:
    """The cell of the table; KeyError where there is none."""
    for row in TABLE:
        if (row.state, row.place) == (state, place):
            return row
    raise KeyError(f"{state}/{place}")
