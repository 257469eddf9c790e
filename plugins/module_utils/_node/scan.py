# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Probe many addresses: a plain TCP connect each, and a handshake only where a port is open (design section 6).

The connects are made with bare sockets and one selector, since 65,000 tasks would cost more than the packets. The
selector itself is watched by the event loop, so that everything stays in one thread.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Protocol

from .._model.errors import TalosError
from .._model.endpoint import Endpoint, Probe
from . import open_files
from .failures import SAYINGS, tls_reason
from .neighbours import Neighbours, read_neighbours
from .poller import new_poller
from .resolve import Resolver, literal_address, socket_address
from .screen import Screen

#: Seconds that the kernel goes on asking for the hardware address of a silent neighbour: three requests, one a second.
NEIGHBOUR_WAIT = 3.0
#: Handshakes at once.
HANDSHAKES = 128
#: Connects in one go before the event loop may do something else.
_BURST = 128
#: Seconds between two rounds of connects where a rate is set: several go at once, rather than one by one.
_SLICE = 0.005
#: A full neighbour table or no buffer: the address waits and is tried again.
_TRY_AGAIN = (errno.ENOBUFS, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL)


class Handshakes(Protocol):
    """Who speaks with what answers."""

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe: ...

    async def identify(self, endpoint: Endpoint, sock: socket.socket, timeout: float) -> Probe: ...


async def scan(targets: Sequence[Endpoint], resolver: Resolver, handshakes: Callable[[], Awaitable[Handshakes]], *, rate: float,
               unresolved: int, timeout: float) -> AsyncIterator[Probe]:
    """One Probe for each target, as they arrive.

    `handshakes` gives what the first answer needs, and is not asked before there is one;
    `rate`: new connections a second, 0 for as many as go; `unresolved`: fewer neighbours than this are without an answer at
    once (0: no limit but that of open files, which always holds); `timeout`: seconds for a connect, and again for the
    handshake of an open port.
    """
    run = _Scan(targets, resolver, handshakes, rate, unresolved, timeout)
    work = asyncio.ensure_future(run.work())
    try:
        while not (work.done() and not run.found):
            if not run.found:
                await run.wait_for_news(work)
            while run.found:
                yield run.found.popleft()
        await work
    finally:
        await run.stop(work)


class _Scan:
    """The state of one scan."""

    def __init__(self, targets: Sequence[Endpoint], resolver: Resolver, handshakes: Callable[[], Awaitable[Handshakes]], rate: float,
                 unresolved: int, timeout: float) -> None:
        self.found: deque[Probe] = deque()
        self._targets = targets
        self._resolver = resolver
        self._speaker = handshakes
        self._rate = rate
        self._timeout = timeout
        self._most = max(1, open_files.room() - HANDSHAKES * 2)
        self._limit = max(1, unresolved - 1) if unresolved > 0 else self._most
        self._neighbours = read_neighbours() if unresolved > 0 else Neighbours(())
        self._loop = asyncio.get_running_loop()
        self._screen = Screen(resolver.rules)
        self._sayings: dict[int, tuple[str, str]] = {}  # by errno: reason, and the sentence with a place for the address
        self._poller = new_poller()
        self._open: dict[int, tuple[float, socket.socket, Endpoint]] = {}  # by descriptor, in the order of their deadlines
        self._near: set[int] = set()  # those of them that are neighbours
        self._lingering: deque[float] = deque()  # until when a silent neighbour still counts as unresolved
        self._handshakes: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(HANDSHAKES)
        self._news = asyncio.Event()
        self._ready = asyncio.Event()

    async def work(self) -> None:
        """Connect to everything, then wait for the handshakes."""
        self._loop.add_reader(self._poller.fileno(), self._ready.set)
        waiting = deque(self._targets)
        begun = self._loop.time()
        started = 0
        while waiting or self._open:
            now = self._loop.time()
            allowed = _BURST if self._rate <= 0 else min(_BURST, int((now - begun) * self._rate) + 1 - started)
            while self._lingering and self._lingering[0] <= now:
                self._lingering.popleft()
            tried = 0
            while waiting and tried < allowed and self._has_room():
                endpoint = waiting.popleft()
                tried += 1
                if not self._start(endpoint, now):
                    waiting.appendleft(endpoint)
                    break
            started += tried
            self._collect()
            self._expire(self._loop.time())
            if self.found:
                self._news.set()
            await self._pause(bool(waiting), tried, begun, started)
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    async def wait_for_news(self, work: asyncio.Future[None]) -> None:
        """Until something was found or the work is over."""
        self._news.clear()
        if self.found or work.done():
            return
        work.add_done_callback(self._wake)
        try:
            await self._news.wait()
        finally:
            work.remove_done_callback(self._wake)

    async def stop(self, work: asyncio.Future[None]) -> None:
        """Close every socket; a scan that is left early leaves nothing behind."""
        tasks = [work, *self._handshakes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loop.remove_reader(self._poller.fileno())
        for dummy, sock, dummy_endpoint in self._open.values():
            sock.close()
        self._open.clear()
        self._poller.close()

    def _wake(self, dummy: asyncio.Future[None]) -> None:
        self._news.set()

    def _start(self, endpoint: Endpoint, now: float) -> bool:
        """Begin one connect; False when this host has no room for it now."""
        where: tuple[object, ...]
        family: int
        try:
            if self._screen.passes(endpoint.host):
                family, where = socket.AF_INET, (endpoint.host.encode("ascii"), endpoint.port)
            elif literal := literal_address(endpoint.host):
                for rule in self._resolver.rules:
                    rule.check(literal)
                family, where = socket_address(literal, endpoint.port)
            else:
                self._task(self._named(endpoint))
                return True
            sock = socket.socket(family, socket.SOCK_STREAM)
        except TalosError as error:
            self._tell(Probe(endpoint, "Unreachable", None, error.reason, error.message))
            return True
        except OSError as error:
            if error.errno in _TRY_AGAIN and self._open:
                return False
            self._closed(endpoint, error.errno or errno.EHOSTUNREACH)
            return True
        sock.setblocking(False)
        code = sock.connect_ex(where)
        if code == errno.EINPROGRESS:
            descriptor = sock.fileno()
            self._open[descriptor] = (now + self._timeout, sock, endpoint)
            self._poller.register(descriptor)
            if self._neighbours.routes != () and self._neighbours.has(endpoint.host):
                self._near.add(descriptor)
            return True
        if code == 0:
            self._task(self._identify(endpoint, sock))
            return True
        sock.close()
        if code in _TRY_AGAIN and self._open:
            return False
        self._closed(endpoint, code)
        return True

    def _collect(self) -> None:
        """Take what has been answered."""
        for descriptor in self._poller.ready():
            dummy_end, sock, endpoint = self._open.pop(descriptor)
            self._near.discard(descriptor)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == 0 or not self._poller.forgets:
                self._poller.unregister(descriptor)
            if code == 0:
                self._task(self._identify(endpoint, sock))
            else:
                sock.close()
                self._closed(endpoint, code)

    def _expire(self, now: float) -> None:
        """Give up what took too long; all have the same time, so the oldest come first."""
        while self._open:
            descriptor, (end, sock, endpoint) = next(iter(self._open.items()))
            if end > now:
                return
            del self._open[descriptor]
            self._poller.unregister(descriptor)
            sock.close()
            if descriptor in self._near and NEIGHBOUR_WAIT > self._timeout:
                self._lingering.append(end + NEIGHBOUR_WAIT - self._timeout)
            self._near.discard(descriptor)
            self._closed(endpoint, errno.ETIMEDOUT)

    async def _pause(self, waiting: bool, tried: int, begun: float, started: int) -> None:
        """Let the loop run: until an answer, the next deadline or the next connect that the rate allows."""
        if waiting and tried == _BURST:
            await asyncio.sleep(0)
            return
        now = self._loop.time()
        wake = next(iter(self._open.values()))[0] if self._open else now + self._timeout
        if waiting and self._has_room() and self._rate > 0:
            wake = min(wake, max(begun + started / self._rate, now + _SLICE))
        elif waiting and self._lingering:
            wake = min(wake, self._lingering[0])
        elif not waiting and not self._open:
            return
        self._ready.clear()
        timer = self._loop.call_at(max(wake, now), self._ready.set)
        try:
            await self._ready.wait()
        finally:
            timer.cancel()

    def _closed(self, endpoint: Endpoint, code: int) -> None:
        saying = self._sayings.get(code)
        if saying is None:
            reason = tls_reason(OSError(code, ""))
            saying = self._sayings[code] = reason, SAYINGS[reason].message.replace("{seconds}", f"{self._timeout:g}")
        self.found.append(Probe(endpoint, "NotListening", None, saying[0], saying[1].replace("{node}", str(endpoint))))

    def _has_room(self) -> bool:
        return len(self._open) < self._most and len(self._near) + len(self._lingering) < self._limit

    def _tell(self, found: Probe) -> None:
        self.found.append(found)
        self._news.set()

    def _task(self, job: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(job)
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _identify(self, endpoint: Endpoint, sock: socket.socket) -> None:
        try:
            async with self._slots:
                speaker = await self._speaker()
                self._tell(await speaker.identify(endpoint, sock, self._timeout))
        finally:
            sock.close()

    async def _named(self, endpoint: Endpoint) -> None:
        async with self._slots:
            speaker = await self._speaker()
            self._tell(await speaker.probe(endpoint, self._timeout))
