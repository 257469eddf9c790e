# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of a directory store: one JSON object a line, only ever appended (design section 4)."""

from __future__ import annotations

import json
from pathlib import Path

from .._model.moments import moment
from .._model.plain_files import NotJson, read_json
from .._model.records import Event, Ref, text_at
from . import files

#: A log of a million events is about as large.
_LARGEST = 256 << 20


def append(path: Path, event: Event, now: float) -> None:
    """Write one event down; without a time of its own it gets that of now (UTC seconds). The writers' lock is held."""
    line = {"time": event.time or moment(now), "kind": event.ref.kind, "name": event.ref.name, "type": event.type, "reason": event.reason,
            "message": event.message}
    files.append_line(path, json.dumps(line).encode("ascii"))


def read(path: Path, ref: Ref | None) -> tuple[Event, ...]:
    """All events, or those of one record. A line that a crash tore is passed over: it was never told to have been written."""
    events: list[Event] = []
    for line in (files.read_bytes(path, _LARGEST) or b"").splitlines():
        try:
            data = read_json(line)
        except NotJson:
            continue
        event = Event(Ref(text_at(data, "kind"), text_at(data, "name")), text_at(data, "type"), text_at(data, "reason"),
                      text_at(data, "message"), text_at(data, "time"))
        if event.ref.kind and (ref is None or event.ref == ref):
            events.append(event)
    return tuple(events)
