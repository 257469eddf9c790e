# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What refuses a reclaim: every gate a row, in order (design section 16, law 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, Union

from .._model.observed import Absent, Observed, Present, Unknown
from .._model.plan import Refusal
from .._model.records import text_at
from .approved import in_cluster
from .by_hand import RESET, RESET_LAST
from .lock import LockView, disruption_of, lock_refusals
from .member_death import sees_leader
from .reclaim_inspection import (
    after_leaving, after_vanishing, cluster_words, etcd_problem, found_identity, goes, inspection, is_last, is_plane, own_cluster, own_member,
    records_of, typed_uuid, uuid_of, view_of, voters,
)
from .reclaim_words import Reclaiming
from .reset_partitions import SYSTEM_VOLUMES

#: Stages in which a node is busy with itself: a reset that is sent meanwhile is answered OK and dropped (Talos fact).
_BUSY = frozenset({"rebooting", "shuttingDown", "upgrading", "installing"})
FORCED = "is treated as not existing, so its quorum cannot be checked and the reset is not graceful"

T = TypeVar("T")
Words = Union[str, Callable[[Reclaiming], str]]


@dataclass(frozen=True)
class ReclaimGate:
    """One row: when it refuses, with which reason and words."""

    id: str
    refuses: Callable[[Reclaiming], bool]
    reason: Words
    message: Words
    hint: Words


def _why(found: Observed[T]) -> str:
    if isinstance(found, Unknown):
        return found.message.rstrip(".") or found.reason
    return "there is none" if isinstance(found, Absent) else ""


def reclaim_name(seen: Reclaiming) -> str:
    """How the disruption of a managed cluster names a machine that has no record."""
    return f"reclaim-{uuid_of(seen)}"


def _typed(seen: Reclaiming) -> str:
    """What a person typed, of which a slip may be a whole file."""
    typed = seen.wish.confirm.strip()
    return typed if len(typed) <= 80 else f"{typed[:77]}..."


def _answers(seen: Reclaiming) -> bool:
    return isinstance(seen.node, Present)


def _in_maintenance(seen: Reclaiming) -> bool:
    return isinstance(seen.maintenance, Present)


def _silence(seen: Reclaiming) -> str:
    return seen.node.reason if isinstance(seen.node, Unknown) else "NodeUnreachable"


def _foreign_authority(seen: Reclaiming) -> bool:
    return not _answers(seen) and not _in_maintenance(seen) and _silence(seen) == "UnknownAuthority"


def _unusable(seen: Reclaiming) -> bool:
    """It is our own credential that cannot be used, which says nothing of the node."""
    return not _answers(seen) and not _in_maintenance(seen) and _silence(seen) in ("SecretsUnavailable", "CredentialsInvalid", "CredentialsExpired",
                                                                                   "PermissionDenied", "EndpointRefused", "ClockSkew")


def _stage(seen: Reclaiming) -> str:
    found = inspection(seen).stage
    return found.value.stage if isinstance(found, Present) else ""


def _managed(seen: Reclaiming) -> bool:
    return isinstance(own_cluster(seen), Present)


def _held(seen: Reclaiming) -> Refusal | None:
    """What holds every disruptive step of the managed cluster that the node is of."""
    own = own_cluster(seen)
    if not isinstance(own, Present) or not is_plane(seen):
        return None
    view = LockView(own.value, in_cluster(seen.machines, own.value.name), completes_transition=True)
    return next((one for one in lock_refusals(view, seen.target) if one.reason != "ControlPlaneCapExceeded"), None)


def _operation(seen: Reclaiming) -> bool:
    own = own_cluster(seen)
    return isinstance(own, Present) and bool(own.value.status.get("operation"))


def _disrupted(seen: Reclaiming) -> str:
    """The machine of its managed cluster that is disrupted, where that is another one."""
    own = own_cluster(seen)
    found = disruption_of(own.value) if isinstance(own, Present) else None
    return found.machine if found is not None and found.machine != reclaim_name(seen) else ""


def _etcd(seen: Reclaiming) -> bool:
    return is_plane(seen) and not etcd_problem(seen)


def _forced(seen: Reclaiming) -> bool:
    return is_plane(seen) and bool(etcd_problem(seen)) and seen.wish.force_ungraceful


def _leaving(seen: Reclaiming) -> str:
    healthy, needed = after_leaving(seen)
    return f"Without it the etcd of {cluster_words(seen)} has {len(view_of(seen).members) - 1} members, needs {needed} healthy voters, and {healthy} answer."


def _vanishing(seen: Reclaiming) -> str:
    healthy, needed = after_vanishing(seen)
    return (f"The etcd of {cluster_words(seen)} lives: it lists its members. This one would not leave, so {needed} healthy voters are needed of "
            f"{voters(seen)}, and {healthy} others answer.")


def _vanishes_fatally(seen: Reclaiming) -> bool:
    healthy, needed = after_vanishing(seen)
    return _forced(seen) and isinstance(inspection(seen).members, Present) and healthy < needed


def _answers_unlisted(seen: Reclaiming) -> bool:
    """Its etcd sees a leader, so that cluster lives, and nobody says of whom."""
    return _forced(seen) and sees_leader(inspection(seen).etcd) and not isinstance(inspection(seen).members, Present)


def _lives_through_it(seen: Reclaiming) -> bool:
    healthy, needed = after_leaving(seen)
    return healthy >= needed


def _named(seen: Reclaiming) -> str:
    return ", ".join(f"{machine.name} of cluster {text_at(machine.spec, 'clusterRef')}" for machine in records_of(seen, "approved"))


NODE_GATES: tuple[ReclaimGate, ...] = (
    ReclaimGate("16/no-cluster", lambda seen: seen.cluster is None, "RecordNotFound",
                lambda seen: f"There is no cluster {seen.wish.cluster or 'named'} for the machine to go to.", "Name it with cluster; talos_cluster makes one."),
    ReclaimGate("16/unknown-authority", _foreign_authority, "UnknownAuthority",
                lambda seen: f"The node does not take these credentials: {_why(seen.node)}.",
                lambda seen: "The talosconfig may be the one of another cluster; where none is given, the bundle of cluster "
                f"{seen.wish.cluster} is tried. Give that of the node's own cluster; without it there is no way over the API, and the "
                "machine is wiped by reinstalling it, or with the kernel argument talos.experimental.wipe=system."),
    ReclaimGate("16/credential", _unusable, _silence, lambda seen: f"The node cannot be asked: {_why(seen.node)}.",
                lambda seen: {"EndpointRefused": "Check the address.", "ClockSkew": "Set the clock of this machine, or that of the node."}.get(
                    _silence(seen), "Give the talosconfig of the node's own cluster, with the role os:admin.")),
    ReclaimGate("16/unreachable", lambda seen: not _answers(seen) and not _in_maintenance(seen), "NodeUnreachable",
                lambda seen: f"The node does not answer: {_why(seen.node)}.",
                "Check the address and that the machine is on. One that was just reset is told of when it answers in maintenance mode: run this again then."),
    ReclaimGate("16/identity-unread", lambda seen: not isinstance(found_identity(seen), Present), "CurrentConfigUnavailable",
                lambda seen: f"Which machine it is cannot be read ({_why(found_identity(seen))}).", "Run this again."),
    ReclaimGate("16/no-uuid", lambda seen: isinstance(found_identity(seen), Present) and not uuid_of(seen), "WeakIdentity",
                "The node reports no UUID, so nobody can name it for being wiped.", f"Wipe it by hand: {RESET}."),
    ReclaimGate("16/not-confirmed", lambda seen: not seen.wish.confirm.strip(), "ConfirmationMissing",
                lambda seen: f"The machine with UUID {uuid_of(seen)} is in maintenance mode: there is nothing to reset." if _in_maintenance(seen)
                else f"Nobody has agreed to wiping the machine with UUID {uuid_of(seen)}.",
                lambda seen: "Find it with talos_discover; or set confirm to its UUID, and it is written down here." if _in_maintenance(seen)
                else "Read the plan, make sure that it is this machine, and set confirm to its UUID."),
    ReclaimGate("16/uuid-differs", lambda seen: typed_uuid(seen) != uuid_of(seen), "IdentityMismatch",
                lambda seen: f"The machine that answers has UUID {uuid_of(seen)}, and {_typed(seen)} was typed.",
                "Check the address, and type the UUID as it is shown; nothing was sent."),
    ReclaimGate("16/broken-records", lambda seen: bool(seen.broken), "RecordBroken",
                lambda seen: f"{seen.broken[0].source} cannot be read, so nobody knows whether the machine is an approved one.", "Mend the file."),
    ReclaimGate("16/approved", lambda seen: bool(records_of(seen, "approved")), "MachineManaged",
                lambda seen: f"The machine is {_named(seen)}, approved there.", "Remove it there with talos_machine_removal; it comes back as pending."),
)

CONFIGURED_GATES: tuple[ReclaimGate, ...] = (
    ReclaimGate("16/config-unread", lambda seen: not isinstance(inspection(seen).owner, Present), "CurrentConfigUnavailable",
                lambda seen: f"Whose cluster it is cannot be read: {_why(inspection(seen).owner)}.",
                "Run this again with a talosconfig of the role os:admin."),
    ReclaimGate("16/owner-unsure", lambda seen: isinstance(own_cluster(seen), Unknown), "SecretsUnavailable",
                lambda seen: f"Whether the node is of cluster {getattr(own_cluster(seen), 'source', '')} of this store cannot be told: "
                             f"{_why(own_cluster(seen))}.", "Make the secrets bundle of that cluster readable."),
    ReclaimGate("16/force-managed", lambda seen: seen.wish.force_ungraceful and _managed(seen), "QuorumUnknown",
                lambda seen: f"The node is of {cluster_words(seen)}, which does exist: force_ungraceful is only for a cluster that this store does not manage.",
                "Leave force_ungraceful out; an approved machine is removed with talos_machine_removal."),
    ReclaimGate("16/own-held", lambda seen: _held(seen) is not None, lambda seen: held.reason if (held := _held(seen)) else "NoLock",
                lambda seen: held.message if (held := _held(seen)) else "", lambda seen: held.hint if (held := _held(seen)) else ""),
    ReclaimGate("16/own-operation", _operation, "OperationInProgress",
                lambda seen: f"Something is being done to the whole {cluster_words(seen)} (status.operation).",
                "Wait for it, or clear it by name when it is no longer going on."),
    ReclaimGate("16/own-disruption", lambda seen: seen.strict and bool(_disrupted(seen)), "OperationInProgress",
                lambda seen: f"A disruptive step on {_disrupted(seen)} of {cluster_words(seen)} has not shown its end.",
                "Run this again when it has."),
    ReclaimGate("16/busy", lambda seen: _stage(seen) in _BUSY, "OperationInProgress",
                lambda seen: f"The node is in stage {_stage(seen)}: it would answer OK to a reset and drop it.", "Run this again when it is through."),
    ReclaimGate("16/volumes-unread", lambda seen: not isinstance(inspection(seen).partitions, Present), "CurrentConfigUnavailable",
                lambda seen: f"What a reset would wipe cannot be read: {_why(inspection(seen).partitions)}.", "Run this again."),
    ReclaimGate("16/nothing-to-wipe", lambda seen: isinstance(inspection(seen).partitions, Present) and not goes(seen), "ResetFailed",
                f"The node has none of the volumes {', '.join(SYSTEM_VOLUMES)}.", "Look at its disks; a node that runs from memory is wiped by a restart."),
    ReclaimGate("16/etcd-problem", lambda seen: is_plane(seen) and bool(etcd_problem(seen)) and not seen.wish.force_ungraceful, "QuorumUnknown",
                lambda seen: f"It is a control plane and cannot leave its etcd gracefully (etcdProblem: {etcd_problem(seen)}).",
                "Bring its etcd back, or set force_ungraceful: true where that cluster does not exist any more."),
    ReclaimGate("16/own-unlisted", lambda seen: _etcd(seen) and own_member(seen) is None, "MemberUnclear",
                lambda seen: "Its etcd answers as a member that the list of members does not have.", "Look at talosctl etcd members, and run this again."),
    ReclaimGate("16/last", lambda seen: _etcd(seen) and is_last(seen), "ControlPlaneNeeded",
                lambda seen: f"It is the last control plane of {cluster_words(seen)}, and its etcd answers.",
                f"A cluster that is to end is ended by hand: {RESET_LAST} on this node; discovery finds it then."),
    ReclaimGate("16/quorum", lambda seen: _etcd(seen) and not is_last(seen) and own_member(seen) is not None and not _lives_through_it(seen), "QuorumAtRisk",
                _leaving, "Bring the other control planes of that cluster back first."),
    ReclaimGate("16/forced-unlisted", _answers_unlisted, "QuorumUnknown",
                lambda seen: f"Its etcd sees a leader, so the etcd of {cluster_words(seen)} lives, and its members cannot be read ({etcd_problem(seen)}).",
                "force_ungraceful lets a silent etcd count as absent, not one that answers. Run this again."),
    ReclaimGate("16/forced-quorum", _vanishes_fatally, "QuorumAtRisk", _vanishing,
                "force_ungraceful lets a silent etcd count as absent, not one that answers: bring the members of that cluster back, or remove them there."),
)


def refusal_of(seen: Reclaiming, gates: tuple[ReclaimGate, ...]) -> Refusal | None:
    """The first row that refuses, or None."""
    def text(words: Words) -> str:
        return words if isinstance(words, str) else words(seen)

    for gate in gates:
        if gate.refuses(seen):
            return Refusal(seen.target, text(gate.reason), text(gate.message), text(gate.hint), gate.id)
    return None
