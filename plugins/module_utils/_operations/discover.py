# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find machines in maintenance mode; with a store, write pending machines and refresh pins (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .._decide.discovery_targets import targets_of, to_verify
from .._decide.discovery_words import PENDING_LIMIT, Discovery, KubernetesHost, World
from .._model.addresses import expand
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.endpoint import Endpoint
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.ports import Gate, Ports, Store
from .._model.records import CLUSTER, MACHINE, Event, Listing, Record, list_at, text_at
from .._model.timing import Timing
from .in_thread import in_thread
from .probing import Pace, answers_of

if TYPE_CHECKING:
    from .._model.outcome import Outcome


@dataclass(frozen=True)
class Request:
    """`addresses` and `ranges` as people write them; without both the cluster's `spec.discovery` is probed.

    `register` False only reads; it needs no store.
    """

    cluster: str = ""
    addresses: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    register: bool = True
    pending_limit: int = PENDING_LIMIT
    rate: float = 1000.0
    unresolved: int = 256
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True)
class _Records:
    cluster: Record | None = None
    machines: Listing = field(default_factory=Listing)
    events: tuple[Event, ...] = ()


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe, decide, show the plan, and write what it says.

    Named addresses that are not dialled are listed as blocked; when there is no other, the task is refused.
    """
    records = _records(request, ports.store)
    wanted = _wanted(request, records.cluster)
    rules = dial_rules(records.cluster.spec if records.cluster else None, request.allow_loopback)
    registered = () if wanted.named else _registered(records.cluster)
    hosts = await _hosts(ports, wanted, records.cluster)
    targets = targets_of(wanted, registered, records.machines.records, hosts, rules)
    if not targets.probe and not targets.skipped:
        raise TalosError("InvalidInput", "There is no address to probe.",
                         "Give addresses or ranges, or list them in the cluster's spec.discovery.")
    ports.progress(f"probing {len(targets.probe)} address{'' if len(targets.probe) == 1 else 'es'}")
    pace = Pace(request.rate, request.unresolved, request.timing.connect)
    world = World(await answers_of(ports, targets.probe, pace), records.cluster, records.machines.records,
                  records.machines.broken, records.events, hosts)
    verify = to_verify(wanted, world, rules) if wanted.register else ()
    if verify:
        world = replace(world, answers=(*world.answers, *await answers_of(ports, verify, pace)))
    from . import discovered  # the first packets did not wait for it

    note = " No cluster is named, so nothing is registered." if request.register and not request.cluster else ""
    looked = discovered.Looked(wanted, request.timing, targets, world, records.machines.vanished, note)
    return await discovered.conclude(looked, ports, gate)


async def _hosts(ports: Ports, wanted: Discovery, cluster: Record | None) -> Observed[tuple[KubernetesHost, ...]]:
    """The addresses of the Nodes of a cluster that runs; they matter only where nobody named an address."""
    workloads = ports.workloads
    if wanted.named or workloads is None or cluster is None or not text_at(cluster.status, "bootstrappedAt"):
        return Absent()
    port, name = workloads, cluster.name
    try:
        nodes = await in_thread(lambda: port.nodes(name))
    except TalosError as error:
        return Unknown(error.reason, error.message)
    return Present(tuple(KubernetesHost(node.name, address, node.reset_at) for node in nodes for address in node.addresses), f"Kubernetes of {name}")


def _records(request: Request, store: Store | None) -> _Records:
    if store is None:
        if request.register and request.cluster:
            raise TalosError("StoreMissing", "Machines of a cluster can only be registered in a store.",
                             "Give store, or register: false to only look.")
        return _Records()
    machines = store.list(MACHINE)
    if not request.cluster:
        return _Records(machines=machines)
    cluster = store.get(CLUSTER, request.cluster)
    if cluster is None:
        raise TalosError("RecordNotFound", f"There is no cluster {request.cluster} in {store.description}.",
                         "Create it with talos_cluster, or correct the name.")
    return _Records(cluster, machines, store.events(cluster.ref))


def _wanted(request: Request, cluster: Record | None) -> Discovery:
    named = expand((*request.addresses, *request.ranges))
    return Discovery(cluster.name if cluster else "", named, request.register and cluster is not None, request.pending_limit,
                     whole=not named, settle=request.timing.settle)


def _registered(cluster: Record | None) -> tuple[Endpoint, ...]:
    if cluster is None:
        return ()
    texts = [*list_at(cluster.spec, "discovery", "addresses"), *list_at(cluster.spec, "discovery", "ranges")]
    return expand(text for text in texts if isinstance(text, str))
