# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an endpoint to a TLS connection whose other end has greeted, within one deadline."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from .._model.errors import TalosError
from .._model.endpoint import Certificate, Endpoint
from .certificates import is_talos_issued
from .failures import failed, tls_reason
from .resolve import Resolver, socket_address
from .tls import TlsConnection

Accept = Callable[[Certificate], None]


async def dial(endpoint: Endpoint, resolver: Resolver, context: ssl.SSLContext, accept: Accept, timeout: float) -> TlsConnection:
    """A connection that is ready for HTTP/2. Raises TalosError; after an error nothing is left open.

    The addresses of a name are tried one after the other until one takes the connection.
    """
    connection: TlsConnection | None = None
    end = asyncio.get_running_loop().time() + timeout
    addresses = await resolver.resolve(endpoint, timeout)
    try:
        async with asyncio.timeout_at(end):
            sock = await connect(endpoint, addresses, end)
            connection = await start_tls(endpoint, sock, context, accept)
            await connection.handshake()
            await connection.greeting()
            return connection
    except TimeoutError:
        await _discard(connection)
        raise failed("TimedOut", endpoint, seconds=timeout) from None
    except TalosError as error:
        await _discard(connection)
        raise explained(error, connection, context) from None
    except BaseException:
        await _discard(connection)
        raise


def explained(error: TalosError, connection: TlsConnection | None, context: ssl.SSLContext) -> TalosError:
    """A connection without client certificate that ends between a complete handshake and the greeting, at a node whose
    certificate a cluster issued: the alert was lost on the way, the certificate says as much."""
    if connection is None or connection.certificate is None or context.verify_mode != ssl.CERT_NONE:
        return error
    if error.reason == "ConnectionLost" and is_talos_issued(connection.certificate):
        return failed("ClientCertificateRequired", connection.node, detail=error.detail)
    return error


async def start_tls(endpoint: Endpoint, sock: socket.socket, context: ssl.SSLContext, accept: Accept) -> TlsConnection:
    """Begin TLS on a connected socket, which now belongs to the connection."""
    loop = asyncio.get_running_loop()
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        dummy, connection = await loop.create_connection(lambda: TlsConnection(endpoint, context, accept), sock=sock)
    except OSError as error:
        sock.close()
        raise failed(tls_reason(error), endpoint, detail=str(error)) from None
    except BaseException:
        sock.close()
        raise
    return connection


async def connect(endpoint: Endpoint, addresses: tuple[str, ...], end: float) -> socket.socket:
    """A TCP connection to the first of the addresses that takes one. `end`, a time of the loop's clock, is shared evenly among those
    that are left, so that one which swallows packets leaves time for the next."""
    loop = asyncio.get_running_loop()
    refusal: TalosError | None = None
    for left, address in zip(range(len(addresses), 0, -1), addresses):
        try:
            family, where = socket_address(address, endpoint.port)
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            refusal = failed(tls_reason(error), endpoint, detail=str(error))
            continue
        try:
            sock.setblocking(False)
            async with asyncio.timeout((end - loop.time()) / left):
                await loop.sock_connect(sock, where)
            return sock
        except TimeoutError:
            sock.close()
            if left == 1:
                raise
        except OSError as error:
            sock.close()
            refusal = failed(tls_reason(error), endpoint, detail=str(error))
        except BaseException:
            sock.close()
            raise
    raise refusal or failed("NotListening", endpoint)


async def _discard(connection: TlsConnection | None) -> None:
    if connection is not None:
        connection.close()
        await connection.closed
