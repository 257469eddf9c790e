# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading many unknown addresses at once (design section 6): a scan, then the identity of what is in maintenance mode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .._decide.discovery_words import Answer
from .._model.errors import TalosError
from .._model.endpoint import Certificate, Endpoint, Probe
from .._model.ports import Ports

#: Nodes read at once; each costs one connection and a handful of calls.
AT_ONCE = 64

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Pace:
    """How fast a scan goes: new connections a second, addresses that may be unresolved at once, seconds for a connection."""

    rate: float = 1000.0
    unresolved: int = 256
    connect: float = 2.0


async def each(items: Iterable[S], read: Callable[[S], Awaitable[T]], at_once: int = AT_ONCE) -> list[T]:
    """`read` for every item, so many at once, answers in the order of the items."""
    slots = asyncio.Semaphore(at_once)

    async def one(item: S) -> T:
        async with slots:
            return await read(item)

    return list(await asyncio.gather(*(one(item) for item in items)))


async def answers_of(ports: Ports, targets: Sequence[Endpoint], pace: Pace) -> tuple[Answer, ...]:
    """One answer an address, in no order. Silence is an answer too, and so is a node that will not be read."""
    if not targets:
        return ()
    reading: list[asyncio.Task[Answer]] = []
    slots = asyncio.Semaphore(AT_ONCE)

    async def read(probe: Probe) -> Answer:
        async with slots:
            return await _facts(ports, probe)

    silent: list[Answer] = []
    try:
        async for probe in ports.nodes.scan(targets, rate=pace.rate, unresolved=pace.unresolved, timeout=pace.connect):
            if probe.kind == "Maintenance":
                reading.append(asyncio.ensure_future(read(probe)))
            else:
                silent.append(Answer(probe))
        return (*silent, *await asyncio.gather(*reading))
    finally:
        for task in reading:
            task.cancel()


async def _facts(ports: Ports, probe: Probe) -> Answer:
    try:
        async with ports.nodes.maintenance(probe.endpoint) as session:
            facts = await session.facts()
    except TalosError as error:
        ports.progress(f"{probe.endpoint} is in maintenance mode but cannot be read: {error.message}")
        return Answer(probe, problem=f"It is in maintenance mode but cannot be read: {error.text}")
    ports.progress(f"{probe.endpoint} is in maintenance mode: UUID {facts.identity.uuid or 'none'}, Talos {facts.talos_version or 'unknown'}")
    return Answer(probe, facts)


async def certificates_of(ports: Ports, targets: Iterable[Endpoint], timeout: float) -> dict[Endpoint, Certificate | None]:
    """The certificate that each address shows now in maintenance mode, or None."""
    async def read(endpoint: Endpoint) -> tuple[Endpoint, Certificate | None]:
        try:
            probe = await ports.nodes.probe(endpoint, timeout)
        except TalosError:
            return endpoint, None
        return endpoint, probe.certificate if probe.kind == "Maintenance" else None

    return dict(await each(dict.fromkeys(targets), read))
