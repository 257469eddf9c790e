# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`etcd_member`: remove one dead member by its id, with every gate, on readings made under the lock (design sections 12 and 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from .._decide.approved import in_cluster
from .._decide.etcd_member import MemberSeen, Verdict, decide_member, listed_member, owner
from .._decide.etcd_words import RemoveEtcdMember
from .._decide.hostnames import host_of
from .._model.dialling import dial_rules
from .._model.errors import LOCK_REASONS, TalosError
from .._model.machine import dial_endpoint
from .._model.moments import moment
from .._model.observations import Endpoint
from .._model.observed import Absent, Present, Unknown
from .._model.outcome import Outcome
from .._model.plan import Plan, Refusal, Target
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Event, Ref
from .._model.timing import Timing
from .dead_member import Look, remove_member
from .draining import ready_of
from .etcd_reads import read_view
from .lease import held
from .member_reads import look_at_member
from .record_reads import credentials_for, sent_control_planes


@dataclass(frozen=True)
class Request:
    """The member with this id (up to 16 hexadecimal digits) of this cluster is not to be there."""

    cluster: str
    member: str
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe, decide, show the plan, and remove under the lock."""
    if not re.fullmatch(r"[0-9a-fA-F]{1,16}", request.member):
        raise TalosError("InvalidInput", f"{request.member!r} is no id of an etcd member.", "Give its 16 hexadecimal digits, as etcd_member_info shows them.")
    request = replace(request, member=request.member.lower().rjust(16, "0"))
    if ports.store is None:
        refusal = Refusal(Target(CLUSTER, request.cluster, request.cluster), "NoLock", "Removing a member needs the lock of its cluster, and without a store "
                          "there is none.", "Name a store and the cluster's record.", "13/no-store")
        gate(Plan(refusals=(refusal,)))
        return _outcome(Plan(refusals=(refusal,)), refusal)
    seen = await observe(request, ports)
    verdict = decide_member(seen)
    granted = gate(verdict.plan)
    step = next((one for one in granted.steps if isinstance(one, RemoveEtcdMember)), None)
    if step is None:
        return _outcome(verdict.plan, next(iter(verdict.plan.refusals), None), message=verdict.done)
    return await _act(request, ports, seen, verdict, step)


async def observe(request: Request, ports: Ports) -> MemberSeen:
    """The members as the approved control planes tell them, and whether this one answers."""
    store = ports.store
    cluster = store.get(CLUSTER, request.cluster) if store is not None else None
    if store is None or cluster is None:
        raise TalosError("RecordNotFound", f"There is no cluster {request.cluster} in the store.", "Check the name.")
    machines = in_cluster(store.list(MACHINE).records, request.cluster)
    seen = MemberSeen(Target(CLUSTER, request.cluster, request.cluster, cluster.uid), request.member, cluster, machines, Unknown("ControlPlaneUnreachable"))
    credentials = credentials_for(ports, request.cluster, cluster)
    if not isinstance(credentials, Present):
        return replace(seen, etcd=Unknown("SecretsUnavailable", credentials.message if isinstance(credentials, Unknown) else "there are no credentials"))
    rules = dial_rules(cluster.spec, request.allow_loopback)
    endpoints = sent_control_planes(machines)
    seen = replace(seen, etcd=await read_view(ports, endpoints, credentials.value, None, None))
    member = listed_member(seen)
    if member is None or not isinstance(seen.etcd, Present):
        return seen
    machine = owner(member, machines)
    home = dial_endpoint(machine) if machine is not None else None
    port = home.port if home is not None else endpoints[0].port
    places = dict.fromkeys([*([home] if home is not None else []), *(Endpoint(host, port) for url in member.peer_urls if (host := host_of(url)))])
    ready = await ready_of(ports, machine) if machine is not None else Absent("no machine of it is recorded")
    return replace(seen, look=await look_at_member(ports, tuple(places), seen.etcd.value.through, credentials.value, rules, ready))


async def _act(request: Request, ports: Ports, seen: MemberSeen, verdict: Verdict, step: RemoveEtcdMember) -> Outcome:
    async def look() -> Look:
        latest = await observe(request, ports)
        again = decide_member(latest)
        found = next((one for one in again.plan.steps if isinstance(one, RemoveEtcdMember)), None)
        given = credentials_for(ports, request.cluster, latest.cluster)
        return Look(found, latest.etcd, given.value if isinstance(given, Present) else None, next(iter(again.plan.refusals), None))

    error: TalosError | None = None
    try:
        async with held(ports, request.cluster, f"removing etcd member {request.member}", request.timing) as lease:
            ended = await remove_member(ports, look, step, lease, request.timing)
        error = ended if isinstance(ended, TalosError) else None
    except TalosError as raised:
        ended = error = raised
    refusal = ended if isinstance(ended, Refusal) else None
    if error is not None:
        refusal = Refusal(seen.target, error.reason, error.message, error.hint, "13/lock" if error.reason in LOCK_REASONS else "14/failed")
    if refusal is not None:
        return _outcome(verdict.plan, refusal, error=error, step=step.id)
    event = Event(Ref(CLUSTER, request.cluster), "Warning", "DeadMemberRemoved", f"The dead etcd member {request.member} was removed by its id.",
                  moment(ports.clock.now()))
    if ports.store is not None:
        ports.store.record_event(event)
    return _outcome(verdict.plan, None, message=f"etcd member {request.member} was removed.", executed=(step.id,), events=(event,))


def _outcome(plan: Plan, refusal: Refusal | None, *, message: str = "", executed: tuple[str, ...] = (), events: tuple[Event, ...] = (),
             error: TalosError | None = None, step: str = "") -> Outcome:
    plan = plan.refused(refusal)
    told = f"{refusal.message} {refusal.hint}".strip() if refusal is not None else message
    return Outcome(plan=plan, executed=executed, events=events, refused=refusal is not None, reason=refusal.reason if refusal is not None else "", message=told,
                   failure=replace(error.failure, step=step) if error is not None else None)
