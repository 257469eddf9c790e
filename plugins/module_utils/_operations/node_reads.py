# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Readings of one node as observations: an error becomes Unknown with its reason, and nothing is concluded from it here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .._decide.running_words import RunningNode
from .._decide.same_machine import other_machine
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.observations import Certificate, Endpoint, EtcdMember, NodeFacts
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.ports import Ports, Session
from .life_reads import unknown


async def read_running(ports: Ports, endpoint: Endpoint, credentials: Credentials | None) -> Observed[RunningNode]:
    """Identity, stage and configuration with authentication. Absent where there are no credentials to try."""
    if credentials is None:
        return Absent("no credentials")
    try:
        async with ports.nodes.authenticated(endpoint, credentials) as session:
            return Present(await _running(session), str(endpoint))
    except TalosError as error:
        return unknown(error)


async def _running(session: Session) -> RunningNode:
    identity, stage = await session.identity(), await session.stage()
    try:
        config = await session.machine_config(persistent=True)
    except TalosError:
        # A lesser role may not read it: the node runs all the same, and what it runs is not known.
        config = Absent()
    digest = hashlib.sha256(config.value).hexdigest() if isinstance(config, Present) else ""
    return RunningNode(identity, stage, digest)


async def read_maintenance(ports: Ports, endpoint: Endpoint) -> Observed[NodeFacts]:
    """The first insecure connection: unpinned, read-only, certificate and identity of the same connection."""
    try:
        async with ports.nodes.maintenance(endpoint) as session:
            return Present(await session.facts(), str(endpoint))
    except TalosError as error:
        return unknown(error)


async def read_boot_id(ports: Ports, endpoint: Endpoint, credentials: Credentials, identity: Identity) -> Observed[str]:
    """The boot id that the machine of this identity tells with authentication; Unknown where another one answers."""
    try:
        async with ports.nodes.authenticated(endpoint, credentials) as session:
            other = other_machine(identity, await session.identity())
            return Unknown("EndpointIdentityMismatch", other) if other else await session.boot_id()
    except TalosError as error:
        return unknown(error)


async def told_boot_id(ports: Ports, endpoint: Endpoint, credentials: Observed[Credentials], identity: Identity) -> str:
    """The same, or '' where it is not told."""
    found = await read_boot_id(ports, endpoint, credentials.value, identity) if isinstance(credentials, Present) else None
    return found.value if isinstance(found, Present) else ""


async def read_certificate(ports: Ports, endpoint: Endpoint) -> Observed[Certificate]:
    """The certificate that the node shows now."""
    try:
        async with ports.nodes.maintenance(endpoint) as session:
            return Present(session.certificate, str(endpoint))
    except TalosError as error:
        return unknown(error)


async def read_members(ports: Ports, endpoints: Iterable[Endpoint], credentials: Credentials | None) -> Observed[tuple[EtcdMember, ...]]:
    """The etcd members as the first control plane that answers lists them."""
    last: Observed[tuple[EtcdMember, ...]] = Unknown("ControlPlaneUnreachable", "no other control plane is known to be asked")
    for endpoint in endpoints:
        if credentials is None:
            return Unknown("SecretsUnavailable", "there are no credentials to ask a control plane with")
        try:
            async with ports.nodes.authenticated(endpoint, credentials) as session:
                return Present(await session.etcd_members(local=False), str(endpoint))
        except TalosError as error:
            last = unknown(error)
    return last
