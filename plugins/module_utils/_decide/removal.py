# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removing a machine, and resetting one (design section 14): which steps the observation calls for, or why it stays.

A node that answers leaves etcd and is reset. A dead control plane's member is removed through the others and its record deleted. One that
is in maintenance mode already, or was never sent anything, is its record alone. Nothing else goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._model.machine import identity_of
from .._model.observations import EtcdMember
from .._model.observed import Present, Unknown
from .._model.plan import Plan, Refusal, Wait, Warn
from .._model.records import condition_of
from .etcd_words import EtcdView, RemoveEtcdMember
from .hostnames import addresses, host_of
from .machine_edit_words import DeleteRecord
from .member_death import MemberCase, member_refusal, sees_leader
from .removal_gates import (
    below_count, bootstrapped, is_sent, lock_refusal, refusal_of, reset_was_sent, sent_control_plane, turn_refusal, unreachable_in_the_records,
)
from .removal_drain import drain_first, node_last, node_left
from .removal_words import DEAD_REMOVAL, REMOVAL, AliveNode, LeaveEtcd, Leaving, ResetMachine
from .reset_partitions import SYSTEM_VOLUMES, told as told_partitions, wiped
from .same_machine import difference
from .stale_member import Left, left_behind, quorum_without, told

IN_MAINTENANCE = "maintenance mode, after the reset that was sent"
REPLACE = "Approve a replacement for it."


@dataclass(frozen=True)
class Verdict:
    """The plan. `done`: nothing is left to be done, in words. `dead`: the member goes through the others, without the machine."""

    plan: Plan
    done: str = ""
    dead: bool = False

    @property
    def refusal(self) -> Refusal | None:
        return next(iter(self.plan.refusals), None)


def decide_removal(seen: Leaving) -> Verdict:
    """What the observation calls for."""
    early = refusal_of(seen)
    if seen.broken is not None and early is None:
        early = Refusal(seen.target, "RecordBroken", f"Machine {seen.target.name} cannot be read ({seen.broken.source}): {seen.broken.sentence}",
                        "Mend the file.", "4/record-broken")
    if early is not None:
        return _refused(early)
    if seen.machine is None:
        return Verdict(Plan(), f"There is no machine {seen.target.name} any more.")
    if not is_sent(seen):
        if not seen.wish.record:
            return _refuse(seen, "14/never-sent", "NotApproved", f"Machine {seen.target.name} was never sent a configuration by these records.",
                           "There is nothing of them to wipe.")
        return Verdict(Plan((_delete(seen, "it was never sent a configuration, so its record is all there is of it"),)))
    locked = lock_refusal(seen)
    if locked is not None:
        return _refused(locked)
    if isinstance(seen.node, Present):
        return _alive(seen, seen.node.value)
    if _in_maintenance(seen):
        return _wiped(seen)
    return _silent(seen)


def needs_etcd(seen: Leaving) -> bool:
    """Whether etcd has to be asked about the machine."""
    return sent_control_plane(seen) and bootstrapped(seen)


def listed(seen: Leaving) -> Left:
    """What the other control planes list of it."""
    return left_behind(seen.machine, seen.etcd.value.members) if seen.machine is not None and isinstance(seen.etcd, Present) else Left()


def proceeded(seen: Leaving, reason: str = "") -> bool:
    """A removal that was confirmed before had begun; with `reason`, one of that kind."""
    found = condition_of(seen.machine, REMOVAL) if seen.machine is not None else None
    return found is not None and found.status != "False" and reason in ("", found.reason)


def _in_maintenance(seen: Leaving) -> bool:
    return seen.machine is not None and isinstance(seen.maintenance, Present) and not difference(identity_of(seen.machine), seen.maintenance.value.identity)


def _alive(seen: Leaving, node: AliveNode) -> Verdict:
    """The node answers with authentication as itself."""
    if not needs_etcd(seen):
        return _short_of_count(seen) or _reset_away(seen, node, None)
    if not isinstance(seen.etcd, Present):
        return _unreadable(seen)
    if sees_leader(node.etcd) and isinstance(node.etcd, Present):
        own = next((member for member in seen.etcd.value.members if member.id == node.etcd.value.member_id), None)
        if own is None:
            return _refuse(seen, "14/own-unlisted", "MemberUnclear", f"{seen.target.name} is member {node.etcd.value.member_id} of an etcd that the other "
                           "control planes do not list.", "Look whether two clusters have grown out of one (talosctl etcd members).")
        return _short_of_count(seen, "It answers, and its etcd sees a leader: it is healthy. ") or _quorum(seen, own) or _reset_away(seen, node, own)
    left = listed(seen)
    if left == Left():
        # It left etcd already, or never joined it.
        return (None if proceeded(seen) else _short_of_count(seen)) or _reset_away(seen, node, None)
    if not seen.wish.record:
        return _refuse(seen, "14/reset-etcd", "QuorumUnknown", f"The etcd of {seen.target.name} does not answer, so a reset that leaves etcd would fail "
                       "and restart it with its data.", "Bring its etcd back, or remove the machine with talos_machine_removal.")
    return _dead(seen, left)


def _wiped(seen: Leaving) -> Verdict:
    """It answers in maintenance mode as itself: there is nothing left to be reset."""
    if not seen.wish.record:
        return Verdict(Plan(), f"{seen.target.name} is in maintenance mode.")
    if needs_etcd(seen):
        if not isinstance(seen.etcd, Present):
            return _unreadable(seen)
        left = listed(seen)
        if left != Left():
            return _dead(seen, left)
    refused = None if proceeded(seen) else _short_of_count(seen)
    steps = (*node_last(seen), _delete(seen, "it is in maintenance mode, and comes back as pending"))
    return refused or Verdict(Plan(steps, warnings=(*_data_left(seen), *node_left(seen))))


def _silent(seen: Leaving) -> Verdict:
    """Neither API answers as this machine."""
    if reset_was_sent(seen) and (proceeded(seen) or not seen.wish.record):
        wait = Wait(IN_MAINTENANCE, target=seen.target.name)
        steps = (*node_last(seen, wait), _delete(seen, "it was reset", wait)) if seen.wish.record else ()
        return Verdict(Plan(steps, warnings=node_left(seen), waits=(wait,)))
    if not seen.wish.record:
        short = _short_of_count(seen) if sent_control_plane(seen) else None
        return short or _refuse(seen, "14/reset-silent", "NodeUnreachable", f"{seen.target.name} does not answer, and a reset needs it to.",
                                "Bring it back first.")
    if not needs_etcd(seen):
        return _refuse(seen, "14/silent", "NodeUnreachable", f"{seen.target.name} does not answer, so it cannot be reset ({_why_silent(seen)}).",
                       "Bring it back, or delete its record alone with talos_machine, state: absent and allow_delete: true.")
    if not isinstance(seen.etcd, Present):
        return _unreadable(seen)
    left = listed(seen)
    if left != Left():
        return _dead(seen, left)
    if proceeded(seen, DEAD_REMOVAL):
        return Verdict(Plan((_delete(seen, "its dead etcd member is gone"),), warnings=(_stays(seen),)), dead=True)
    return _short_of_count(seen) or _refuse(
        seen, "14/unlisted", "MemberUnclear", f"{seen.target.name} does not answer, and the other control planes list no etcd member of its.",
        "Bring it back, or delete its record alone with talos_machine, state: absent and allow_delete: true.")


def _dead(seen: Leaving, left: Left) -> Verdict:
    """Its etcd does not answer and is listed: it goes through the others where it is dead beyond doubt."""
    member, joins = _one(left), _joining_there(seen)
    if member is None or joins:
        found = ", ".join(map(told, (*left.own, *left.elsewhere, *left.renamed, *joins)))
        return _refuse(seen, "14/member-unclear", "MemberUnclear", f"It cannot be told which etcd member {seen.target.name} is: {found}.",
                       "A member is its where name and peer address both are. Set the host name with talos_machine as etcd lists it, "
                       "or remove the member by its id with etcd_member.")
    view = seen.etcd.value if isinstance(seen.etcd, Present) else EtcdView()
    refusal = member_refusal(MemberCase(seen.target, view, member, seen.look))
    if refusal is not None:
        short = below_count(seen)
        return _refused(replace(refusal, message=f"{short[0]} {refusal.message}", hint=short[1]) if short is not None else refusal)
    why = f"its machine is dead, and etcd still lists member {told(member)}"
    return Verdict(Plan((RemoveEtcdMember(seen.target, why, locked=True, member=member.id), _delete(seen, "its dead etcd member is gone then")),
                        warnings=(_skipped(seen), _stays(seen))), dead=True)


def _unreadable(seen: Leaving) -> Verdict:
    """Nobody tells etcd's members. A plan goes by the machine's condition then, and the run decides on what it reads under the lock."""
    if seen.strict or not unreachable_in_the_records(seen) or isinstance(seen.node, Present) or not seen.wish.record:
        why = seen.etcd.message or seen.etcd.reason if isinstance(seen.etcd, Unknown) else "nobody was asked"
        return _refuse(seen, "14/etcd-unreadable", "QuorumUnknown", f"The members of etcd cannot be read: {why.rstrip('.')}.",
                       "Run this again when the other control planes answer.")
    read_again = Warn(seen.target, "etcd cannot be read now. By its condition the machine is unreachable, so this plan takes it for dead; the run reads "
                      "again under the lock and decides on that.", "14/goes-by-condition")
    return Verdict(Plan((RemoveEtcdMember(seen.target, "its machine is unreachable", locked=True), _delete(seen, "its dead etcd member is gone then")),
                        warnings=(read_again, _skipped(seen), _stays(seen))), dead=True)


def _one(left: Left) -> EtcdMember | None:
    """The one member that is the machine's by name and by peer address, where no other has either."""
    return left.own[0] if len(left.own) == 1 and not left.elsewhere and not left.renamed else None


def _joining_there(seen: Leaving) -> tuple[EtcdMember, ...]:
    """Learners without a name at the machine's address: something joins from there right now."""
    members = seen.etcd.value.members if isinstance(seen.etcd, Present) and seen.machine is not None else ()
    hosts = addresses(seen.machine) if seen.machine is not None else set()
    return tuple(member for member in members if member.learner and not member.name and any(host_of(url) in hosts for url in member.peer_urls))


def _short_of_count(seen: Leaving, first: str = "") -> Verdict | None:
    short = below_count(seen)
    return _refuse(seen, "14/count", "ControlPlaneNeeded", first + short[0], short[1]) if short is not None else None


def _quorum(seen: Leaving, own: EtcdMember) -> Verdict | None:
    """Whether the others keep a quorum without this voter."""
    view = seen.etcd.value if isinstance(seen.etcd, Present) else EtcdView()
    voters = sum(1 for member in view.members if not member.learner)
    if not own.learner and voters < 3:
        return _refuse(seen, "14/two-voters", "ControlPlaneNeeded", f"etcd has {voters} voter{'' if voters == 1 else 's'}, and a removal needs three.",
                       "Let a control plane join first.")
    healthy, needed = quorum_without(view, own)
    if healthy < needed:
        return _refuse(seen, "14/leave-quorum", "QuorumAtRisk", f"Without member {told(own)} etcd needs {needed} healthy voters, and {healthy} answer.",
                       "Bring the other control planes back first.")
    return None


def _reset_away(seen: Leaving, node: AliveNode, own: EtcdMember | None) -> Verdict:
    """Drained, out of etcd, wiped, and its record deleted."""
    turn = turn_refusal(seen)
    if turn is not None:
        return _refused(turn)
    if not isinstance(node.partitions, Present):
        return _refuse(seen, "14/partitions-unknown", "CurrentConfigUnavailable", f"The partitions of {seen.target.name} cannot be read, so it cannot be "
                       "told what a reset would wipe.", "Run this again.")
    if not wiped(node.partitions.value):
        return _refuse(seen, "14/nothing-to-wipe", "ResetFailed", f"{seen.target.name} has none of the partitions {', '.join(SYSTEM_VOLUMES)}.",
                       "Look at its disks; a node that runs from memory is wiped by a restart.")
    first = drain_first(seen)
    if first.refusal is not None:
        return _refused(first.refusal)
    steps, warnings = list(first.steps), list(first.warnings)
    if own is not None:
        steps.append(LeaveEtcd(seen.target, f"it is etcd's member {told(own)}; its own copy of etcd's data is deleted, the others keep theirs", locked=True,
                               member=own.id))
    why = ("its configuration goes, with what pods and etcd keep on these partitions, and it restarts into maintenance mode: "
           f"{told_partitions(node.partitions.value)}")
    steps.append(ResetMachine(seen.target, why, locked=True, partitions=wiped(node.partitions.value),
                              machine_uuid=seen.target.uuid))
    if seen.wish.record:
        wait = Wait(IN_MAINTENANCE, target=seen.target.name)
        steps += [*node_last(seen, wait), _delete(seen, "it is in maintenance mode then, and comes back as pending", wait)]
        warnings += node_left(seen)
    else:
        warnings.append(Warn(seen.target, "The record and the Kubernetes Node stay. A controller installs the machine again, unless the annotation "
                             "hold-apply is set on it.", "14/reset-alone"))
    return Verdict(Plan(tuple(steps), warnings=tuple(warnings)))


def _delete(seen: Leaving, why: str, *waits: Wait) -> DeleteRecord:
    if seen.machine is None:
        raise ValueError("a record that is not there is not deleted")
    return DeleteRecord(seen.target, why, waits_for=waits, before=seen.machine)


def _skipped(seen: Leaving) -> Warn:
    return Warn(seen.target, "It is dead: evacuation, drain, leaving etcd and the reset are skipped, and the cluster goes below its count where it was at it. "
                f"Should the machine come back, wipe it before it is used again. {REPLACE}", "14/dead-skips")


def _stays(seen: Leaving) -> Warn:
    return Warn(seen.target, "Its Kubernetes Node stays; delete it with kubectl delete node.", "14/node-stays")


def _data_left(seen: Leaving) -> tuple[Warn, ...]:
    partitions = seen.maintenance.value.partitions if isinstance(seen.maintenance, Present) else Unknown("AnswerInvalid")
    labels = wiped(partitions.value) if isinstance(partitions, Present) else ()
    if not labels and not isinstance(partitions, Unknown):
        return ()
    what = f"still holds {', '.join(labels)}" if labels else "cannot be read"
    return (Warn(seen.target, f"Its disk {what}: wipe it before it is approved again.", "14/data-left"),)


def _why_silent(seen: Leaving) -> str:
    return (seen.node.message or seen.node.reason).rstrip(".") if isinstance(seen.node, Unknown) else "it was not asked"


def _refuse(seen: Leaving, rule: str, reason: str, message: str, hint: str) -> Verdict:
    return _refused(Refusal(seen.target, reason, message, hint, rule))


def _refused(refusal: Refusal) -> Verdict:
    return Verdict(Plan(refusals=(refusal,)))
