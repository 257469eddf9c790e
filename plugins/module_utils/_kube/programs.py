# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs of others that are called with a limit: what goes in, what comes out, and nothing of them is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Seconds for a killed process to be gone. One that its own children keep open is not waited for any longer.
_GONE = 5.0


@dataclass(frozen=True)
class Ended:
    """How a program ended (negative: the signal), what it printed and what it complained of; each a little longer than the limit where it was cut off."""

    status: int
    out: bytes = field(repr=False)
    said: bytes = field(repr=False)


async def call(command: Sequence[str], given: bytes, timeout: float, largest: int, environment: Mapping[str, str] | None = None) -> Ended:
    """A program from its start to its end. `given`: its standard input; `largest`: bytes of output after which it is killed.

    Raises OSError where it cannot be started, ValueError where its arguments are none, asyncio.TimeoutError. A run that is told to stop ends it, and
    whatever it started.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=environment)
    try:
        out, said, dummy, status = await asyncio.wait_for(asyncio.gather(
            _read(process, process.stdout, largest), _read(process, process.stderr, largest), _give(process.stdin, given), process.wait()), timeout)
        return Ended(status, out, said)
    finally:
        await _end(process)


async def _give(stream: asyncio.StreamWriter | None, given: bytes) -> None:
    """A program that fails before it has read closes its end."""
    if stream is not None:
        with contextlib.suppress(ConnectionError):
            stream.write(given)
            await stream.drain()
        stream.close()


async def _read(process: asyncio.subprocess.Process, stream: asyncio.StreamReader | None, largest: int) -> bytes:
    found = bytearray()
    while stream is not None and (piece := await stream.read(1 << 16)):
        if len(found) > largest:
            _kill(process)  # and read on: a pipe that nobody reads keeps it from being over
        else:
            found += piece
    return bytes(found)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Nothing of it is left, unless it took leave of its own process group."""
    if process.returncode is None or any(stream is not None and not stream.at_eof() for stream in (process.stdout, process.stderr)):
        _kill(process)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _GONE)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
