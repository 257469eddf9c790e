# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One look at a machine that is to go: its records, the node, etcd as the others tell it, and whether its member is dead (section 14)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from .._decide.hostnames import host_of
from .._decide.member_death import sees_leader
from .._decide.removal import listed, needs_etcd
from .._decide.removal_gates import is_sent, sent_control_plane
from .._decide.removal_words import AliveNode, Leaving, RemovalWish
from .._decide.same_machine import other_machine
from .._model.credentials import Credentials
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.observations import Endpoint, EtcdStatus, NodeFacts
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.plan import Target
from .._model.ports import Ports, Session
from .._model.records import MACHINE
from .._model.workloads import Hosting
from .draining import hosting_of
from .etcd_reads import read_view
from .life_reads import unknown
from .member_reads import look_at_member
from .node_reads import read_maintenance
from .record_reads import MachineView, address_of, credentials_for, need_store, other_control_planes, read_machine


async def observe(ports: Ports, name: str, wish: RemovalWish, allow_loopback: bool, *, strict: bool = False) -> Leaving:
    """Everything that the decision looks at, as it is now."""
    store = need_store(ports)
    if store.get(MACHINE, name) is None:
        return Leaving(Target(name=name), wish, None, strict=strict)
    view = read_machine(store, name)
    seen = Leaving(view.target, wish, view.machine, view.cluster, view.siblings, strict=strict)
    if not is_sent(seen):
        return seen
    address, credentials = address_of(view, allow_loopback), credentials_for(ports, cluster_of(view.machine), view.cluster)
    if not isinstance(address, Present):
        return replace(seen, node=address if isinstance(address, Unknown) else Unknown("EndpointRefused", "it has no address"))
    if not isinstance(credentials, Present):
        return replace(seen, node=Unknown("SecretsUnavailable", credentials.message if isinstance(credentials, Unknown) else ""),
                       maintenance=await read_maintenance(ports, address.value))
    given = credentials.value
    node, etcd, hosting = await asyncio.gather(
        _alive(ports, view, address.value, given, sent_control_plane(seen)),
        read_view(ports, other_control_planes(view), given, None, None) if needs_etcd(seen) else _nothing(), hosting_of(ports, view.machine))
    maintenance: Observed[NodeFacts] = Absent("not asked")
    if not isinstance(node, Present):
        maintenance = await read_maintenance(ports, address.value)
    seen = replace(seen, node=node, etcd=etcd, maintenance=maintenance, hosting=hosting)
    if not isinstance(etcd, Present) or isinstance(node, Present) and sees_leader(node.value.etcd):
        return seen
    left = listed(seen)
    hosts = {host_of(url) for member in (*left.own, *left.elsewhere, *left.renamed) for url in member.peer_urls} - {"", address.value.host}
    places = [address.value, *(Endpoint(host, address.value.port) for host in sorted(hosts))]
    rules = dial_rules(view.cluster.spec if view.cluster is not None else None, allow_loopback)
    return replace(seen, look=await look_at_member(ports, places, etcd.value.through, given, rules, _ready(hosting)))


async def _nothing() -> None:
    return None


async def _alive(ports: Ports, view: MachineView, address: Endpoint, credentials: Credentials, plane: bool) -> Observed[AliveNode]:
    try:
        async with ports.nodes.authenticated(address, credentials) as session:
            identity = await session.identity()
            if other_machine(identity_of(view.machine), identity):
                return Present(AliveNode(identity, await session.stage(), Absent(), Absent()), str(address))
            etcd = await _status(session) if plane else Absent()
            return Present(AliveNode(identity, await session.stage(), await session.partitions(), await session.boot_id(), etcd), str(address))
    except TalosError as error:
        return unknown(error)


async def _status(session: Session) -> Observed[EtcdStatus]:
    try:
        return Present(await session.etcd_status(), str(session.endpoint))
    except TalosError as error:
        return unknown(error)


def _ready(hosting: Observed[Hosting] | None) -> Observed[bool]:
    """Whether its Kubernetes Node is Ready, where that can be read."""
    if hosting is None:
        return Absent("no Kubernetes")
    return Present(hosting.value.node.ready, hosting.source) if isinstance(hosting, Present) else hosting
