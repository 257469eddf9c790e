# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine's record as a row of a result (design section 20)."""

from __future__ import annotations

from .._model.approval import approval_state
from .._model.machine import cluster_of
from .._model.outcome import MachineRow
from .._model.records import Record, condition_of, text_at


def machine_row(machine: Record, *, changed: bool = False, reason: str = "", message: str = "") -> MachineRow:
    """The row; `reason` and `message` of this run win over those of the record's condition Ready."""
    ready = condition_of(machine, "Ready")
    approval = approval_state(machine)
    said = reason or (ready.reason if ready else "")
    if not said and approval != "approved":
        said = "Rejected" if approval == "rejected" else "PendingApproval"
    return MachineRow(machine.name, cluster_of(machine), text_at(machine.status, "stage"), bool(ready and ready.status == "True"),
                      said, message or (ready.message if ready and not reason else ""), changed)
