# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_cluster_info`: cluster records, their machines in numbers, the lock, and what the control planes say now. Writes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from .._decide.approved import approved_control_planes, in_cluster
from .._decide.cluster_telling import Seen, count, tell_cluster
from .._decide.following import is_member
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import dial_endpoint
from .._model.moments import moment
from .._model.observations import EtcdStatus
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Outcome
from .._model.ports import Gate, LeaseView, Ports, Session
from .._model.records import CLUSTER, MACHINE, Json, Record
from .._model.timing import Timing
from .life_reads import unknown
from .probing import each
from .record_reads import credentials_for, need_store, record_in
from .select import as_document


@dataclass(frozen=True)
class Request:
    """Which clusters; all of the store when none is named. `read_nodes` False shows the records alone."""

    clusters: tuple[str, ...] = ()
    read_nodes: bool = True
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read records and control planes. There is no plan."""
    store = need_store(ports)
    listing, machines = store.list(CLUSTER), store.list(MACHINE)
    clusters = [record_in(listing, name, "cluster", store.description) for name in request.clusters] if request.clusters else list(listing.records)
    seen = await each(clusters, lambda cluster: _look(request, ports, cluster, in_cluster(machines.records, cluster.name)))
    broken: list[Json] = [{"name": entry.name, "source": entry.source, "line": entry.line, "message": entry.message}
                          for entry in (*listing.broken, *machines.broken)]
    silent = tuple(name for one in seen for name, status in one.etcd if isinstance(status, Unknown))
    shown: list[Json] = [_shown(one) for one in seen]
    return Outcome(unreachable=silent, message=f"{len(seen)} cluster{'' if len(seen) == 1 else 's'}.", extra={"clusters": shown, "broken": broken})


async def _look(request: Request, ports: Ports, cluster: Record, machines: tuple[Record, ...]) -> Seen:
    leases = need_store(ports).leases
    etcd = await _etcd(request, ports, cluster, approved_control_planes(machines)) if request.read_nodes else ()
    return Seen(cluster, machines, leases.read(cluster.name), leases.no_lock(), etcd)


async def _etcd(request: Request, ports: Ports, cluster: Record, planes: tuple[Record, ...]) -> tuple[tuple[str, Observed[EtcdStatus]], ...]:
    """What each control plane says of its own member, with authentication only."""
    credentials = credentials_for(ports, cluster.name, cluster)
    if not isinstance(credentials, Present):
        return ()
    given, rules = credentials.value, dial_rules(cluster.spec, request.allow_loopback)

    async def ask(machine: Record) -> tuple[str, Observed[EtcdStatus]]:
        try:
            endpoint = dial_endpoint(machine)
            rules.check(endpoint.host)
            async with ports.nodes.authenticated(endpoint, given) as session:
                return machine.name, await _own_member(session)
        except TalosError as error:
            return machine.name, unknown(error)

    return tuple(await each(planes, ask))


async def _own_member(session: Session) -> Observed[EtcdStatus]:
    """etcd's status. Of a service that does not run it is not asked: before the bootstrap the call would hang until its deadline (section 9)."""
    services = await session.services()
    state = next((service.state for service in services if service.id == "etcd"), "")
    if state and state != "Running":
        return Absent(f"Its etcd does not run: the service is in state {state}.")
    return Present(await session.etcd_status(), str(session.endpoint))


def _shown(seen: Seen) -> dict[str, Json]:
    doing: dict[str, Json] = dict(asdict(tell_cluster(seen)))
    counts: dict[str, Json] = dict(asdict(count(seen.machines)))
    etcd: list[Json] = [_member(name, status) for name, status in seen.etcd]
    return {**as_document(seen.cluster), "source": seen.cluster.source, "machines": counts, "lock": _lock(seen.lease, seen.no_lock), "etcd": etcd,
            "doing": doing}


def _lock(lease: LeaseView | None, no_lock: str) -> dict[str, Json]:
    """Who holds the lock, since when and for what; '' where nobody does."""
    if lease is None or not lease.holder:
        return {"holder": "", "purpose": "", "since": "", "no_lock": no_lock}
    return {"holder": lease.holder, "purpose": lease.purpose, "since": moment(lease.acquired_at), "no_lock": no_lock}


def _member(name: str, status: Observed[EtcdStatus]) -> dict[str, Json]:
    if not isinstance(status, Present):
        told = status if isinstance(status, Unknown) else Unknown("NodeStarting", status.source)
        return {"machine": name, "answers": False, "member": None, "leader": None, "learner": None, "db_size": None, "reason": told.reason,
                "message": told.message}
    value = status.value
    return {"machine": name, "answers": True, "member": is_member(status), "leader": bool(value.member_id) and value.member_id == value.leader,
            "learner": value.learner, "db_size": value.db_size, "reason": "", "message": ""}
