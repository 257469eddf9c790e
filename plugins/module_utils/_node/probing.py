# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What answers at an address, by one TLS handshake (design section 6; Talos facts: telling the modes apart).

The handshake is made without a client certificate. A node in maintenance mode asks for none and shows a leaf of
`maintenance-service.talos.dev` with an empty issuer; a configured node sends the alert "certificate required". The text
of an error decides nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

from .._model.errors import TalosError
from .._model.endpoint import Certificate, Endpoint, Probe
from .certificates import is_maintenance, is_talos_issued
from .dial import connect, explained, start_tls
from .failures import failed
from .resolve import Resolver
from .tls import TlsConnection

#: Reasons that say that something listens which is not the Talos API.
_NOT_TALOS = ("NotTls", "NotTalos")
#: Reasons of a connect that say that nothing listens.
_NOT_LISTENING = ("ConnectionRefused", "NotListening", "TimedOut")


async def probe(endpoint: Endpoint, resolver: Resolver, context: ssl.SSLContext, timeout: float) -> Probe:
    """Resolve, connect and shake hands, within one deadline. Never raises TalosError."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    try:
        addresses = await resolver.resolve(endpoint, timeout)
        async with asyncio.timeout_at(end):
            sock = await connect(endpoint, addresses, end)
    except TimeoutError:
        return _outcome(endpoint, "NotListening", failed("TimedOut", endpoint, seconds=timeout))
    except TalosError as error:
        return _outcome(endpoint, "NotListening" if error.reason in _NOT_LISTENING else "Unreachable", error)
    return await identify(endpoint, sock, context, end, timeout)


async def identify(endpoint: Endpoint, sock: socket.socket, context: ssl.SSLContext, end: float, timeout: float) -> Probe:
    """The same for a socket that is connected; it is closed afterwards. `end` is a time of the loop's clock."""
    connection: TlsConnection | None = None
    try:
        async with asyncio.timeout_at(end):
            connection = await start_tls(endpoint, sock, context, _any)
            certificate = await connection.handshake()
            await connection.greeting()
        if is_maintenance(certificate):
            return Probe(endpoint, "Maintenance", certificate)
        return _outcome(endpoint, "NotTalos", failed("NotTalos", endpoint), certificate)
    except TimeoutError:
        return _silent(endpoint, connection, timeout)
    except TalosError as error:
        return _refused(endpoint, explained(error, connection, context), connection)
    finally:
        if connection is not None:
            connection.close()
            await connection.closed


def _refused(endpoint: Endpoint, error: TalosError, connection: TlsConnection | None) -> Probe:
    certificate = connection.certificate if connection is not None else None
    if error.reason == "ClientCertificateRequired":
        return _outcome(endpoint, "AlreadyConfigured", error, certificate)
    if error.reason in _NOT_TALOS or (certificate is not None and not _talos(certificate)):
        return _outcome(endpoint, "NotTalos", error if error.reason in _NOT_TALOS else failed("NotTalos", endpoint), certificate)
    return _outcome(endpoint, "Unreachable", error, certificate)


def _silent(endpoint: Endpoint, connection: TlsConnection | None, timeout: float) -> Probe:
    """It took the connection and then said nothing: a server of another kind that waits for us, or a node that hangs."""
    certificate = connection.certificate if connection is not None else None
    if certificate is not None and not _talos(certificate):
        return _outcome(endpoint, "NotTalos", failed("NotTalos", endpoint), certificate)
    return _outcome(endpoint, "Unreachable", failed("TimedOut", endpoint, seconds=timeout), certificate)


def _talos(certificate: Certificate) -> bool:
    return is_maintenance(certificate) or is_talos_issued(certificate)


def _outcome(endpoint: Endpoint, kind: str, error: TalosError, certificate: Certificate | None = None) -> Probe:
    return Probe(endpoint, kind, certificate, error.reason, error.text)


def _any(certificate: Certificate) -> None:
    """A probe takes every certificate: it only looks."""
