# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the inspection of a foreign node comes to: whose it is, its etcd, what goes and what stays (design section 16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .._model.approval import approval_state
from .._model.identity import Identity, canonical_uuid, swapped_uuid
from .._model.machine import identity_of
from .._model.observations import EtcdMember, Partition
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.records import Record, text_at
from .disk_words import with_contents
from .etcd_words import EtcdView
from .member_death import sees_leader
from .reclaim_words import Inspection, Managed, Owner, Reclaiming
from .reset_partitions import SYSTEM_VOLUMES, wiped
from .stale_member import quorum_without

#: The things that an inspection reads, with what a person calls them.
READINGS = (
    ("identity", "identity"), ("owner", "machine configuration"), ("stage", "stage"), ("hostname", "host name"), ("version", "Talos version"),
    ("boot_id", "boot id"), ("partitions", "volumes"), ("disks", "disks"), ("services", "services"),
)
ETCD_READINGS = (("etcd", "etcd status"), ("members", "etcd member list"))


def inspection(seen: Reclaiming) -> Inspection:
    """What was read of the node; an empty one where it gave no session."""
    return seen.node.value if isinstance(seen.node, Present) else Inspection()


def found_identity(seen: Reclaiming) -> Observed[Identity]:
    """Who answers, in either mode."""
    return Present(seen.maintenance.value.identity) if isinstance(seen.maintenance, Present) else inspection(seen).identity


def uuid_of(seen: Reclaiming) -> str:
    found = found_identity(seen)
    return found.value.uuid if isinstance(found, Present) else ""


def owner_of(seen: Reclaiming) -> Owner:
    found = inspection(seen).owner
    return found.value if isinstance(found, Present) else Owner()


def own_cluster(seen: Reclaiming) -> Observed[Record]:
    """The record of the cluster that the node is of. Absent: it is none of this store. Unknown: a bundle cannot be read, so nobody can say."""
    owner = owner_of(seen)
    unread: Managed | None = None
    for managed in seen.managed:
        if isinstance(managed.cluster_id, Present):
            if owner.cluster_id and managed.cluster_id.value == owner.cluster_id:
                return Present(managed.record)
        elif owner.endpoint and text_at(managed.record.spec, "endpoint").rstrip("/") == owner.endpoint.rstrip("/"):
            return Present(managed.record)
        elif isinstance(managed.cluster_id, Unknown):
            unread = managed
    if unread is None:
        return Absent()
    why = unread.cluster_id.message if isinstance(unread.cluster_id, Unknown) else ""
    return Unknown("SecretsUnavailable", why or "its bundle cannot be read", unread.record.name)


def lease_of(seen: Reclaiming) -> str:
    """What the lease of the node's own cluster is named by: the record of a managed cluster, the id of a foreign one (else its name)."""
    own, owner = own_cluster(seen), owner_of(seen)
    return own.value.name if isinstance(own, Present) else owner.cluster_id or owner.cluster_name or owner.endpoint


def cluster_words(seen: Reclaiming) -> str:
    """The node's own cluster, for a person."""
    own, owner = own_cluster(seen), owner_of(seen)
    if isinstance(own, Present):
        return f"cluster {own.value.name}, which this store manages"
    return f"cluster {owner.cluster_name or 'without a name'}"


def whose(seen: Reclaiming) -> str:
    """The same with whether it is one of ours."""
    return f"{cluster_words(seen)}, which this store does not manage" if isinstance(own_cluster(seen), Absent) else cluster_words(seen)


def records_of(seen: Reclaiming, state: str) -> tuple[Record, ...]:
    """The machines of the store in that approval state that have the UUID, also in the other byte order."""
    uuid = uuid_of(seen)
    same = {uuid, swapped_uuid(uuid)} - {""}
    return tuple(machine for machine in seen.machines if identity_of(machine).uuid in same and approval_state(machine) == state)


def typed_uuid(seen: Reclaiming) -> str:
    return canonical_uuid(seen.wish.confirm)


def is_plane(seen: Reclaiming) -> bool:
    """Whether it is a control plane; a node whose etcd answers is one, whatever else it says."""
    return owner_of(seen).role != "worker" or isinstance(inspection(seen).etcd, Present)


def etcd_problem(seen: Reclaiming) -> str:
    """Why nobody can tell what the reset does to the quorum, as a clause; '' where its etcd answers and sees a leader."""
    look = inspection(seen)
    service = next((one for one in look.services.value if one.id == "etcd"), None) if isinstance(look.services, Present) else None
    if service is not None and service.state != "Running":
        return f"etcd is not running (its service is {service.state})"
    if isinstance(look.etcd, Unknown):
        return look.etcd.message.rstrip(".") or look.etcd.reason
    if not isinstance(look.etcd, Present):
        return "etcd was not asked"
    if not sees_leader(look.etcd):
        return "etcd sees no leader"
    if not isinstance(look.members, Present):
        return look.members.message.rstrip(".") if isinstance(look.members, Unknown) and look.members.message else "etcd does not list its members"
    return ""


def view_of(seen: Reclaiming) -> EtcdView:
    """The members as they are when the steps before this one are done, and who of them answers as a voter with a leader."""
    look = inspection(seen)
    members = look.members.value if isinstance(look.members, Present) else ()
    healthy = {name for name, status in look.others if sees_leader(status) and isinstance(status, Present) and not status.value.learner}
    if isinstance(look.etcd, Present) and sees_leader(look.etcd) and not look.etcd.value.learner:
        healthy.add(look.etcd.value.member_id)
    left = tuple(member for member in members if member.id not in seen.gone)
    return EtcdView(left, frozenset(healthy - seen.gone))


def own_member(seen: Reclaiming) -> EtcdMember | None:
    """The node's own member: by the id that its etcd tells, else by its host name where that is one member's alone."""
    look, members = inspection(seen), view_of(seen).members
    if isinstance(look.etcd, Present):
        return next((member for member in members if member.id == look.etcd.value.member_id), None)
    name = look.hostname.value.lower() if isinstance(look.hostname, Present) else ""
    named = [member for member in members if name and member.name.lower() == name]
    return named[0] if len(named) == 1 else None


def voters(seen: Reclaiming) -> int:
    return sum(1 for member in view_of(seen).members if not member.learner)


def is_last(seen: Reclaiming) -> bool:
    """Whether no other voter is left."""
    own = own_member(seen)
    return own is not None and not own.learner and voters(seen) == 1


def after_leaving(seen: Reclaiming) -> tuple[int, int]:
    """How many voters answer once its member has left, and how many are needed then."""
    own = own_member(seen)
    return quorum_without(view_of(seen), own) if own is not None else (0, 0)


def after_vanishing(seen: Reclaiming) -> tuple[int, int]:
    """The same where its member does not leave: it stays listed and counts against the quorum. Who is not told apart counts as a voter."""
    view, own = view_of(seen), own_member(seen)
    rest = [member for member in view.members if not member.learner and (own is None or member.id != own.id)]
    total = sum(1 for member in view.members if not member.learner)
    return sum(1 for member in rest if member.id in view.healthy), total // 2 + 1


def lives(seen: Reclaiming) -> bool:
    """Whether the etcd of its cluster answers at all: who lists its members or sees a leader has a quorum."""
    return isinstance(inspection(seen).members, Present) or sees_leader(inspection(seen).etcd)


def twice(partitions: Iterable[Partition]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Volumes of Talos that are there more than once, each with its devices."""
    found: dict[str, list[str]] = {}
    for one in partitions:
        if one.label in SYSTEM_VOLUMES:
            found.setdefault(one.label, []).append(one.device)
    return tuple((label, tuple(devices)) for label, devices in found.items() if len(devices) > 1)


def still_there(labels: Iterable[str], before: Iterable[Partition], after: Iterable[Partition]) -> tuple[str, ...]:
    """Which of the volumes that were to go are there as often as before. Of one that was there twice, one goes."""
    was, now = Counter(one.label for one in before), Counter(one.label for one in after)
    return tuple(label for label in labels if now[label] and now[label] >= was[label])


def goes(seen: Reclaiming) -> tuple[str, ...]:
    """The labels of the volumes that the reset wipes."""
    found = inspection(seen).partitions
    return wiped(found.value) if isinstance(found, Present) else ()


def stays(seen: Reclaiming) -> tuple[str, ...]:
    """What stays, for a person: the other partitions of the disks of Talos, and every other disk with what is on it."""
    look = inspection(seen)
    partitions = look.partitions.value if isinstance(look.partitions, Present) else ()
    gone, doubled = goes(seen), {label for label, dummy in twice(partitions)}
    # Of a volume that is there twice one stays, and nobody says which: its disks are told by what is on them.
    parents = {one.parent for one in partitions if one.label in gone and one.label not in doubled}
    kept = [f"{one.label or 'a partition without a label'} on {one.device}" for one in partitions if one.parent in parents and one.label not in gone]
    if isinstance(look.disks, Present):
        return (*kept, *(with_contents(disk) for disk in look.disks.value if disk.path not in parents))
    elsewhere = [f"{one.label or one.filesystem or 'a partition without a label'} on {one.device}" for one in partitions if one.parent not in parents]
    return (*kept, *elsewhere)


def unchecked(seen: Reclaiming) -> tuple[str, ...]:
    """What could not be read, and why, one sentence each."""
    if not isinstance(seen.node, Present):
        return ()
    rows = READINGS + (ETCD_READINGS if is_plane(seen) else ())
    found = []
    for name, called in rows:
        reading = getattr(seen.node.value, name)
        if isinstance(reading, Unknown):
            found.append(f"{called}: {reading.message.rstrip('.') or reading.reason}")
    for member, status in seen.node.value.others:
        if not isinstance(status, Present):
            why = status.message.rstrip(".") if isinstance(status, Unknown) and status.message else "it was not asked"
            found.append(f"etcd status of member {member}: {why}")
    return tuple(found)
