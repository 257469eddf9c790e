# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reclaim is decided on: the records, the node in either mode, the ids of the managed clusters (design section 16)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .._decide.reclaim_inspection import uuid_of
from .._decide.reclaim_words import Inspection, Managed, Reclaiming, ReclaimWish
from .._machineconfig.secrets import read_bundle
from .._model.addresses import expand, parse_endpoint
from .._model.credentials import Credentials
from .._model.dialling import DialRules, dial_rules
from .._model.endpoint import Endpoint
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.plan import Target
from .._model.ports import Ports, Store
from .._model.records import CLUSTER, MACHINE, Record, list_at, text_at
from .._model.timing import Timing
from .._node.talosconfig import credentials_from_talosconfig
from .life_reads import unknown
from .node_reads import read_maintenance
from .reclaim_inspection import inspect
from .record_reads import credentials_for, need_store

#: Where nobody takes a connection, nobody is in maintenance mode either.
_NOBODY = frozenset({"ConnectionRefused", "NotListening", "NameNotResolved", "EndpointRefused"})


@dataclass(frozen=True)
class Entry:
    """One machine of a request. `talosconfig`: the text of the credential of its own cluster, of which `context` is taken; without one the
    bundle of the cluster that it goes to is used. `order`: the MachineReclaim that asks for it."""

    wish: ReclaimWish
    talosconfig: str = field(default="", repr=False)
    context: str = ""
    source: str = "talosconfig"
    order: str = ""

    @property
    def endpoint(self) -> Endpoint:
        """Raises TalosError `InvalidAddress`."""
        return parse_endpoint(self.wish.address)


@dataclass(frozen=True)
class Terms:
    """What holds for every machine of a run. `ranges`: where one that moved is looked for; the cluster's own where there are none."""

    ranges: tuple[str, ...] = ()
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


async def observe(ports: Ports, entry: Entry, terms: Terms, *, strict: bool = False) -> Reclaiming:
    """Everything that the decision looks at, as it is now. `strict`: under the leases."""
    store, wish = need_store(ports), entry.wish
    cluster, listing = store.get(CLUSTER, wish.cluster), store.list(MACHINE)
    target = Target(cluster=wish.cluster, cluster_id=cluster.uid if cluster else "", address=str(entry.endpoint))
    seen = Reclaiming(target, wish, cluster, listing.records, listing.broken, managed_clusters(store), strict=strict, listed=_listed(cluster, entry))
    if cluster is None:
        return seen
    rules = DialRules(terms.allow_loopback)
    node = await _configured(ports, entry, cluster, terms, rules)
    seen = replace(seen, node=node)
    if isinstance(node, Unknown) and node.reason not in _NOBODY:
        waiting = await read_maintenance(ports, entry.endpoint)
        seen = replace(seen, maintenance=waiting) if isinstance(waiting, Present) else seen
    return replace(seen, target=replace(target, uuid=uuid_of(seen)))


async def _configured(ports: Ports, entry: Entry, cluster: Record, terms: Terms, rules: DialRules) -> Observed[Inspection]:
    try:
        dial_rules(cluster.spec, terms.allow_loopback).check(entry.endpoint.host)
    except TalosError as error:
        return Unknown("EndpointRefused", error.message)
    credentials = credentials_of(ports, entry, cluster)
    if not isinstance(credentials, Present):
        return credentials if isinstance(credentials, Unknown) else Unknown("SecretsUnavailable", "there are no credentials")
    ports.progress(f"{entry.endpoint}: inspecting it; each call is given up after {terms.timing.inspection:g} s")
    return await inspect(ports, entry.endpoint, credentials.value, terms.timing, rules)


def credentials_of(ports: Ports, entry: Entry, cluster: Record | None) -> Observed[Credentials]:
    """What opens the node: the talosconfig of its own cluster, else what the cluster that it goes to has, for one of its own."""
    if not entry.talosconfig:
        return credentials_for(ports, entry.wish.cluster, cluster)
    try:
        return Present(credentials_from_talosconfig(entry.talosconfig, now=ports.clock.now(), context=entry.context, source=entry.source))
    except TalosError as error:
        return unknown(error)


def managed_clusters(store: Store) -> tuple[Managed, ...]:
    """Every cluster of the store with the id that its nodes' configurations carry."""
    listing = store.list(CLUSTER)
    broken = (Managed(Record(CLUSTER, entry.name), Unknown("RecordBroken", f"{entry.source} cannot be read")) for entry in listing.broken)
    return (*(Managed(record, _id_of(store, record)) for record in listing.records), *broken)


def _id_of(store: Store, cluster: Record) -> Observed[str]:
    name = text_at(cluster.spec, "secretsRef", "name")
    try:
        if not name or store.bundle_form(name) == "absent":
            return Absent("it has no bundle")
        return Present(read_bundle(store.bundle(name), source=f"bundle {name}").cluster_id)
    except TalosError as error:
        return Unknown(error.reason, error.text)


def registered(cluster: Record | None) -> tuple[str, ...]:
    """The addresses and ranges of `spec.discovery`, as they are written."""
    spec = cluster.spec if cluster is not None else {}
    return tuple(text for text in (*list_at(spec, "discovery", "addresses"), *list_at(spec, "discovery", "ranges")) if isinstance(text, str))


def _listed(cluster: Record | None, entry: Entry) -> bool:
    try:
        return entry.endpoint in expand(registered(cluster))
    except TalosError:
        return False
