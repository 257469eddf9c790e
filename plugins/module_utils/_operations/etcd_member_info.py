# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`etcd_member_info`: etcd's members as each control plane that answers sees them itself, and who disagrees. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .._decide.approved import approved_control_planes, in_cluster
from .._decide.hostnames import addresses, host_of
from .._model.addresses import parse_endpoint
from .._model.approval import was_sent
from .._model.credentials import Credentials
from .._model.dialling import DialRules, dial_rules
from .._model.errors import TalosError
from .._model.machine import dial_endpoint
from .._model.observations import Endpoint, EtcdAlarm, EtcdMember, EtcdStatus
from .._model.observed import Observed, Present, Unknown
from .._model.outcome import Outcome
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Json, Record
from .._model.timing import Timing
from .life_reads import unknown
from .probing import each
from .record_reads import credentials_for, no_cluster

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """The control planes of a cluster's record, or the nodes at these addresses."""

    cluster: str = ""
    endpoints: tuple[str, ...] = ()
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass(frozen=True)
class _Told:
    """What one control plane said of etcd, by its own member."""

    name: str
    endpoint: Endpoint | None
    members: Observed[tuple[EtcdMember, ...]]
    status: Observed[EtcdStatus]
    alarms: Observed[tuple[EtcdAlarm, ...]]


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read. There is no plan."""
    cluster, machines = _records(request, ports)
    credentials = credentials_for(ports, request.cluster, cluster)
    if not isinstance(credentials, Present):
        raise TalosError("SecretsUnavailable", credentials.message if isinstance(credentials, Unknown) else "There are no credentials for the nodes.",
                         "Give talosconfig, or a cluster whose secrets bundle can be read.")
    given, rules = credentials.value, dial_rules(cluster.spec if cluster is not None else None, request.allow_loopback)
    places = _places(request, machines)
    if not places:
        raise TalosError("InvalidInput", "There is no control plane to be asked.",
                         "Name a cluster whose control planes were sent a configuration, or endpoints.")
    told = await each(places, lambda place: _ask(ports, place[0], place[1], given, rules))
    views = {_key(one.members.value) for one in told if isinstance(one.members, Present)}
    most = max(views, key=lambda view: sum(1 for one in told if isinstance(one.members, Present) and _key(one.members.value) == view), default=())
    dissent = tuple(one.name for one in told if isinstance(one.members, Present) and _key(one.members.value) != most)
    silent = tuple(one.name for one in told if not isinstance(one.status, Present))
    listed = next((one.members.value for one in told if isinstance(one.members, Present) and _key(one.members.value) == most), ())
    members = [_member(member, told, machines) for member in listed]
    seen_by: list[Json] = [_control_plane(one) for one in told]
    leaders = sorted({one.status.value.leader for one in told if isinstance(one.status, Present) and one.status.value.leader})
    answering = len(told) - len(silent)
    for line in (*(_line(member) for member in members), *(line for one in told if (line := _trouble(one))),
                 *(f"{name} lists other members than most" for name in dissent)):
        ports.progress(line)
    asked = f"{answering} of {len(told)} control plane{'' if len(told) == 1 else 's'}"
    message = (f"{len(listed)} member{'' if len(listed) == 1 else 's'}, told by {asked}." if views else f"The members are not known; {asked} answer.")
    return Outcome(message=message, unreachable=silent, extra={
        "members": [*members], "control_planes": seen_by, "leader": leaders[0] if len(leaders) == 1 else "", "agree": len(views) == 1 and len(leaders) <= 1,
        "disagree": list(dissent)})


def _records(request: Request, ports: Ports) -> tuple[Record | None, tuple[Record, ...]]:
    if ports.store is None or not request.cluster:
        if not request.endpoints:
            raise TalosError("InvalidInput", "Nothing says which control planes to ask.", "Name a cluster of a store, or endpoints.")
        return None, ()
    cluster = ports.store.get(CLUSTER, request.cluster)
    if cluster is None:
        raise no_cluster(ports.store, request.cluster)
    return cluster, in_cluster(ports.store.list(MACHINE).records, request.cluster)


def _places(request: Request, machines: tuple[Record, ...]) -> list[tuple[str, Endpoint | TalosError]]:
    if request.endpoints:
        return [(text, parse_endpoint(text)) for text in request.endpoints]
    found: list[tuple[str, Endpoint | TalosError]] = []
    for machine in approved_control_planes(machines):
        if was_sent(machine):
            try:
                found.append((machine.name, dial_endpoint(machine)))
            except TalosError as error:
                found.append((machine.name, error))
    return found


async def _ask(ports: Ports, name: str, place: Endpoint | TalosError, credentials: Credentials, rules: DialRules) -> _Told:
    try:
        if isinstance(place, TalosError):
            raise place
        rules.check(place.host)
        async with ports.nodes.authenticated(place, credentials) as session:
            status: Observed[EtcdStatus] = Present(await session.etcd_status())
            members: Observed[tuple[EtcdMember, ...]]
            alarms: Observed[tuple[EtcdAlarm, ...]]
            try:
                members = Present(await session.etcd_members(local=True))
            except TalosError as error:
                members = unknown(error)
            try:
                alarms = Present(await session.etcd_alarms())
            except TalosError as error:
                alarms = unknown(error)
            return _Told(name, place, members, status, alarms)
    except TalosError as error:
        said = unknown(error)
        return _Told(name, place if isinstance(place, Endpoint) else None, said, said, said)


def _key(members: Sequence[EtcdMember]) -> tuple[tuple[str, str, bool], ...]:
    return tuple(sorted((member.id, member.name, member.learner) for member in members))


def _member(member: EtcdMember, told: Sequence[_Told], machines: tuple[Record, ...]) -> dict[str, Json]:
    own = next((one for one in told if isinstance(one.status, Present) and one.status.value.member_id == member.id), None)
    status = own.status.value if own is not None and isinstance(own.status, Present) else None
    hosts = {host_of(url) for url in member.peer_urls}
    machine = own.name if own is not None else next((one.name for one in approved_control_planes(machines) if hosts & addresses(one)), "")
    raised = sorted({alarm.kind for one in told if isinstance(one.alarms, Present) for alarm in one.alarms.value if alarm.member_id == member.id})
    peers: list[Json] = list(member.peer_urls)
    alarms: list[Json] = list(raised)
    return {"id": member.id, "name": member.name, "peer_urls": peers, "learner": member.learner, "machine": machine, "answers": status is not None,
            "leader": status is not None and status.leader == member.id, "alarms": alarms,
            "db_size": status.db_size if status is not None else None, "db_size_in_use": status.db_size_in_use if status is not None else None,
            "raft_index": status.raft_index if status is not None else None}


def _line(member: dict[str, Json]) -> str:
    """A member for a person who has only the output."""
    machine = f" on {member['machine']}" if member["machine"] else ", of no known machine"
    state = "answers and leads" if member["leader"] else "answers" if member["answers"] else "does not answer"
    alarms = member["alarms"]
    more = [*(["a learner, without a vote"] if member["learner"] else []), *(str(alarm) for alarm in (alarms if isinstance(alarms, list) else []))]
    return f"member {member['id']}, {member['name'] or 'without a name'}{machine}: {', '.join((state, *more))}"


def _trouble(one: _Told) -> str:
    """Why a control plane lists no members, or ''. Without a quorum etcd answers about itself and about nothing else."""
    if not isinstance(one.status, Present):
        return f"{one.name}: its etcd does not answer{_why(one.status)}"
    if not isinstance(one.members, Present):
        leader = "" if one.status.value.leader else " and sees no leader"
        return f"{one.name}: its etcd answers{leader}; it does not list the members{_why(one.members)}"
    return ""


def _why(found: Observed[T]) -> str:
    return f" ({found.message.rstrip('.')})" if isinstance(found, Unknown) and found.message else ""


def _control_plane(one: _Told) -> dict[str, Json]:
    status = one.status.value if isinstance(one.status, Present) else None
    why = one.status if isinstance(one.status, Unknown) else one.members if isinstance(one.members, Unknown) else None
    ids: list[Json] = [member.id for member in one.members.value] if isinstance(one.members, Present) else []
    return {"name": one.name, "endpoint": str(one.endpoint) if one.endpoint is not None else "", "answers": status is not None,
            "member": status.member_id if status is not None else "", "leader": status.leader if status is not None else "", "members": ids,
            "errors": list(status.errors) if status is not None else [], "reason": why.reason if why is not None else "",
            "message": why.message if why is not None else ""}
