# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The listening side of a node: a socket that opens, drains and closes as apid's does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from tests.lab.calllog import CallLog
from tests.lab.connection import MAX_MESSAGE, SILENCE_SECONDS, Call, Connection
from tests.lab.faults import Faults
from tests.lab.tls import Identity

GRACE_SECONDS = 10.0


def _bind(address: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


class Endpoint:
    """One address and port. `serve` answers a call; `identity` is asked at every connection."""

    def __init__(
        self,
        name: str,
        address: str,
        port: int,
        log: CallLog,
        faults: Faults,
        identity: Callable[[], Identity],
        now: Callable[[], float],
        serve: Callable[[Call], Awaitable[None]],
        finished: Callable[[Call, int, str], None],
        max_message: int = MAX_MESSAGE,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.name = name
        self.address = address
        self.port = port
        self.log = log
        self.faults = faults
        self.identity = identity
        self.now = now
        self.serve = serve
        self.finished = finished
        self.max_message = max_message
        self.silence_seconds = silence_seconds
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def listening(self) -> bool:
        return self._server is not None

    async def open(self) -> None:
        """Listens; waits while another process or an old listener still holds the port."""
        loop = asyncio.get_running_loop()
        for attempt in range(50):
            try:
                # Nothing is awaited between the bind and the moment when the server is ours, so that a cancelled boot leaks no socket.
                bound = _bind(self.address, self.port)
            except OSError:
                if attempt == 49:
                    raise
                await asyncio.sleep(0.05)
                continue
            self._server = await loop.create_server(lambda: Connection(self), sock=bound, backlog=512, start_serving=False)
            await self._server.start_serving()
            return

    def close_listener(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def stop(self, grace: float) -> None:
        """Graceful stop: no new connections, GOAWAY, then up to `grace` wall seconds for calls in flight."""
        self.close_listener()
        for connection in list(self.connections):
            connection.drain()
        loop = asyncio.get_running_loop()
        end = loop.time() + grace
        while self.connections and loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.close()

    def kill(self) -> None:
        """What a power cut looks like on loopback: the listener is gone and every connection is reset."""
        self.close_listener()
        for connection in list(self.connections):
            connection.abort()
