# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The event buffer of one boot, as machined keeps it, and the messages that go into it."""

from __future__ import annotations

import asyncio
import itertools
import os
import struct
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.lab.wire import message

BUFFER = 990
_ALPHABET = "0123456789abcdefghijklmnopqrstuv"
_MACHINE, _COUNTER = os.urandom(5), itertools.count(int.from_bytes(os.urandom(2), "big"))
_SERVICE_ACTIONS = ("Initialized", "Preparing", "Waiting", "Running", "Stopping", "Finished", "Failed", "Skipped", "Starting")


def xid() -> str:
    """A time-ordered identifier of 20 characters."""
    raw = struct.pack(">I", int(time.time())) + _MACHINE + struct.pack(">I", next(_COUNTER) & 0xFFFFFF)[1:]
    number = int.from_bytes(raw, "big") << 4
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(95, -1, -5))


def is_xid(text: str) -> bool:
    return len(text) == 20 and all(char in _ALPHABET for char in text)


@dataclass(frozen=True)
class Event:
    """One event. `kind` is the message name after `machine.`; an empty kind is the hello event."""

    id: str
    kind: str
    body: Any
    actor: str
    time: float

    def encode(self) -> Any:
        event = message("machine.Event")(id=self.id, actor_id=self.actor)
        event.data.SetInParent()
        if self.kind:
            event.data.type_url = f"talos/runtime/machine.{self.kind}"
            event.data.value = self.body.SerializeToString()
        return event


class Events:
    """The buffer, and the queues of those who listen."""

    def __init__(self) -> None:
        self.buffer: deque[Event] = deque(maxlen=BUFFER)
        self._listeners: set[asyncio.Queue[Event | None]] = set()

    def publish(self, kind: str, body: Any, actor: str = "") -> None:
        event = Event(xid(), kind, body, actor, time.time())
        self.buffer.append(event)
        for queue in self._listeners:
            queue.put_nowait(event)

    def listen(self) -> asyncio.Queue[Event | None]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._listeners.add(queue)
        return queue

    def forget(self, queue: asyncio.Queue[Event | None]) -> None:
        self._listeners.discard(queue)

    def end(self) -> None:
        """Tells every listener that the node goes down in order."""
        for queue in self._listeners:
            queue.put_nowait(None)

    def sequence(self, name: str, start: bool, actor: str = "", error: str | None = None, code: int = 0) -> None:
        body = message("machine.SequenceEvent")(sequence=name, action=0 if error is not None else (1 if start else 2))
        if error is not None:
            body.error.code = code
            body.error.message = error
            body.error.SetInParent()
        self.publish("SequenceEvent", body, actor)

    def phase(self, name: str, start: bool, actor: str = "") -> None:
        self.publish("PhaseEvent", message("machine.PhaseEvent")(phase=name, action=0 if start else 1), actor)

    def task(self, name: str, start: bool, actor: str = "") -> None:
        self.publish("TaskEvent", message("machine.TaskEvent")(task=name, action=0 if start else 1), actor)

    def phases(self, names: Iterable[tuple[str, str]], actor: str = "") -> None:
        """Phases of one task each, run through at once."""
        for phase, task in names:
            self.phase(phase, True, actor)
            self.task(task, True, actor)
            self.task(task, False, actor)
            self.phase(phase, False, actor)

    def service(self, name: str, state: str, text: str, health: Any) -> None:
        body = message("machine.ServiceStateEvent")(service=name, action=_SERVICE_ACTIONS.index(state), message=text)
        body.health.CopyFrom(health)
        self.publish("ServiceStateEvent", body)

    def machine_status(self, stage: int, ready: bool, unmet: list[dict[str, str]]) -> None:
        body = message("machine.MachineStatusEvent")(stage=stage)
        body.status.ready = ready
        for condition in unmet:
            body.status.unmet_conditions.add(name=condition["name"], reason=condition["reason"])
        body.status.SetInParent()
        self.publish("MachineStatusEvent", body)
