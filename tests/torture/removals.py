# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random worlds of removals: members, machines, names, learners, peers and who reaches whom, and a judge that was written apart.

The judge knows the truth that a world was made of. It takes no word from the decision's own rules: nothing that lives is removed, at most one
member goes, the quorum stays, nothing goes by its name alone; and what is safe to remove with complete evidence is removed.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from dataclasses import dataclass

from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_member import MemberSeen, decide_member
from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_words import EtcdView, RemoveEtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal import decide_removal
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal_words import AliveNode, LeaveEtcd, Leaving, MemberLook, RemovalWish
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import (
    Certificate, Endpoint, EtcdMember, EtcdStatus, NodeFacts, Partition, StageReading,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Step, Target
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Record

JOINED = {"appliedConfigHash": "a", "configStoredAt": "2023-11-01T00:00:00Z"}
SILENT = ("ConnectionRefused", "TimedOut", "NotListening", "ConnectionLost", "CallFailed", "NodeRefused", "UnknownAuthority")
#: What says something of this run and nothing of the machine.
OURS = ("SecretsUnavailable", "EndpointRefused", "ClockSkew", "PermissionDenied", "AnswerInvalid")
DISKS = Present(tuple(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs") for number, label in enumerate(("META", "STATE", "EPHEMERAL"), 2)))
WISH = tuple(RemovalWish(f"m{number}", skip_drain=True) for number in range(8))


@dataclass(frozen=True)
class Member:
    """The truth about one member. `host` is where its peer address is; '' for none. It lives where `alive`, and is of the cluster where it `sees`
    a leader."""

    id: str
    name: str
    host: str
    learner: bool
    alive: bool
    sees: bool

    @property
    def lives(self) -> bool:
        return self.alive and self.sees


@dataclass(frozen=True)
class Machine:
    """The truth about one machine and what its record says."""

    number: int
    name: str
    host: str
    plane: bool
    approved: bool
    #: Whether it can be asked from here, and from the other control planes.
    route: bool
    inner: bool
    #: running, maintenance or off.
    state: str


@dataclass(frozen=True)
class World:
    """One world. `ours`: what is wrong with this run's own look at the victim, directly and through a sibling."""

    members: tuple[Member, ...]
    machines: tuple[Machine, ...]
    victim: int
    readable: bool
    ours: tuple[str, str]
    node_ready: bool | None


def _name(chance: random.Random, number: int) -> str:
    roll = chance.random()
    if roll < 0.68:
        return f"cp{number}"
    if roll < 0.76:
        return f"cp{number}.example.com"
    if roll < 0.84:
        return f"CP{number}"
    return "cp1" if roll < 0.92 else ""


def world(chance: random.Random) -> World:
    """A cluster of one to six control planes in which names, peers, learners and routes may be as they should not be."""
    count, roll = chance.choice((1, 2, 3, 3, 3, 4, 5, 5, 6)), chance.random
    dead = chance.randrange(count)
    machines, members = [], []
    for number in range(count):
        host = f"10.0.0.{number}"
        state = ("off", "off", "running", "maintenance")[chance.randrange(4)] if number == dead else "running" if roll() < 0.93 else "off"
        inner = roll() < 0.97
        machine = Machine(number, _name(chance, number), host, roll() < 0.97, roll() < 0.96, roll() < 0.92, inner, state)
        machines.append(machine)
        if roll() < 0.04:
            continue
        alive = state == "running" and (roll() < 0.5 if number == dead else roll() < 0.97)
        name = machine.name if roll() < 0.8 else _name(chance, number)
        at = host if roll() < 0.93 else "" if roll() < 0.3 else f"10.0.0.{chance.randrange(7)}"
        members.append(Member(f"{number + 16:016x}", name, at, roll() < 0.12, alive, alive and inner and roll() < 0.97))
    if roll() < 0.1:
        members.append(Member(f"{99:016x}", _name(chance, chance.randrange(6)), f"10.0.0.{chance.randrange(7)}", roll() < 0.5, False, False))
    voters = sum(not member.learner for member in members)
    if sum(member.lives and not member.learner for member in members) * 2 <= voters:
        members = [Member(one.id, one.name, one.host, one.learner, one.alive, False) for one in members]
    ours = tuple(chance.choice(OURS) if roll() < 0.04 else "" for unused in range(2))
    return World(tuple(members), tuple(machines), dead if roll() < 0.85 else chance.randrange(count), roll() < 0.95, (ours[0], ours[1]),
                 None if roll() < 0.8 else roll() < 0.3)


@functools.cache
def _record(machine: Machine) -> Record:
    spec: dict[str, object] = {
        "clusterRef": "prod", "identity": {"uuid": f"4c4c4544-0044-4a10-8035-b4c04f3300{machine.number:02x}"}, "endpoint": f"{machine.host}:50000",
        "role": "controlplane" if machine.plane else "worker", "hostname": machine.name, "approvalState": "approved" if machine.approved else "pending",
        "approvedBy": "anna", "approvedAt": "2023-11-14T00:00:00Z"}
    return Record(MACHINE, f"m{machine.number}", {key: value for key, value in spec.items() if value}, dict(JOINED), uid=f"uid-{machine.number}")


@functools.cache
def _cluster(count: int) -> Record:
    return Record(CLUSTER, "prod", {"controlPlane": {"count": count}}, {"bootstrappedAt": "2023-11-01T00:00:00Z"}, uid="uid-prod")


def _at(found: World, host: str) -> Member | None:
    """The member that runs on the machine with that address: a member's process is where it was started."""
    return next((one for one in found.members if host == f"10.0.0.{int(one.id, 16) - 16}"), None)


def _status(member: Member | None, machine: Machine | None, reachable: bool, ours: str, chance: random.Random) -> Observed[EtcdStatus]:
    """What the call brings: our own trouble, silence, a failing status, or an answer."""
    if ours:
        return Unknown(ours, "of our own")
    if machine is None or not reachable or machine.state != "running" or member is None or not member.alive:
        return Unknown(SILENT[chance.randrange(len(SILENT))], "no answer")
    return Present(EtcdStatus(member.id, f"{16:016x}" if member.sees else "", member.learner))


def _host_status(found: World, host: str, chance: random.Random) -> MemberLook:
    """The two calls for whoever is at that address."""
    machine = next((one for one in found.machines if one.host == host), None)
    member = _at(found, host) if host else None
    direct = _status(member, machine, machine is not None and machine.route, found.ours[0], chance)
    sibling = any(one.lives and not one.learner and (other := _machine_of(found, one)) is not None and other.route and other.host != host
                  for one in found.members)
    through: Observed[EtcdStatus] = Absent()
    if sibling:
        through = _status(member, machine, machine is not None and machine.inner, found.ours[1], chance)
    return MemberLook(direct, through, Absent() if found.node_ready is None else Present(found.node_ready))


def _machine_of(found: World, member: Member) -> Machine | None:
    return next((one for one in found.machines if one.number == int(member.id, 16) - 16), None)


def _view(found: World, but: int | None) -> Observed[EtcdView]:
    """The members as the control planes that can be asked tell them, and who of them answers."""
    healthy = frozenset(
        one.id for one in found.members
        if one.lives and not one.learner and (machine := _machine_of(found, one)) is not None and machine.route and machine.number != but
        and machine.plane and machine.approved)
    if not found.readable or not healthy:
        return Unknown("ControlPlaneUnreachable", "no other control plane answers")
    members = tuple(EtcdMember(one.id, one.name, (f"https://{one.host}:2380",) if one.host else (), (), one.learner) for one in found.members)
    return Present(EtcdView(members, healthy, ("10.0.0.9:50000",)))


def leaving(found: World, chance: random.Random) -> Leaving:
    """The observation of the removal of the victim."""
    machine = found.machines[found.victim]
    record = _record(machine)
    identity = Identity(record.spec["identity"]["uuid"])  # type: ignore[call-overload,index,arg-type]
    look = _host_status(found, machine.host, chance)
    node: Observed[AliveNode] = Unknown(found.ours[0] or "ConnectionRefused", "no answer")
    maintenance: Observed[NodeFacts] = Unknown("ConnectionRefused", "no answer")
    if machine.route and machine.state == "running" and not found.ours[0]:
        node = Present(AliveNode(identity, StageReading("running", True), DISKS, Present("boot-1"), look.direct))
    elif machine.route and machine.state == "maintenance":
        maintenance = Present(NodeFacts(Endpoint(machine.host), Certificate("FP", "0", 0, 0, ""), identity))
    planes = sum(one.plane and one.approved for one in found.machines)
    return Leaving(Target(name=record.name, cluster="prod"), WISH[machine.number], record, _cluster(planes if planes % 2 else planes - 1 or 1),
                   tuple(map(_record, found.machines)), None, _view(found, machine.number), look, node, maintenance, strict=True)


def members_to_go(steps: tuple[Step, ...]) -> list[str]:
    """Ids of members that these steps take out of etcd."""
    return [step.member for step in steps if isinstance(step, (RemoveEtcdMember, LeaveEtcd))]


def safe_without(found: World, member: Member) -> bool:
    """Whether etcd keeps what it needs when this member goes, by the truth."""
    voters = [one for one in found.members if not one.learner]
    rest = [one for one in voters if one is not member]
    return (member.learner or len(voters) >= 3) and sum(one.lives for one in rest) * 2 > len(rest)


def known_without(found: World, member: Member, view: EtcdView) -> bool:
    """The same by what this run knows of the others."""
    voters = [one for one in found.members if not one.learner]
    rest = [one for one in voters if one is not member]
    return (member.learner or len(voters) >= 3) and sum(one.id in view.healthy for one in rest) * 2 > len(rest)


def judge_dead(found: World, member: Member, look: MemberLook) -> None:
    """Raises where this member is removed although it is not dead beyond doubt."""
    if not member.name:
        raise AssertionError(f"a member without a name is removed: {found}")
    if isinstance(look.node_ready, Present) and look.node_ready.value:
        raise AssertionError(f"its Node is Ready and it is removed: {found}")
    for status in (look.direct, look.through):
        if isinstance(status, Present) and status.value.leader:
            raise AssertionError(f"removed although somebody answers there: {found}")
    if not any(isinstance(status, Present) for status in (look.direct, look.through)) and not all(
            isinstance(status, Unknown) and status.reason in SILENT for status in (look.direct, look.through)):
        raise AssertionError(f"removed although it is not known to be dead: {found}: {look}")


def provable(found: World, member: Member, look: MemberLook, view: Observed[EtcdView]) -> bool:
    """Whether this member is dead by complete evidence, and may go."""
    if not isinstance(view, Present) or not member.name or member.lives or member.id in view.value.healthy:
        return False
    said = [status for status in (look.direct, look.through) if isinstance(status, Present)]
    if any(status.value.leader for status in said):
        return False
    if isinstance(look.node_ready, Present) and look.node_ready.value:
        return False
    kinds = [status.reason if isinstance(status, Unknown) else "" for status in (look.direct, look.through)]
    silent = all(isinstance(status, Unknown) for status in (look.direct, look.through)) and all(kind in SILENT for kind in kinds)
    return (silent or bool(said)) and known_without(found, member, view.value)


def judge_removal(found: World, seen: Leaving, tally: Counter[str]) -> None:
    """Raises where the removal of a machine breaks a law, or is not made although it is safe."""
    gone = members_to_go(decide_removal(seen).plan.steps)
    machine = found.machines[found.victim]
    if len(gone) > 1:
        raise AssertionError(f"{len(gone)} members in one decision: {found}")
    planes = sum(one.plane and one.approved for one in found.machines)
    at = [one for one in found.members if one.host == machine.host]
    named = [one for one in found.members if machine.name and one.name.lower() == machine.name.lower()]
    left = isinstance(seen.node, Present) and isinstance(seen.look.direct, Present) and bool(seen.look.direct.value.leader)
    if gone:
        tally["left etcd" if left else "removed as dead"] += 1
        member = next((one for one in found.members if one.id == gone[0]), None)
        if member is None:
            raise AssertionError(f"a member that is not there: {found}")
        if planes < 3 or not safe_without(found, member):
            raise AssertionError(f"quorum is lost without {member}: {found}")
        if left:
            if member.id != seen.look.direct.value.member_id:  # type: ignore[union-attr]
                raise AssertionError(f"another one's member leaves: {found}")
            return
        judge_dead(found, member, seen.look)
        if member.lives:
            raise AssertionError(f"a live peer is removed, {member}: {found}")
        if at != [member] or named != [member]:
            raise AssertionError(f"removed by its name or its address alone, {member}: {found}")
    elif machine.plane and machine.approved and planes >= 3 and len(at) == 1 and at == named and (
            not isinstance(seen.node, Unknown) or seen.node.reason in SILENT or isinstance(seen.maintenance, Present)):
        if provable(found, at[0], seen.look, seen.etcd if seen.etcd is not None else Absent()):
            raise AssertionError(f"safe to remove and not removed, {at[0]}: {found}: {decide_removal(seen)}")


def judge_member(found: World, chance: random.Random, tally: Counter[str]) -> None:
    """The same of a member that is named by its id."""
    if not found.members:
        return
    member = found.members[chance.randrange(len(found.members))]
    look, view = _host_status(found, member.host, chance), _view(found, None)
    seen = MemberSeen(Target(name="prod"), member.id, _cluster(3), tuple(map(_record, found.machines)), view, look)
    gone = members_to_go(decide_member(seen).plan.steps)
    if gone not in ([], [member.id]):
        raise AssertionError(f"another member than the one that was named: {gone}: {found}")
    if gone:
        tally["removed by id"] += 1
        if not safe_without(found, member):
            raise AssertionError(f"quorum is lost without {member}: {found}")
        judge_dead(found, member, look)
        elsewhere = member.host != f"10.0.0.{int(member.id, 16) - 16}"
        if member.lives and not elsewhere:
            raise AssertionError(f"a live peer is removed, {member}: {found}")
    elif provable(found, member, look, view):
        raise AssertionError(f"safe to remove and not removed, {member}: {found}: {decide_member(seen)}")


def many(chance: random.Random, count: int = 2000, tally: Counter[str] | None = None) -> int:
    """So many worlds, one after the other, each with one machine and one member that somebody wants gone."""
    counts = tally if tally is not None else Counter()
    for unused in range(count):
        found = world(chance)
        judge_removal(found, leaving(found, chance), counts)
        judge_member(found, chance, counts)
    return count
