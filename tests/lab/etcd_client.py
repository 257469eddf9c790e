# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A client of a real etcd: its JSON gateway over HTTP/1.1, with the same texts as its gRPC errors."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.lab.etcd import EtcdError
from tests.lab.etcd_pki import admin_context

CLIENT_PORT = 2379
#: What one line of a snapshot's stream may hold, in bytes.
_LINE = 2**24


class EtcdUnreachable(Exception):
    """Nothing answers there, or it stopped doing so."""


class EtcdClient:
    """Calls of one member. Every call is a connection of its own."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        self._address = address
        self._context = context

    @classmethod
    def of_admin(cls, address: str, pki: Path) -> EtcdClient:
        """With the certificates that a lab node keeps for its etcd."""
        return cls(address, admin_context(pki))

    async def call(self, path: str, body: Mapping[str, Any] | None = None, seconds: float = 10.0, with_leader: bool = False) -> dict[str, Any]:
        """The answer; EtcdError with etcd's text, EtcdUnreachable, or TimeoutError."""
        async with asyncio.timeout(seconds), self._request(path, body, with_leader) as (status, reader):
            answer: dict[str, Any] = json.loads(await reader.read())
            if status != 200:
                raise EtcdError(str(answer.get("message") or f"HTTP status {status}"))
            return answer

    async def snapshot(self) -> AsyncIterator[bytes]:
        """The pieces of a snapshot, the hash at its end included."""
        async with self._request("maintenance/snapshot", None, False) as (unused, reader):
            while line := await reader.line():
                item = json.loads(line)
                if "error" in item:
                    raise EtcdError(str(item["error"].get("message")))
                yield base64.b64decode(item["result"].get("blob") or "")

    @asynccontextmanager
    async def _request(self, path: str, body: Mapping[str, Any] | None, with_leader: bool) -> AsyncIterator[tuple[int, _Body]]:
        data = json.dumps(body or {}).encode()
        host = f"[{self._address}]" if ":" in self._address else self._address
        lines = [f"POST /v3/{path} HTTP/1.1", f"Host: {host}:{CLIENT_PORT}", f"Content-Length: {len(data)}", "Connection: close"]
        if with_leader:
            lines.append("Grpc-Metadata-hasleader: true")
        try:
            reader, writer = await asyncio.open_connection(self._address, CLIENT_PORT, ssl=self._context, server_hostname=self._address, limit=_LINE)
        except OSError as error:
            raise EtcdUnreachable(str(error)) from error
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + data)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            yield int(head.split(" ", 2)[1]), _Body(reader, "transfer-encoding: chunked" in head)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise EtcdUnreachable(str(error)) from error
        finally:
            writer.transport.abort()


class _Body:
    """The body of an answer, of either form that etcd gives it."""

    def __init__(self, reader: asyncio.StreamReader, chunked: bool) -> None:
        self._reader = reader
        self._chunked = chunked
        self._rest = bytearray()

    async def _more(self) -> bytes:
        if not self._chunked:
            return await self._reader.read(2**16)
        length = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
        return (await self._reader.readexactly(length + 2))[:length]

    async def read(self) -> bytes:
        """All of it."""
        while piece := await self._more():
            self._rest += piece
        return bytes(self._rest)

    async def line(self) -> bytes:
        """The next line, empty at the end."""
        while (end := self._rest.find(b"\n")) < 0:
            piece = await self._more()
            if not piece:
                rest, self._rest = bytes(self._rest), bytearray()
                return rest
            self._rest += piece
        line = bytes(self._rest[:end])
        del self._rest[:end + 1]
        return line or await self.line()
