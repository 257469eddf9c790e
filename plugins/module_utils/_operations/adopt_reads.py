# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read for an adoption: records, the bundle, and every named node with authentication (design section 15). Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from .._decide.adoption_reading import is_control_plane
from .._decide.adoption_words import AdoptSeen, AdoptWish, LiveNode
from .._model.addresses import expand, parse_endpoint
from .._model.credentials import Credentials
from .._model.dialling import dial_rules
from .._model.endpoint import Endpoint
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.ports import Ports, Session, Store
from .._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Record, text_at
from .bundle_file import observe_bundle
from .life_reads import unknown
from .probing import each
from .record_reads import credentials_for

#: How many nodes are read at once; each holds a configuration meanwhile.
_AT_ONCE = 16


async def observe(wish: AdoptWish, ports: Ports, store: Store, allow_loopback: bool) -> AdoptSeen:
    """All of it. A node that does not answer is Unknown with its reason. Raises what the store raises, and TalosError for an address that is none."""
    clusters, machines, patches = store.list(CLUSTER), store.list(MACHINE), store.list(CONFIG_PATCH)
    cluster = next((record for record in clusters.records if record.name == wish.cluster), None)
    broken = tuple(one for one in clusters.broken if one.name == wish.cluster) + machines.broken + patches.broken
    name = wish.bundle or (text_at(cluster.spec, "secretsRef", "name") if cluster is not None else "") or wish.cluster
    bundle = observe_bundle(store, name)[1]
    targets = expand(wish.addresses)
    credentials = credentials_for(ports, wish.cluster, cluster)
    if not isinstance(credentials, Present):
        raise TalosError(credentials.reason if isinstance(credentials, Unknown) else "SecretsUnavailable",
                         credentials.message if isinstance(credentials, Unknown) else "There are no credentials for the nodes.",
                         "Adoption reads the nodes with their own talosconfig: give talosconfig or talosconfig_content.")
    done: list[Endpoint] = []

    async def read(target: Endpoint) -> tuple[str, Observed[LiveNode]]:
        node = await _node(ports, target, credentials.value, cluster, allow_loopback)
        done.append(target)
        ports.progress(f"{len(done)} of {len(targets)} nodes: {target} {'read' if isinstance(node, Present) else 'gives no answer'}")
        return str(target), node

    nodes = await each(targets, read, _AT_ONCE)
    return AdoptSeen(cluster, broken, machines.records, patches.records, bundle, tuple(nodes), await _members(ports, nodes, credentials.value, cluster))


async def _node(ports: Ports, target: Endpoint, credentials: Credentials, cluster: Record | None, allow_loopback: bool) -> Observed[LiveNode]:
    try:
        dial_rules(cluster.spec if cluster is not None else None, allow_loopback).check(target.host)
        async with ports.nodes.authenticated(target, credentials) as session:
            return Present(await read_live(session, str(target)), str(target))
    except TalosError as error:
        return unknown(error)


async def read_live(session: Session, address: str) -> LiveNode:
    """One node on one connection. Raises TalosError where its configuration cannot be read."""
    facts = await session.facts()
    active = await session.machine_config()
    if not isinstance(active, Present):
        why = active.message if isinstance(active, Unknown) else "it holds none"
        raise TalosError("CurrentConfigUnavailable", f"The configuration of the node at {address} cannot be read ({why}).",
                         "Give a talosconfig of the role os:admin.")
    kept = await session.machine_config(persistent=True)
    return LiveNode(address, facts, active.value, kept.value if isinstance(kept, Present) and kept.value != active.value else None)


async def _members(ports: Ports, nodes: Sequence[tuple[str, Observed[LiveNode]]], credentials: Credentials, cluster: Record | None) -> Observed[int]:
    """How many members etcd has, as the first control plane says that answers; a cluster that has a record is known by that."""
    found: Observed[int] = Absent()
    for address, node in nodes if cluster is None else ():
        if isinstance(node, Present) and is_control_plane(node.value):
            try:
                async with ports.nodes.authenticated(parse_endpoint(address), credentials) as session:
                    return Present(len(await session.etcd_members(local=False)), address)
            except TalosError as error:
                found = unknown(error)
    return found
