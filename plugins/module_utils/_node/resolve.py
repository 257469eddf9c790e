# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an endpoint to the literal addresses that may be dialled.

A look-up runs in a daemon thread of its own: in the loop's executor a hung `getaddrinfo` would hold the whole process
until it returns. What was looked up is checked, and is what is dialled; there is no second look-up that could answer
something else (design sections 3 and 5).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterable

from .._model.dialling import DialRules
from .._model.errors import Failure, TalosError
from .._model.endpoint import Endpoint

#: More look-ups than this at once wait for each other; each is a thread.
PARALLEL_LOOKUPS = 32


class Resolver:
    """Looks names up, at most PARALLEL_LOOKUPS at a time; use it inside one event loop."""

    def __init__(self, rules: Iterable[DialRules]) -> None:
        #: All have to agree with an address: one cluster's, or those of all clusters of a store.
        self.rules = tuple(rules)
        self._slots: asyncio.Semaphore | None = None

    async def resolve(self, endpoint: Endpoint, timeout: float) -> tuple[str, ...]:
        """The literal addresses of an endpoint, checked. Raises `NameNotResolved` or `EndpointRefused`.

        A name of which any address is refused is refused as a whole: what a name answers is not under our control.
        """
        literal = literal_address(endpoint.host)
        for rule in self.rules:
            rule.check(literal or endpoint.host)
        if literal:
            return (literal,)
        addresses = await self._look_up(endpoint, timeout)
        for address in addresses:
            for rule in self.rules:
                rule.check(address, endpoint.host)
        return addresses

    async def _look_up(self, endpoint: Endpoint, timeout: float) -> tuple[str, ...]:
        if self._slots is None:
            self._slots = asyncio.Semaphore(PARALLEL_LOOKUPS)
        hint = "Check the name and the resolver of this host, or give an IP address."
        try:
            async with asyncio.timeout(timeout), self._slots:
                found = await _getaddrinfo(endpoint.host, endpoint.port)
        except TimeoutError:
            raise TalosError("NameNotResolved", f"The name {endpoint.host} was not resolved within {timeout:g} s.", hint,
                             failure=Failure(node=str(endpoint), retryable=True)) from None
        except (OSError, UnicodeError) as error:
            raise TalosError("NameNotResolved", f"The name {endpoint.host} cannot be resolved.", hint, detail=str(error),
                             failure=Failure(node=str(endpoint), retryable=True)) from None
        if not found:
            raise TalosError("NameNotResolved", f"The name {endpoint.host} has no address.", hint,
                             failure=Failure(node=str(endpoint), retryable=True))
        return found


def literal_address(host: str) -> str:
    """The canonical form of a literal IP address (brackets allowed, a zone kept), or '' for a name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return ""


def socket_address(address: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """Family and address for `connect` of a literal address; asks no resolver."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV)[0]
    return found[0], found[4]


async def _getaddrinfo(host: str, port: int) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[str, ...]] = loop.create_future()

    def deliver(found: tuple[str, ...], error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)

    def look_up() -> None:
        found: tuple[str, ...] = ()
        failure: Exception | None = None
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = tuple(dict.fromkeys(str(row[4][0]) for row in rows))
        except (OSError, UnicodeError) as error:
            failure = error
        try:
            loop.call_soon_threadsafe(deliver, found, failure)
        except RuntimeError:
            return  # the loop has ended meanwhile: nobody waits any more

    threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
    return await answer
