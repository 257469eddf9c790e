# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster lock: who may take it, and what outlives it (design section 13).

The lease itself is the store's; here is what refuses it whatever its state, and the evidence that ends a disruption.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._model.errors import TalosError
from .._model.moments import seconds_of
from .._model.observed import Observed, Present
from .._model.plan import Refusal, Target
from .._model.records import Record, dig, text_at
from .._model.timing import Timing
from .approved import approved_control_planes


@dataclass(frozen=True)
class LockView:
    """What a taker of the lock sees. `machines` are all of the cluster, never only those of a narrower scope (law 12)."""

    cluster: Record | None
    machines: tuple[Record, ...]
    completes_transition: bool = False

    @property
    def control_planes(self) -> int:
        """How many control planes are approved."""
        return len(approved_control_planes(self.machines))

    @property
    def count(self) -> int:
        """`spec.controlPlane.count`; 1 where the record says none."""
        found = dig(self.cluster.spec, "controlPlane", "count") if self.cluster else None
        return found if isinstance(found, int) else 1

    @property
    def hold(self) -> str:
        return text_at(self.cluster.spec, "hold") if self.cluster else ""


@dataclass(frozen=True)
class LockGate:
    """One row: the id of the rule, when it refuses, with which reason and words."""

    id: str
    refuses: Callable[[LockView], bool]
    reason: str
    message: Callable[[LockView], str]
    hint: str


LOCK_GATES: tuple[LockGate, ...] = (
    LockGate(
        "13/no-store", lambda view: view.cluster is None, "NoLock",
        lambda view: "Without a store there is no lock, and this step needs the lock of its cluster.",
        "Name a store and the cluster's record."),
    LockGate(
        "13/shutdown", lambda view: view.hold == "shutdown", "ClusterShuttingDown",
        lambda view: "The cluster's record says that it is being shut down (spec.hold).",
        "Take spec.hold away when the cluster is to run again."),
    LockGate(
        "13/ca-rotation", lambda view: view.hold == "caRotation", "CARotation",
        lambda view: "The cluster's record says that its CA is being rotated (spec.hold).",
        "Finish the rotation, then take spec.hold away."),
    LockGate(
        "13/over-cap", lambda view: view.control_planes > view.count + 1, "ControlPlaneCapExceeded",
        lambda view: f"{view.control_planes} control planes are approved, and controlPlane.count is {view.count}.",
        "Reject one that was never sent a configuration, remove one, or raise the count."),
    LockGate(
        "13/transitioning", lambda view: not view.completes_transition and view.control_planes > 0 and view.control_planes % 2 == 0,
        "Transitioning",
        lambda view: f"{view.control_planes} control planes are approved, an even number: a change of members is under way.",
        "Approve one more control plane, or remove one, and run this again."),
)


def lock_refusals(view: LockView, target: Target, gates: tuple[LockGate, ...] = LOCK_GATES) -> tuple[Refusal, ...]:
    """Why the lock may not be taken now; () when it may. A lease that somebody holds is not seen here."""
    return tuple(Refusal(target, gate.reason, gate.message(view), gate.hint, gate.id) for gate in gates if gate.refuses(view))


@dataclass(frozen=True)
class Disruption:
    """`TalosCluster.status.disruption`: a disruptive send that has not yet shown that it ended well. `node`: the Kubernetes Node that was
    cordoned for it, which is uncordoned at its end."""

    machine: str
    step: str
    time: str
    boot_id: str = ""
    node: str = ""


#: What kinds of step a disruption records, and with which evidence each ends.
DISRUPTION_STEPS = ("drain", "reboot", "reset", "apply", "join")


def disruption_of(cluster: Record | None) -> Disruption | None:
    """The disruption that the cluster's status records, or None."""
    found = cluster.status.get("disruption") if cluster else None
    if not isinstance(found, dict):
        return None
    return Disruption(text_at(found, "machine"), text_at(found, "step"), text_at(found, "time"), text_at(found, "bootID"), text_at(found, "node"))


@dataclass(frozen=True)
class Evidence:
    """What a disrupted machine shows. `ready_twice`: two readings, a follow interval apart, both ready (which has the API
    server's static pod ready too, since Talos counts static pods). `member`: a started voting member that sees a leader."""

    at: float
    maintenance: bool = False
    boot_id: Observed[str] | None = None
    ready_twice: bool = False
    member: bool = False
    #: The machine is a control plane: after a reboot it has to be ready and a member again, besides having booted anew.
    control_plane: bool = False
    #: It runs, and its boot id is still the one of before the reboot.
    stayed_up: bool = False


def disruption_over(disruption: Disruption, evidence: Evidence, patience: float = Timing().follow_slow) -> bool:
    """Whether this evidence ends that disruption: later than it, and of the kind that its step needs (section 13).

    `patience`: seconds after which a machine that stayed up all the while was never told to reboot: the run stopped before it sent that.
    """
    began = seconds_of(disruption.time)
    if began is None or evidence.at <= began:
        return False
    if disruption.step == "drain":
        return False  # it ends with the run that drains, or by whoever finds that this one is gone
    if disruption.step == "reset":
        return evidence.maintenance
    if disruption.step == "reboot":
        booted = isinstance(evidence.boot_id, Present) and bool(disruption.boot_id) and evidence.boot_id.value != disruption.boot_id
        never_sent = evidence.stayed_up and evidence.at - began >= patience
        return (booted or never_sent) and (not evidence.control_plane or evidence.ready_twice and evidence.member)
    return evidence.ready_twice and evidence.member


def held_by_other(disruption: Disruption | None, machine: str) -> bool:
    """Whether something disruptive on this machine has to wait for the evidence of another one."""
    return disruption is not None and disruption.machine != machine


def lock_held(cluster: str, holder: str, since: str, purpose: str) -> TalosError:
    """The refusal of a lease that another one has."""
    return TalosError("LockHeld", f"The lock of cluster {cluster} is held by {holder} since {since}, for {purpose}.",
                      "Wait for it, or raise lock_wait; a holder that is gone loses it by itself.")
