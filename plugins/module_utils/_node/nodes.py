# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All nodes, through one process: the port `Nodes` (design section 5)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from .._model.credentials import Credentials
from .._model.dialling import DialRules
from .._model.observations import Certificate, Endpoint, Probe
from .._model.timing import Timing
from . import clean
from .bridge import Bridge
from .caller import Caller
from .certificates import is_maintenance
from .contexts import authenticated_context, maintenance_context
from .dial import Accept, dial
from .failures import failed, pin_mismatch
from .open_files import raise_limit
from .probing import probe
from .resolve import Resolver
from .scan import scan
from .session import NodeSession


class TalosNodes:
    """Sessions with nodes. Use it inside one event loop.

    `rules` say which addresses are never dialled (all of them have to agree); `check` is check mode: a write then raises
    CheckModeWrite.
    """

    def __init__(self, *, check: bool = False, rules: Iterable[DialRules] = (DialRules(),), timing: Timing = Timing()) -> None:
        self._check = check
        self._timing = timing
        self._resolver = Resolver(rules)
        self._maintenance: ssl.SSLContext | None = None
        self._authenticated: dict[Credentials, ssl.SSLContext] = {}
        self._sessions: set[Bridge] = set()
        raise_limit()

    @property
    def rules(self) -> tuple[DialRules, ...]:
        return self._resolver.rules

    @rules.setter
    def rules(self, rules: Iterable[DialRules]) -> None:
        self._resolver.rules = tuple(rules)

    @asynccontextmanager
    async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[NodeSession]:
        """An insecure session. Raises `ClientCertificateRequired`, `NotTalos`, `MaintenanceIdentityChanged` and others."""
        def accept(certificate: Certificate) -> None:
            # A configured node is told by its wish for a client certificate, whatever the pin.
            if pin and is_maintenance(certificate) and not certificate.matches(pin):
                raise pin_mismatch(endpoint, pin, certificate)

        async with self._session(endpoint, self._maintenance_context(), accept, clean.INSECURE_ANSWER_LIMIT, True) as session:
            if not is_maintenance(session.certificate):
                raise failed("NotTalos", endpoint, detail="the certificate is not that of a Talos node in maintenance mode")
            yield session

    @asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[NodeSession]:
        """A session with mutual TLS. Raises `UnknownAuthority`, `ClockSkew`, `CredentialsInvalid` and others."""
        context = self._authenticated.get(credentials)
        if context is None:
            context = self._authenticated[credentials] = authenticated_context(credentials)
        async with self._session(endpoint, context, _any, clean.ANSWER_LIMIT, False) as session:
            yield session

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        return await probe(endpoint, self._resolver, self._maintenance_context(), timeout)

    def scan(self, targets: Sequence[Endpoint], *, rate: float, unresolved: int, timeout: float) -> AsyncIterator[Probe]:
        return scan(targets, self._resolver, self._maintenance_context(), rate=rate, unresolved=unresolved, timeout=timeout)

    async def close(self) -> None:
        """Close whatever is still open."""
        await asyncio.gather(*(_finish(bridge) for bridge in list(self._sessions)))
        self._authenticated.clear()

    @asynccontextmanager
    async def _session(self, endpoint: Endpoint, context: ssl.SSLContext, accept: Accept, answer_limit: int,
                       maintenance: bool) -> AsyncIterator[NodeSession]:
        upstream = await dial(endpoint, self._resolver, context, accept, self._timing.call)
        bridge = Bridge(upstream)
        self._sessions.add(bridge)
        try:
            await bridge.open(answer_limit)
            if upstream.certificate is None:
                raise failed("NotTalos", endpoint)
            caller = Caller(bridge, check=self._check, timing=self._timing, answer_limit=answer_limit)
            yield NodeSession(caller, upstream.certificate, maintenance)
        finally:
            self._sessions.discard(bridge)
            await _finish(bridge)

    def _maintenance_context(self) -> ssl.SSLContext:
        if self._maintenance is None:
            self._maintenance = maintenance_context()
        return self._maintenance


def _any(certificate: Certificate) -> None:
    """The authenticated client has verified the certificate already."""


async def _finish(bridge: Bridge) -> None:
    """Close a bridge to the end, also when the task is cancelled meanwhile; it waits for nothing on the network."""
    closing = asyncio.ensure_future(bridge.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
