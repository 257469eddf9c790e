# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The etcd member of a wiped control plane: the rows that say whether it may be removed (design section 12, law 5)."""

from __future__ import annotations

from .._model.approval import was_sent
from .._model.observations import EtcdMember
from .._model.observed import Observed, Present, Unknown
from .approved import approved_control_planes
from .etcd_words import EtcdView
from .provisioning_row import Gate, config_of, facts_of, refuse
from .provisioning_words import Provisioning
from .reprovision_sayings import RESTORE
from .stale_member import Left, left_behind, member_name, quorum_without, told
from .wipe_evidence import WIPED, evidence


def control_plane(seen: Provisioning) -> bool:
    return config_of(seen).role == "controlplane"


def evidence_of(seen: Provisioning) -> str:
    return evidence(facts_of(seen).partitions)


def stale(seen: Provisioning) -> EtcdMember | None:
    """The member that is to be removed; None where there is none, or where nobody asked for it."""
    found = _left(seen).own
    return found[0] if len(found) == 1 and _asks(seen) else None


def _wiped(seen: Provisioning) -> bool:
    """A control plane that has lost its data: a kept member needs nobody else."""
    return control_plane(seen) and evidence_of(seen) == WIPED


def _others(seen: Provisioning) -> bool:
    return any(other.name != seen.target.name and was_sent(other) for other in approved_control_planes(seen.siblings))


def _given_up(seen: Provisioning) -> bool:
    return bool(seen.discard_etcd) and seen.cluster is not None and seen.discard_etcd == seen.cluster.name


def _asks(seen: Provisioning) -> bool:
    return _wiped(seen) and _others(seen)


def _view(seen: Provisioning) -> EtcdView:
    return seen.etcd.value if isinstance(seen.etcd, Present) else EtcdView()


def left_in(seen: Provisioning, members: Observed[tuple[EtcdMember, ...]] | None) -> Left:
    """What that list holds of the machine."""
    return left_behind(seen.machine, members.value) if seen.machine is not None and isinstance(members, Present) else Left()


def _left(seen: Provisioning) -> Left:
    return left_in(seen, Present(_view(seen).members))


def _named(seen: Provisioning) -> bool:
    return seen.machine is not None and bool(member_name(seen.machine))


def _unreadable(seen: Provisioning) -> str:
    why = seen.etcd.message if isinstance(seen.etcd, Unknown) else "nobody told its members"
    return f"The disk of the machine was wiped, and the members of etcd cannot be read: {why.rstrip('.')}."


def _listed(members: tuple[EtcdMember, ...]) -> str:
    return ", ".join(told(member) for member in members)


def _loses_quorum(seen: Provisioning) -> bool:
    member = stale(seen)
    if member is None:
        return False
    healthy, needed = quorum_without(_view(seen), member)
    return healthy < needed


def _quorum_words(seen: Provisioning) -> str:
    member = stale(seen)
    healthy, needed = quorum_without(_view(seen), member) if member is not None else (0, 0)
    return f"Without member {told(member) if member else ''} etcd needs {needed} healthy voters, and {healthy} answer."


ETCD_GATES: tuple[Gate, ...] = (
    Gate("12/name-unknown", lambda seen, now: not _named(seen),
         lambda seen, now: refuse(seen, "12/name-unknown", "ReprovisionBlocked",
                                  "The disk of the machine was wiped, and it is not known which etcd member it was.",
                                  "Set its host name with talos_machine, as etcd lists it."),
         applies=_wiped),
    Gate("12/alone", lambda seen, now: not _others(seen) and not _given_up(seen),
         lambda seen, now: refuse(seen, "12/alone", "ReprovisionBlocked",
                                  "The disk of the machine was wiped, and no other control plane has etcd's data: it would be an empty cluster.", RESTORE),
         applies=_wiped),
    Gate("12/etcd-unreadable", lambda seen, now: not isinstance(seen.etcd, Present) and not _given_up(seen),
         lambda seen, now: refuse(seen, "12/etcd-unreadable", "ReprovisionBlocked", _unreadable(seen),
                                  f"Bring the other control planes back; when all of them were wiped: {RESTORE}"),
         needs=("etcd",), applies=_asks),
    Gate("12/member-elsewhere", lambda seen, now: bool(_left(seen).elsewhere),
         lambda seen, now: refuse(seen, "12/member-elsewhere", "HostnameConflict",
                                  f"An etcd member has the machine's host name, and an address that is not known to be its: {_listed(_left(seen).elsewhere)}.",
                                  "When it is this machine's from before, remove it with talos_machine_removal; else give the machine a host name of its own."),
         applies=_asks),
    Gate("12/member-renamed", lambda seen, now: bool(_left(seen).renamed),
         lambda seen, now: refuse(seen, "12/member-renamed", "ReprovisionBlocked",
                                  f"An etcd member has the machine's address, and another name: {_listed(_left(seen).renamed)}.",
                                  "Set the host name under which it had joined, with talos_machine, or remove that member with talos_machine_removal."),
         applies=_asks),
    Gate("12/member-twice", lambda seen, now: len(_left(seen).own) > 1,
         lambda seen, now: refuse(seen, "12/member-twice", "ReprovisionBlocked",
                                  f"Several etcd members have the machine's name and address: {_listed(_left(seen).own)}.",
                                  "Remove those that are gone, by their ids, with etcd_member."),
         applies=_asks),
    Gate("12/member-answers", lambda seen, now: (member := stale(seen)) is not None and member.id in _view(seen).healthy,
         lambda seen, now: refuse(seen, "12/member-answers", "ReprovisionBlocked",
                                  f"The etcd member of this machine answers healthy, so it is another one's: {_listed(_left(seen).own)}.",
                                  "Look which machine answers at that address."),
         applies=_asks),
    Gate("12/quorum", lambda seen, now: _loses_quorum(seen),
         lambda seen, now: refuse(seen, "12/quorum", "ReprovisionBlocked", _quorum_words(seen), "Bring the other control planes back first."),
         applies=_asks),
)
