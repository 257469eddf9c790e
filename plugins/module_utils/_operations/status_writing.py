# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes decided changes of a status and their events: effects, not steps (design section 20)."""

from __future__ import annotations

from dataclasses import replace

from .._decide.status_change import StatusChange
from .._model.ports import Store
from .._model.records import Event, Json, Record


def write_change(store: Store, change: StatusChange, now: float) -> tuple[Event, ...]:
    """Write one change where it makes a difference; gives the events that were recorded with it."""
    record = store.get(change.ref.kind, change.ref.name)
    if record is not None and record.uid == change.uid and change.applied(dict(record.status), now) == record.status:
        return ()
    store.patch_status(change.ref, change.uid, lambda status: dict(change.applied(status, now)))
    for event in change.events:
        store.record_event(event)
    return change.events


def changed_record(record: Record, change: StatusChange, now: float) -> Record:
    """The record as it would be after the change."""
    status: dict[str, Json] = {}
    for key, value in change.applied(dict(record.status), now).items():
        if value is None or isinstance(value, (bool, int, float, str, list, dict)):
            status[key] = value
    return replace(record, status=status)
