# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which etcd member a wiped control plane has left behind (design section 12).

A member is this machine's where both its name and its peer address are; one of the two alone is somebody else's, or nobody's to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._model.observations import EtcdMember
from .._model.records import Record, text_at
from .etcd_words import EtcdView
from .hostnames import addresses, host_of


@dataclass(frozen=True)
class Left:
    """`own`: members with the machine's name and one of its addresses. `elsewhere`: its name at an address that is not its own.
    `renamed`: its address under another name. A learner without a name is in none of them: it never started, and Talos takes its place."""

    own: tuple[EtcdMember, ...] = ()
    elsewhere: tuple[EtcdMember, ...] = ()
    renamed: tuple[EtcdMember, ...] = ()


def member_name(machine: Record) -> str:
    """The name that etcd knows the machine by: `spec.hostname`, else `status.nodeName`, or ''."""
    return text_at(machine.spec, "hostname") or text_at(machine.status, "nodeName")


def left_behind(machine: Record, members: Iterable[EtcdMember]) -> Left:
    """What the list holds of this machine."""
    name, hosts = member_name(machine).lower(), addresses(machine)
    own: list[EtcdMember] = []
    elsewhere: list[EtcdMember] = []
    renamed: list[EtcdMember] = []
    for member in members:
        if member.learner and not member.name:
            continue
        named = bool(name) and member.name.lower() == name
        placed = any(host_of(url) in hosts for url in member.peer_urls)
        if named or placed:
            (own if named and placed else elsewhere if named else renamed).append(member)
    return Left(tuple(own), tuple(elsewhere), tuple(renamed))


def quorum_without(view: EtcdView, member: EtcdMember) -> tuple[int, int]:
    """How many voters answer healthy once that member is gone, and how many are needed then."""
    rest = [other for other in view.members if other.id != member.id and not other.learner]
    return sum(1 for other in rest if other.id in view.healthy), len(rest) // 2 + 1


def told(member: EtcdMember) -> str:
    """A member, for a person."""
    peers = ", ".join(host_of(url) for url in member.peer_urls) or "no peer address"
    return f"{member.id} ({member.name or 'without a name'}, {peers})"
