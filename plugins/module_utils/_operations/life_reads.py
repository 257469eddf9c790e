# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One look at a machine for following (design section 9): where it is dialled, at its static addresses, insecurely.

This file imports nothing of configurations, so that `talos_stage` starts without them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from .._decide.following import Answer, Following, Insecure, wants_etcd, wants_services
from .._decide.same_machine import difference
from .._model.approval import approval_state
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.observations import Endpoint, EtcdStatus, ServiceState
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.ports import Ports, Session
from .._model.records import Record, dig, list_at
from .._model.timing import Timing

#: Where nobody listened for TLS, nobody listens without a client certificate either.
_NOBODY = frozenset({"ConnectionRefused", "NotListening", "NameNotResolved", "EndpointRefused"})


def unknown(error: TalosError) -> Unknown:
    """An error as an observation."""
    detail = " ".join(error.detail.split())
    return Unknown(error.reason, f"{error.message.rstrip('.')} ({detail})." if detail else error.message, error.failure.node)


async def look(ports: Ports, endpoint: Endpoint, credentials: Observed[Credentials], identity: Identity, timing: Timing, *,
               machine: Record | None = None, cluster: Record | None = None, insecurely: bool = True,
               static: tuple[Endpoint, ...] = (), told: Callable[[], Awaitable[tuple[Endpoint, ...]]] | None = None) -> Following:
    """Everything that following looks at. The maintenance API is asked only where `insecurely` says so, at the address to
    dial, and only when no authenticated read gave the machine itself. `told` is asked where else it may be when it was not found.
    A machine that is not approved is not dialled at all."""
    if machine is not None and approval_state(machine) != "approved":
        return Following(identity, Absent("not asked"), Absent("not asked"), machine, cluster, timing=timing)
    answer = await _authenticated(ports, endpoint, credentials)
    own = isinstance(answer, Present) and not (identity != Identity() and difference(identity, answer.value.identity))
    elsewhere: list[tuple[str, Observed[Answer]]] = []

    async def search(addresses: Sequence[Endpoint]) -> bool:
        for address in addresses:
            if address != endpoint:
                elsewhere.append((str(address), await _authenticated(ports, address, credentials)))
        return any(isinstance(found, Present) and not difference(identity, found.value.identity) for dummy, found in elsewhere)

    own = own or await search(static)
    if not own and told is not None:
        own = await search([address for address in await told() if address not in static])
    insecure: Observed[Insecure] = Absent("not asked")
    if isinstance(answer, Unknown) and answer.reason in _NOBODY:
        insecure = answer
    elif insecurely and not own and not isinstance(answer, Present):
        insecure = await _insecure(ports, endpoint)
    return Following(identity, answer, insecure, machine, cluster, tuple(elsewhere), timing)


async def _authenticated(ports: Ports, endpoint: Endpoint, credentials: Observed[Credentials]) -> Observed[Answer]:
    if not isinstance(credentials, Present):
        # Whatever is wrong with a bundle, what is missing here is something to show to the node.
        return Unknown("SecretsUnavailable", credentials.message if isinstance(credentials, Unknown) else "")
    try:
        async with ports.nodes.authenticated(endpoint, credentials.value) as session:
            identity, stage = await session.identity(), await session.stage()
            services = await _services(session) if wants_services(stage) else ()
            etcd = await _etcd(session) if wants_etcd(stage) else Absent()
            return Present(Answer(identity, stage, services, etcd), str(endpoint))
    except TalosError as error:
        return unknown(error)


async def _services(session: Session) -> tuple[ServiceState, ...]:
    try:
        return await session.services()
    except TalosError:
        # Nothing is concluded from it then: the control plane is starting.
        return ()


async def _etcd(session: Session) -> Observed[EtcdStatus]:
    """Absent is a worker, which says that it has no etcd; silence is Unknown."""
    try:
        return Present(await session.etcd_status(), str(session.endpoint))
    except TalosError as error:
        return Absent(str(session.endpoint)) if error.reason in ("Unimplemented", "NotControlPlane") else unknown(error)


async def _insecure(ports: Ports, endpoint: Endpoint) -> Observed[Insecure]:
    try:
        async with ports.nodes.maintenance(endpoint) as session:
            return Present(Insecure(await session.identity(), session.certificate.fingerprint), str(endpoint))
    except TalosError as error:
        return unknown(error)


def static_endpoints(machine: Record, port: int) -> tuple[Endpoint, ...]:
    """The static addresses that the spec gives the machine (section 9: from a DHCP lease to a static address)."""
    if dig(machine.spec, "network", "primary", "dhcp") is True:
        return ()
    listed = list_at(machine.spec, "network", "primary", "addresses")
    return tuple(Endpoint(entry.partition("/")[0], port) for entry in listed if isinstance(entry, str) and entry)
