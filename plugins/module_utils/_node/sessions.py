# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections with nodes that answer: probes, insecure sessions and authenticated ones (design section 5).

Whatever speaks TLS, gRPC and protobuf is imported by this file, and this file by `nodes` when it is first needed: a scan sends
its first packets before that, and one that nothing answers never pays for it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .._model.credentials import Credentials
from .._model.endpoint import Certificate, Endpoint, Probe
from .._model.timing import Timing
from . import clean, probing
from .bridge import Bridge
from .caller import Caller
from .certificates import is_maintenance
from .contexts import authenticated_context, maintenance_context
from .dial import Accept, dial
from .failures import failed, pin_mismatch
from .resolve import Resolver
from .session import NodeSession
from .writes import Writes


class Sessions:
    """All that is open with nodes. Use it inside one event loop; `close` it."""

    def __init__(self, resolver: Resolver, *, check: bool, timing: Timing, writes: Writes) -> None:
        self._resolver = resolver
        self._check = check
        self._timing = timing
        self._writes = writes
        self._maintenance = maintenance_context()
        self._authenticated: dict[Credentials, ssl.SSLContext] = {}
        self._open: set[Bridge] = set()

    @asynccontextmanager
    async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[NodeSession]:
        """An insecure session. Raises `ClientCertificateRequired`, `NotTalos`, `MaintenanceIdentityChanged` and others."""
        def accept(certificate: Certificate) -> None:
            # A configured node is told by its wish for a client certificate, whatever the pin.
            if pin and is_maintenance(certificate) and not certificate.matches(pin):
                raise pin_mismatch(endpoint, pin, certificate)

        async with self._session(endpoint, self._maintenance, accept, clean.INSECURE_ANSWER_LIMIT, True) as session:
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
        """Resolve, connect and shake hands."""
        return await probing.probe(endpoint, self._resolver, self._maintenance, timeout)

    async def identify(self, endpoint: Endpoint, sock: socket.socket, timeout: float) -> Probe:
        """Shake hands on a socket that is connected."""
        end = asyncio.get_running_loop().time() + timeout
        return await probing.identify(endpoint, sock, self._maintenance, end, timeout)

    async def close(self) -> None:
        """Close whatever is still open."""
        await asyncio.gather(*(_finish(bridge) for bridge in list(self._open)))
        self._authenticated.clear()

    @asynccontextmanager
    async def _session(self, endpoint: Endpoint, context: ssl.SSLContext, accept: Accept, answer_limit: int,
                       maintenance: bool) -> AsyncIterator[NodeSession]:
        upstream = await dial(endpoint, self._resolver, context, accept, self._timing.call)
        bridge = Bridge(upstream)
        self._open.add(bridge)
        try:
            await bridge.open(answer_limit)
            if upstream.certificate is None:
                raise failed("NotTalos", endpoint)
            caller = Caller(bridge, check=self._check, timing=self._timing, answer_limit=answer_limit, writes=self._writes)
            yield NodeSession(caller, upstream.certificate, maintenance)
        finally:
            self._open.discard(bridge)
            await _finish(bridge)


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
