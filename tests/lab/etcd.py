# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Emulated etcd: members, learners, promotion, quorum, snapshots, with the refusals of the real one.

A cluster belongs to an etcd CA. A node's data directory (on its EPHEMERAL or ETCD partition) is an `EtcdData`: which
cluster, which member. Whether a member answers is asked of the node that runs it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

GARBAGE_LIMIT = 32


class EtcdError(Exception):
    """An error of etcd itself; `str` is its text without the server's prefix."""


MEMBER_NOT_FOUND = "etcdserver: member not found"
NOT_ENOUGH_STARTED = "etcdserver: re-configuration failed due to not enough started members"
UNHEALTHY = "etcdserver: unhealthy cluster"
TOO_MANY_LEARNERS = "etcdserver: too many learner members in cluster"
PEER_EXISTS = "etcdserver: Peer URLs already exists"
NO_LEADER = "etcdserver: no leader"


@dataclass
class Member:
    """A member as the member list shows it; a member without a name was never started."""

    id: int
    name: str
    peer_url: str
    client_url: str = ""
    learner: bool = False


@dataclass
class Cluster:
    """All members of one cluster. `alive(member)` tells whether that member's process runs and can be reached."""

    ca: str
    alive: Callable[[int], bool]
    members: dict[int, Member] = field(default_factory=dict)
    leader: int = 0
    revision: int = 1
    term: int = 2
    index: int = 12
    content: bytes = b""
    lost_since: float | None = None

    def voters(self) -> list[Member]:
        return [member for member in self.members.values() if not member.learner]

    def quorum(self) -> bool:
        """True while more than half of the voters answer; keeps the leader in step with that."""
        voters = self.voters()
        up = [member for member in voters if self.alive(member.id)]
        if len(up) < len(voters) // 2 + 1:
            self.leader = 0
            return False
        if self.leader not in {member.id for member in up}:
            self.leader = up[0].id
            self.term += 1
        return True

    def add_learner(self, peer_url: str) -> Member:
        if any(member.peer_url == peer_url for member in self.members.values()):
            raise EtcdError(PEER_EXISTS)
        if any(member.learner for member in self.members.values()):
            raise EtcdError(TOO_MANY_LEARNERS)
        if not all(self.alive(member.id) for member in self.voters()):
            raise EtcdError(UNHEALTHY)
        member = Member(_identifier(), "", peer_url, learner=True)
        self.members[member.id] = member
        self.index += 1
        return member

    def promote(self, identifier: int) -> None:
        member = self.members.get(identifier)
        if member is not None and member.learner and self.alive(identifier):
            member.learner = False
            self.index += 1

    def remove(self, identifier: int, asked: int) -> None:
        """As `member remove` with strict reconfiguration checks; `asked` is the member that answers the call."""
        member = self.members.get(identifier)
        if member is None:
            raise EtcdError(MEMBER_NOT_FOUND)
        if not member.learner:
            rest = [other for other in self.voters() if other.id != identifier]
            if sum(1 for other in rest if other.name) < len(rest) // 2 + 1:
                raise EtcdError(NOT_ENOUGH_STARTED)
            voters = self.voters()
            active = sum(1 for other in voters if self.alive(other.id))
            if (identifier == asked or self.alive(identifier)) and active - 1 < 1 + (len(voters) - 1) // 2:
                raise EtcdError(UNHEALTHY)
        del self.members[identifier]
        self.index += 1
        if self.leader == identifier:
            self.leader = 0
        self.quorum()


@dataclass
class EtcdData:
    """A data directory: which cluster, and as which member."""

    cluster: Cluster
    member: int

    def discard(self) -> None:
        """The directory is deleted."""


@dataclass(frozen=True)
class MemberStatus:
    """What a member says of itself; sizes in bytes."""

    member: int
    version: str
    storage_version: str
    size: int
    size_in_use: int
    leader: int
    index: int
    term: int
    applied: int
    learner: bool
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alarm:
    """An alarm of a member; `kind` is 1 for no space, 2 for corruption."""

    member: int
    kind: int


def _identifier() -> int:
    """Hexadecimal text that no YAML takes for a number (as 123e4), so that it stands without quotes."""
    while not set(f"{(number := secrets.randbits(63) | 1 << 62):016x}") & set("abcdf"):
        continue
    return number


def new_cluster(ca: str, alive: Callable[[int], bool], name: str, address: str, content: bytes = b"") -> EtcdData:
    """A bootstrap: one member, which is the leader."""
    cluster = Cluster(ca, alive, content=content)
    member = Member(_identifier(), name, peer_url(address), client_url(address))
    cluster.members[member.id] = member
    cluster.leader = member.id
    return EtcdData(cluster, member.id)


def peer_url(address: str) -> str:
    return f"https://{_host(address)}:2380"


def client_url(address: str) -> str:
    return f"https://{_host(address)}:2379"


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def snapshot(cluster: Cluster) -> bytes:
    """A file of the form of a snapshot: a multiple of 512 bytes, then the SHA-256 of all before it."""
    body = b"lab-etcd-snapshot\x00" + cluster.ca.encode() + b"\x00" + cluster.revision.to_bytes(8, "big") + cluster.content
    body += b"\x00" * (-len(body) % 512)
    body = body.ljust(20480, b"\x00")
    return body + hashlib.sha256(body).digest()


def valid_snapshot(data: bytes) -> bool:
    return len(data) > GARBAGE_LIMIT and len(data) % 512 == 32 and hashlib.sha256(data[:-32]).digest() == data[-32:]


def description(cluster: Cluster | None) -> list[dict[str, Any]]:
    """Members for the control interface."""
    if cluster is None:
        return []
    return [
        {"id": f"{member.id:016x}", "name": member.name, "learner": member.learner, "leader": member.id == cluster.leader, "alive": cluster.alive(member.id)}
        for member in cluster.members.values()
    ]
