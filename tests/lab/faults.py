# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of a node, switched on and off while the lab runs.

A fault has a kind, and where it applies to calls, a method name (`rpc`, "*" for all) and how often it strikes (`times`,
None for ever). Connection faults strike at the TCP connect or right after the handshake, call faults when a request has
arrived, answer faults when the node has already done what it was asked.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.lab.status import NAMES, Refusal

if TYPE_CHECKING:
    from tests.lab.connection import Call, Connection

CONNECT_KINDS = ("connect-hang", "connect-reset", "connect-close", "connect-garbage", "plain-http", "plain-drip")
HANDSHAKE_KINDS = ("handshake-hang", "handshake-reset", "handshake-garbage", "web-server", "corrupt-record")
CALL_KINDS = ("call-hang", "call-half-open", "call-reset", "call-status", "call-delay")
ANSWER_KINDS = ("answer-lost", "answer-hang", "answer-endless", "answer-huge", "answer-garbage", "answer-drip", "answer-claims-huge")
KINDS = CONNECT_KINDS + HANDSHAKE_KINDS + CALL_KINDS + ANSWER_KINDS + ("write-drip",)

_WEB = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nthis is a web server\r\n"


@dataclass
class Fault:
    """One fault. `value` depends on the kind: seconds, bytes, or a status as `NAME: text`."""

    kind: str
    rpc: str = "*"
    times: int | None = None
    value: Any = None

    def matches(self, path: str) -> bool:
        return self.rpc in ("*", path, path.rpartition("/")[2])


class Faults:
    """The faults of one node."""

    def __init__(self) -> None:
        self.active: list[Fault] = []
        self.struck: list[str] = []
        self._background: set[asyncio.Task[None]] = set()

    def add(self, fault: Fault) -> None:
        if fault.kind not in KINDS:
            raise ValueError(f"unknown fault {fault.kind!r}; known are {', '.join(KINDS)}")
        self.active.append(fault)

    def clear(self, kind: str | None = None) -> None:
        self.active = [fault for fault in self.active if kind is not None and fault.kind != kind]

    def _strike(self, kinds: tuple[str, ...], path: str = "*") -> Fault | None:
        for fault in self.active:
            if fault.kind in kinds and (path == "*" or fault.matches(path)):
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.active.remove(fault)
                self.struck.append(fault.kind)
                return fault
        return None

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def at_connect(self, connection: Connection) -> bool:
        """True when the connection is not to be served."""
        fault = self._strike(CONNECT_KINDS)
        if fault is None:
            return False
        if fault.kind == "connect-reset":
            connection.abort()
        elif fault.kind == "connect-close":
            connection.close()
        elif fault.kind == "connect-garbage":
            connection.write_raw(os.urandom(int(fault.value or 512)))
        elif fault.kind == "plain-http":
            connection.write_raw(_WEB)
            connection.close()
        elif fault.kind == "plain-drip":
            self._spawn(_drip(connection, _WEB * 100, float(fault.value or 0.5)))
        return True

    def after_handshake(self, connection: Connection) -> bool:
        fault = self._strike(HANDSHAKE_KINDS)
        if fault is None or connection.tls is None:
            return False
        if fault.kind == "handshake-reset":
            connection.abort()
        elif fault.kind == "handshake-garbage":
            connection.tls.send(os.urandom(int(fault.value or 4096)))
        elif fault.kind == "web-server":
            connection.tls.send(_WEB)
        elif fault.kind == "corrupt-record":
            connection.tls.send_corrupt(b"\x00" * 64)
        return True

    def on_write(self, connection: Connection, data: bytes) -> bool:
        """True when the fault takes care of the bytes itself: a slow drip of everything the node says."""
        for fault in self.active:
            if fault.kind == "write-drip":
                if connection.dripping is None:
                    connection.dripping = bytearray()
                    self._spawn(_drip_all(connection, float(fault.value or 0.05)))
                connection.dripping += data
                return True
        return False

    async def at_call(self, call: Call) -> None:
        """Strikes before the node has looked at the request."""
        fault = self._strike(CALL_KINDS, call.path)
        if fault is None:
            return
        if fault.kind == "call-hang":
            await asyncio.Event().wait()
        elif fault.kind == "call-half-open":
            call.connection.forget()
            await asyncio.Event().wait()
        elif fault.kind == "call-delay":
            await asyncio.sleep(float(fault.value or 1.0))
        elif fault.kind == "call-reset":
            call.connection.abort()
            await asyncio.Event().wait()
        else:
            name, unused, text = str(fault.value or "UNAVAILABLE: fault").partition(": ")
            raise Refusal(NAMES.index(name), text)

    async def before_answer(self, call: Call) -> None:
        """Strikes when the node has done its work and is about to answer."""
        fault = self._strike(ANSWER_KINDS, call.path)
        if fault is None:
            return
        connection = call.connection
        if fault.kind == "answer-lost":
            connection.abort()
            await asyncio.Event().wait()
        elif fault.kind == "answer-hang":
            await asyncio.Event().wait()
        elif fault.kind == "answer-garbage":
            garbage = os.urandom(int(fault.value or 256))
            call.send(garbage)
            raise Refusal(0, "")
        elif fault.kind == "answer-huge":
            call.send(b"\x0a" + os.urandom(int(fault.value or 40 * 1024 * 1024)))
            await call.flow()
            raise Refusal(0, "")
        elif fault.kind == "answer-claims-huge":
            connection.send_bytes(call, b"\x00\xff\xff\xff\xff" + b"\x00" * 64)
            await asyncio.Event().wait()
        elif fault.kind == "answer-endless":
            while True:
                call.send(b"\x12\x80\x20" + b"x" * 4096)
                await call.flow()
                await asyncio.sleep(0)
        else:
            while True:
                connection.send_bytes(call, b"\x00" if not call.sent else b"\x0a")
                await asyncio.sleep(float(fault.value or 0.05))


async def _drip_all(connection: Connection, pause: float) -> None:
    """Everything that the node says on a connection, byte by byte and in order, until the connection is gone."""
    while connection.transport is not None and not connection.transport.is_closing():
        if connection.dripping:
            connection.write_raw(bytes(connection.dripping[:1]))
            del connection.dripping[:1]
        await asyncio.sleep(pause)


async def _drip(connection: Connection, data: bytes, pause: float) -> None:
    for offset in range(len(data)):
        if connection.transport is None or connection.transport.is_closing():
            return
        connection.write_raw(data[offset:offset + 1])
        await asyncio.sleep(pause)
