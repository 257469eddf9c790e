# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an etcd member that does not answer may be removed (design section 14 and law 5): every gate a row, in order.

By its id, never a nameless learner, never one whose peer answers, never below the quorum, never from two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._model.observations import EtcdMember, EtcdStatus
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Refusal, Target
from .etcd_words import EtcdView
from .removal_words import MemberLook
from .stale_member import quorum_without, told

#: What a machine shows that does not answer for its member. Anything else (our own credentials, an address that is not dialled, an answer
#: that cannot be read) says nothing of it.
SILENCES = frozenset({
    "NotListening", "ConnectionRefused", "TimedOut", "NotTls", "NotTalos", "UnknownAuthority", "ConnectionLost", "CallFailed", "NodeRefused",
    "FailedPrecondition", "Unimplemented", "ClientCertificateRequired",
})
#: A removal needs three: from two control planes none is removed, dead or not.
FEWEST = 3


@dataclass(frozen=True)
class MemberCase:
    """One member that is to be removed, as the other control planes list it."""

    target: Target
    view: EtcdView
    member: EtcdMember
    look: MemberLook


def sees_leader(status: Observed[EtcdStatus]) -> bool:
    """A member that answers with a leader is healthy; a learner that does is alive too."""
    return isinstance(status, Present) and bool(status.value.leader.strip("0"))


def answers(case: MemberCase) -> bool:
    """Whoever answers with a leader at the member's place: it, or nobody can say which."""
    return case.member.id in case.view.healthy or sees_leader(case.look.direct) or sees_leader(case.look.through)


def _leaderless(status: Observed[EtcdStatus]) -> bool:
    return isinstance(status, Present) and not sees_leader(status)


def _silent(status: Observed[EtcdStatus]) -> bool:
    return isinstance(status, Unknown) and status.reason in SILENCES


def is_dead(look: MemberLook) -> bool:
    """The etcd there sees no leader, or the same call fails from here and through a healthy sibling. A lost route of ours is no death."""
    if sees_leader(look.direct) or sees_leader(look.through):
        return False
    return _leaderless(look.direct) or _leaderless(look.through) or (_silent(look.direct) and _silent(look.through))


def unproven(case: MemberCase) -> str:
    """What is not known, as a clause."""
    for where, status in (("asked directly", case.look.direct), ("asked through another control plane", case.look.through)):
        if isinstance(status, Unknown) and status.reason not in SILENCES:
            return f"{where}: {(status.message or status.reason).rstrip('.')}"
        if not isinstance(status, (Present, Unknown)):
            return f"{where}: nobody could be"
    return "it does not answer from here alone"


def _names_voter(case: MemberCase) -> bool:
    return not case.member.learner


def _voters(case: MemberCase) -> int:
    return sum(1 for member in case.view.members if not member.learner)


def _loses_quorum(case: MemberCase) -> bool:
    healthy, needed = quorum_without(case.view, case.member)
    return healthy < needed


@dataclass(frozen=True)
class MemberGate:
    """One row: when it refuses, with which reason and words."""

    id: str
    refuses: Callable[[MemberCase], bool]
    reason: str
    message: Callable[[MemberCase], str]
    hint: str


def _quorum_words(case: MemberCase) -> str:
    healthy, needed = quorum_without(case.view, case.member)
    return f"Without member {told(case.member)} etcd needs {needed} healthy voters, and {healthy} answer."


GATES: tuple[MemberGate, ...] = (
    MemberGate("14/nameless", lambda case: not case.member.name, "MemberUnclear",
               lambda case: f"Member {told(case.member)} has no name: it has not started yet, and may be joining right now.",
               "Wait until it has joined; Talos uses the entry again when its machine comes back."),
    MemberGate("14/member-answers", answers, "MemberAnswers",
               lambda case: f"The etcd member {told(case.member)} answers and sees a leader, so it is healthy.",
               "A healthy member leaves by the removal of its machine, talos_machine_removal."),
    MemberGate("14/death-unproven", lambda case: not is_dead(case.look), "DeathUnproven",
               lambda case: f"It is not proven that member {told(case.member)} is dead ({unproven(case)}).",
               "A route that is lost between here and the machine is no death; run this again where the other control planes can be asked."),
    MemberGate("14/node-ready", lambda case: isinstance(case.look.node_ready, Present) and case.look.node_ready.value, "DeathUnproven",
               lambda case: f"Member {told(case.member)} does not answer, yet its Kubernetes Node is Ready.",
               "Look at the network between the control planes."),
    MemberGate("14/two-members", lambda case: _names_voter(case) and _voters(case) < FEWEST, "ControlPlaneNeeded",
               lambda case: f"etcd has {_voters(case)} voter{'' if _voters(case) == 1 else 's'}, and a removal needs three, dead or not.",
               "Let a control plane join first, or bring this one back; an etcd that has lost its quorum comes back from a snapshot."),
    MemberGate("14/quorum", _loses_quorum, "QuorumAtRisk", _quorum_words, "Bring the other control planes back first."),
)


def member_refusal(case: MemberCase, gates: tuple[MemberGate, ...] | None = None) -> Refusal | None:
    """Why this member stays, or None where it may be removed."""
    for gate in GATES if gates is None else gates:
        if gate.refuses(case):
            return Refusal(case.target, gate.reason, gate.message(case), gate.hint, gate.id)
    return None
