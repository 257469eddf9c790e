# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What refuses a removal or a reset whatever etcd says (design sections 3, 4, 13 and 14): every gate a row, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._model.approval import status_lost, tracked_by, was_sent
from .._model.machine import identity_of
from .._model.observed import Present, Unknown
from .._model.plan import Refusal
from .._model.records import condition_of, dig, text_at
from .._model.schema_cluster import CONTROL_PLANE_COUNTS
from .approved import approved_control_planes, is_approved, is_control_plane
from .lock import LockView, disruption_of, held_by_other, lock_refusals
from .member_death import FEWEST
from .removal_words import Leaving
from .same_machine import other_machine

#: What says that this run cannot look, and nothing of the machine.
_OURS = frozenset({"SecretsUnavailable", "CredentialsInvalid", "CredentialsExpired", "BundleExposed", "ClockSkew", "PermissionDenied", "EndpointRefused",
                   "InvalidAddress"})


@dataclass(frozen=True)
class LeavingGate:
    """One row. `says` gives message and hint, or None where the row does not hold."""

    id: str
    reason: str
    says: Callable[[Leaving], tuple[str, str] | None]


def sent_control_plane(seen: Leaving) -> bool:
    """An approved control plane that was, or may have been, sent a configuration."""
    machine = seen.machine
    return machine is not None and is_approved(machine) and is_control_plane(machine) and (was_sent(machine) or status_lost(machine))


def is_sent(seen: Leaving) -> bool:
    """Whether anything of it is anywhere but in its record: a pending, rejected or never-sent machine is its record alone."""
    machine = seen.machine
    return machine is not None and is_approved(machine) and (was_sent(machine) or status_lost(machine))


def count_of(seen: Leaving) -> int:
    """`spec.controlPlane.count`; 1 where the record says none."""
    found = dig(seen.cluster.spec, "controlPlane", "count") if seen.cluster is not None else None
    return found if isinstance(found, int) else 1


def below_count(seen: Leaving) -> tuple[str, str] | None:
    """The sentence of the count, where the cluster would fall below it."""
    planes, count = len(approved_control_planes(seen.machines)), count_of(seen)
    if not sent_control_plane(seen) or planes - 1 >= count:
        return None
    lower = [str(one) for one in CONTROL_PLANE_COUNTS if one < count]
    less = f", or lower the count first (to {' or '.join([', '.join(lower[:-1]), lower[-1]] if len(lower) > 1 else lower)})" if lower else ""
    return (f"Without {seen.target.name} the cluster would have {planes - 1} control plane{'' if planes == 2 else 's'}, and controlPlane.count is {count}.",
            f"Approve a replacement first{less}.")


def _confirm(seen: Leaving) -> tuple[str, str] | None:
    if seen.wish.confirm == seen.target.name:
        return None
    return (f"confirm is {seen.wish.confirm or 'empty'!r} and not the name of the machine.", f"Set confirm to {seen.target.name}.")


def _tracked(seen: Leaving) -> tuple[str, str] | None:
    tool = tracked_by(seen.machine) if seen.machine is not None and seen.wish.record else ""
    if not tool or seen.wish.override:
        return None
    return f"{tool} keeps machine {seen.target.name} in step with git and would make its record again.", "Delete it in git, or run with override: true."


def _sending(seen: Leaving) -> tuple[str, str] | None:
    if seen.machine is None or not seen.machine.status.get("sending"):
        return None
    return (f"A configuration is on its way to machine {seen.target.name}, or its answer was lost.",
            "Look with talos_stage, or run talos_maintenance_apply again, which settles what became of it.")


def _status_lost(seen: Leaving) -> tuple[str, str] | None:
    if seen.machine is None or not status_lost(seen.machine):
        return None
    return (f"The status of machine {seen.target.name} is gone, so it is not known what it is.",
            "Bring the state folder back, or say that it is this machine with talos_machine, trust: true.")


def _operation(seen: Leaving) -> tuple[str, str] | None:
    if seen.cluster is None or not seen.cluster.status.get("operation") or not is_sent(seen):
        return None
    return "Something is being done to the whole cluster (status.operation).", "Wait for it, or clear it by name when it is no longer going on."


def _two(seen: Leaving) -> tuple[str, str] | None:
    planes = len(approved_control_planes(seen.machines))
    if not sent_control_plane(seen) or planes >= FEWEST:
        return None
    if planes <= 1:
        return f"{seen.target.name} is the last control plane of its cluster.", "The last one is never removed; delete the cluster's machines by hand."
    return ("The cluster has two control planes, and a removal needs three: from two none is removed, dead or not.",
            "Approve another control plane and let it join first.")


def _other_machine(seen: Leaving) -> tuple[str, str] | None:
    if seen.machine is None or not is_sent(seen) or not isinstance(seen.node, Present):
        return None
    other = other_machine(identity_of(seen.machine), seen.node.value.identity)
    return (f"Another machine answers at the address of {seen.target.name}: {other}.", "Correct spec.endpoint with talos_machine.") if other else None


def _cannot_look(seen: Leaving) -> tuple[str, str] | None:
    if not is_sent(seen) or not isinstance(seen.node, Unknown) or seen.node.reason not in _OURS or isinstance(seen.maintenance, Present):
        return None
    return (f"The node cannot be read: {(seen.node.message or seen.node.reason).rstrip('.')}.",
            "Give credentials for the cluster's nodes and an address that is dialled.")


GATES: tuple[LeavingGate, ...] = (
    LeavingGate("14/confirm", "ConfirmationMissing", _confirm),
    LeavingGate("14/gitops", "RecordTracked", _tracked),
    LeavingGate("14/sending", "SendingUnconfirmed", _sending),
    LeavingGate("14/status-missing", "StatusMissing", _status_lost),
    LeavingGate("14/operation", "OperationInProgress", _operation),
    LeavingGate("14/last-two", "ControlPlaneNeeded", _two),
    LeavingGate("14/other-machine", "EndpointIdentityMismatch", _other_machine),
    LeavingGate("14/cannot-look", "SecretsUnavailable", _cannot_look),
)


def refusal_of(seen: Leaving, gates: tuple[LeavingGate, ...] | None = None) -> Refusal | None:
    """The first row that refuses, or None. A machine whose record is gone is asked for nothing but the confirmation."""
    for gate in GATES if gates is None else gates:
        said = gate.says(seen)
        if said is not None:
            return Refusal(seen.target, gate.reason, *said, rule=gate.id)
    return None


def lock_refusal(seen: Leaving) -> Refusal | None:
    """Why the lock of the cluster may not be taken for it. A removal lowers the number of control planes, so neither an even number nor too
    many of them stand against it; the holds of the cluster do."""
    found = lock_refusals(LockView(seen.cluster, seen.machines, completes_transition=True), seen.target)
    return next((one for one in found if one.reason != "ControlPlaneCapExceeded"), None)


def turn_refusal(seen: Leaving) -> Refusal | None:
    """Something disruptive on another machine has not shown its end (section 13)."""
    open_one = disruption_of(seen.cluster)
    if open_one is None or not held_by_other(open_one, seen.target.name):
        return None
    return Refusal(seen.target, "OperationInProgress", f"A disruptive step on {open_one.machine} ({open_one.step}) has not shown its end.",
                   f"Wait until {open_one.machine} is back, or clear the disruption by name.", "14/turn")


def unreachable_in_the_records(seen: Leaving) -> bool:
    """The machine's own condition says that it does not answer."""
    ready = condition_of(seen.machine, "Ready") if seen.machine is not None else None
    return ready is not None and ready.status == "False" and ready.reason == "NodeUnreachable"


def reset_was_sent(seen: Leaving) -> bool:
    """A reset of this very machine was announced and has not shown its end."""
    found = disruption_of(seen.cluster)
    return found is not None and found.machine == seen.target.name and found.step == "reset"


def bootstrapped(seen: Leaving) -> bool:
    """Whether etcd may count on this cluster's control planes: a cluster that is not known to be before its bootstrap has one."""
    cluster = seen.cluster
    if cluster is None or cluster.status_set_aside or text_at(cluster.status, "bootstrappedAt") or dig(cluster.status, "bootstrapping"):
        return True
    return any(text_at(other.status, "appliedConfigHash") for other in seen.machines)
