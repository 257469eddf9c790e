# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removing one etcd member by its id (design sections 12 and 14): a member that is gone already is done, one that answers stays."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._model.approval import status_lost
from .._model.observations import EtcdMember
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Plan, Refusal, Target, Warn
from .._model.records import Record
from .approved import approved_control_planes
from .etcd_words import EtcdView, RemoveEtcdMember
from .hostnames import addresses, host_of
from .lock import LockView, lock_refusals
from .member_death import MemberCase, member_refusal
from .removal_words import MemberLook
from .stale_member import told


@dataclass(frozen=True)
class MemberSeen:
    """One observation. `machines` are all of the cluster; `etcd` as its approved control planes tell it."""

    target: Target
    member: str
    cluster: Record | None
    machines: tuple[Record, ...]
    etcd: Observed[EtcdView]
    look: MemberLook = field(default_factory=MemberLook)


@dataclass(frozen=True)
class Verdict:
    """The plan. `done`: the member is not listed any more, in words."""

    plan: Plan
    done: str = ""


def listed_member(seen: MemberSeen) -> EtcdMember | None:
    """The member with that id in the list, or None."""
    members = seen.etcd.value.members if isinstance(seen.etcd, Present) else ()
    return next((member for member in members if member.id == seen.member), None)


def owner(member: EtcdMember, machines: tuple[Record, ...]) -> Record | None:
    """The approved control plane at the member's peer address, or None."""
    hosts = {host_of(url) for url in member.peer_urls} - {""}
    return next((machine for machine in approved_control_planes(machines) if hosts & addresses(machine)), None)


def decide_member(seen: MemberSeen) -> Verdict:
    """What the observation calls for."""
    locked = [one for one in lock_refusals(LockView(seen.cluster, seen.machines, completes_transition=True), seen.target)
              if one.reason != "ControlPlaneCapExceeded"]
    if locked:
        return Verdict(Plan(refusals=(locked[0],)))
    if seen.cluster is not None and seen.cluster.status.get("operation"):
        return _refuse(seen, "14/operation", "OperationInProgress", "Something is being done to the whole cluster (status.operation).",
                       "Wait for it, or clear it by name when it is no longer going on.")
    if not isinstance(seen.etcd, Present):
        why = seen.etcd.message or seen.etcd.reason if isinstance(seen.etcd, Unknown) else "nobody was asked"
        return _refuse(seen, "14/etcd-unreadable", "QuorumUnknown", f"The members of etcd cannot be read: {why.rstrip('.')}.",
                       "Run this again when the control planes answer.")
    member = listed_member(seen)
    if member is None:
        if not seen.etcd.value.healthy:
            return _refuse(seen, "14/list-unsure", "QuorumUnknown", f"No healthy control plane says that member {seen.member} is gone.",
                           "Run this again when the control planes answer.")
        return Verdict(Plan(), f"etcd has no member {seen.member} any more.")
    machine = owner(member, seen.machines)
    if machine is not None and status_lost(machine):
        return _refuse(seen, "14/status-missing", "StatusMissing", f"The member is that of machine {machine.name}, whose status is gone.",
                       "Bring the state folder back, or say that it is this machine with talos_machine, trust: true.")
    refusal = member_refusal(MemberCase(seen.target, seen.etcd.value, member, seen.look))
    if refusal is not None:
        return Verdict(Plan(refusals=(refusal,)))
    step = RemoveEtcdMember(seen.target, f"member {told(member)} is dead", locked=True, member=member.id)
    return Verdict(Plan((step,), warnings=_warnings(seen, machine)))


def _warnings(seen: MemberSeen, machine: Record | None) -> tuple[Warn, ...]:
    if machine is None:
        return ()
    return (Warn(seen.target, f"It is the member of machine {machine.name}, whose record stays. Should the machine come back with its data, its etcd "
                 "starts over and over: wipe it then, or remove it with talos_machine_removal.", "14/member-of-machine"),)


def _refuse(seen: MemberSeen, rule: str, reason: str, message: str, hint: str) -> Verdict:
    return Verdict(Plan(refusals=(Refusal(seen.target, reason, message, hint, rule),)))
