# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All nodes, through one process: the port `Nodes` (design section 5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from .._model.credentials import Credentials
from .._model.dialling import DialRules
from .._model.endpoint import Endpoint, Probe
from .._model.ports import Session
from .._model.timing import Timing
from .open_files import raise_limit
from .resolve import Resolver
from .scan import scan
from .writes import Writes

if TYPE_CHECKING:
    from .sessions import Sessions


class TalosNodes:
    """Sessions with nodes. Use it inside one event loop.

    `rules` say which addresses are never dialled (all of them have to agree); `check` is check mode: a write then raises
    CheckModeWrite.
    """

    def __init__(self, *, check: bool = False, rules: Iterable[DialRules] = (DialRules(),), timing: Timing = Timing()) -> None:
        self._check = check
        self._timing = timing
        self._resolver = Resolver(rules)
        self._made: Sessions | None = None
        self._writes = Writes()
        raise_limit()

    @property
    def rules(self) -> tuple[DialRules, ...]:
        return self._resolver.rules

    @rules.setter
    def rules(self, rules: Iterable[DialRules]) -> None:
        self._resolver.rules = tuple(rules)

    def maintenance(self, endpoint: Endpoint, pin: str = "") -> AbstractAsyncContextManager[Session]:
        """An insecure session. Raises `ClientCertificateRequired`, `NotTalos`, `MaintenanceIdentityChanged` and others."""
        return self._sessions().maintenance(endpoint, pin)

    def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AbstractAsyncContextManager[Session]:
        """A session with mutual TLS. Raises `UnknownAuthority`, `ClockSkew`, `CredentialsInvalid` and others."""
        return self._sessions().authenticated(endpoint, credentials)

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        return await self._sessions().probe(endpoint, timeout)

    def scan(self, targets: Sequence[Endpoint], *, rate: float, unresolved: int, timeout: float) -> AsyncIterator[Probe]:
        return scan(targets, self._resolver, self._handshakes, rate=rate, unresolved=unresolved, timeout=timeout)

    @property
    def written(self) -> bool:
        """Whether a node accepted a write."""
        return self._writes.accepted

    def end_writes(self) -> None:
        """No write begins from now on; those under way go on."""
        self._writes.end()

    async def close(self) -> None:
        """Close whatever is still open."""
        if self._made is not None:
            await self._made.close()

    async def _handshakes(self) -> Sessions:
        """The same without holding up the connects that are still to be begun: importing takes as long as hundreds of them."""
        if self._made is None:
            await asyncio.to_thread(_sessions_class)
        return self._sessions()

    def _sessions(self) -> Sessions:
        """Made, and its libraries imported, when something has answered: no deadline of a node runs meanwhile."""
        if self._made is None:
            self._made = _sessions_class()(self._resolver, check=self._check, timing=self._timing, writes=self._writes)
        return self._made


def _sessions_class() -> type[Sessions]:
    """What speaks with nodes, imported at the first use."""
    from .sessions import Sessions

    return Sessions
