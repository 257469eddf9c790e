# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that did not answer once, for who looks at the same machines several times at one go: a machine that is down costs one deadline (design law 6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from .._model.credentials import Credentials
from .._model.endpoint import Endpoint, Probe
from .._model.errors import TalosError
from .._model.ports import Nodes, Session

#: Nobody is there, whoever asks and with whatever certificate.
_SILENT = frozenset({"NotListening", "ConnectionRefused", "TimedOut", "NameNotResolved"})


class SilentNodes:
    """Implements the port `Nodes` over another one. An address at which no session came about is not dialled again; what fails within a session, as a
    call that hangs, says nothing of the node."""

    def __init__(self, inner: Nodes) -> None:
        self._inner = inner
        self._silent: dict[Endpoint, TalosError] = {}

    def maintenance(self, endpoint: Endpoint, pin: str = "") -> AbstractAsyncContextManager[Session]:
        return self._once(endpoint, self._inner.maintenance(endpoint, pin))

    def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AbstractAsyncContextManager[Session]:
        return self._once(endpoint, self._inner.authenticated(endpoint, credentials))

    @asynccontextmanager
    async def _once(self, endpoint: Endpoint, session: AbstractAsyncContextManager[Session]) -> AsyncIterator[Session]:
        known = self._silent.get(endpoint)
        if known is not None:
            raise known
        opened = False
        try:
            async with session as one:
                opened = True
                yield one
        except TalosError as error:
            if not opened and error.reason in _SILENT:
                self._silent[endpoint] = error
            raise

    def scan(self, targets: Sequence[Endpoint], *, rate: float, unresolved: int, timeout: float) -> AsyncIterator[Probe]:
        return self._inner.scan(targets, rate=rate, unresolved=unresolved, timeout=timeout)

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        return await self._inner.probe(endpoint, timeout)

    @property
    def written(self) -> bool:
        return self._inner.written

    def end_writes(self) -> None:
        self._inner.end_writes()

    async def close(self) -> None:
        await self._inner.close()
