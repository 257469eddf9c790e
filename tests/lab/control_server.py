# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The control socket: JSON lines in, JSON lines out. `control.Lab` is the client.

A request is `{"do": name, ...}`; the answer is `{"ok": true, "result": ...}` or `{"ok": false, "error": text}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from tests.lab.commands import Commands
from tests.lab.world import World


class ControlServer:
    """Listens on a Unix socket for one world."""

    def __init__(self, world: World, stopped: asyncio.Event) -> None:
        self._commands = Commands(world, stopped)
        self._server: asyncio.AbstractServer | None = None
        self._path: str | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def open(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._path = path
        self._server = await asyncio.start_unix_server(self._serve, path, limit=2**26)

    async def close(self) -> None:
        await self._commands.close()
        if self._server is not None:
            self._server.close()
        for task in list(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._clients.add(task)
            task.add_done_callback(self._clients.discard)
        try:
            while line := await reader.readline():
                writer.write((json.dumps(await self._answer(line)) + "\n").encode())
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            name = str(request.pop("do"))
            command: Callable[..., Awaitable[Any]] | None = getattr(self._commands, "do_" + name.replace("-", "_"), None)
            if command is None:
                return {"ok": False, "error": f"unknown command {name!r}"}
            return {"ok": True, "result": await command(**request)}
        except Exception as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}
