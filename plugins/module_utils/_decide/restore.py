# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restoring etcd onto a fresh first control plane: the gates of a bootstrap, with those that are lost typed (design section 17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Union

from .._model.approval import status_missing, was_sent
from .._model.backups import Destination
from .._model.machine import identity_of
from .._model.moments import moment
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.plan import Refusal, Step, Target, Wait, Warn
from .._model.records import Record, text_at
from .approved import approved_control_planes, is_approved, is_control_plane
from .conditions import Status
from .following import OTHER_CLUSTER, Answer, is_member
from .inside_cluster import inside_cluster
from .lock import LockView, disruption_of, held_by_other, lock_refusals
from .same_machine import difference

_BY_HAND = ("A restore onto a cluster that runs is not done. By hand: stop what writes to Kubernetes, reset every control plane with talosctl reset "
            "--graceful=false --reboot --system-labels-to-wipe EPHEMERAL, and run this again when they wait for etcd.")
_UP = "the control plane to be up and to wait for its etcd"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that was read to its end. `problem`: why it is no whole one, as a clause; `expected`: the hash that the backup's record
    has of it, '' for none."""

    name: str
    size: int
    sha256: str
    problem: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Restoring:
    """One observation. `answers` are the authenticated reads of the control planes that were sent a configuration, None before they were
    made. `wiped`: the machine itself answers in maintenance mode, so it is installed first. `lost` was typed by a person, `confirm` too."""

    target: Target
    cluster: Record | None
    machine: Record | None
    machines: tuple[Record, ...] = ()
    source: Destination = field(default_factory=Destination)
    snapshot: Observed[Snapshot] = field(default_factory=Absent)
    confirm: str = ""
    lost: tuple[str, ...] = ()
    unverified: bool = False
    answers: tuple[tuple[str, Observed[Answer]], ...] | None = None
    wiped: bool = False

    def answer(self, name: str) -> Observed[Answer]:
        found = dict(self.answers or ()).get(name)
        return found if found is not None else Unknown("ControlPlaneUnreachable", "it was not asked")


@dataclass(frozen=True)
class RestoreEtcd(Step):
    """Put the snapshot on the control plane and begin etcd with it. Whatever etcd held since is gone."""

    action: ClassVar[str] = "RestoreEtcd"
    reversible: ClassVar[bool] = False

    sha256: str = ""
    lost: tuple[str, ...] = ()
    snapshot: str = field(default="", metadata={"plan": "skip"})


@dataclass(frozen=True)
class NeedAnswers:
    """Read the control planes now."""


@dataclass(frozen=True)
class Refused:
    """No restore. `passing`: the same may go in a while by itself."""

    refusal: Refusal
    passing: bool = False


@dataclass(frozen=True)
class Install:
    """The machine was wiped: it gets its configuration first, and `step` follows."""

    step: RestoreEtcd


@dataclass(frozen=True)
class Go:
    """The gates are passed."""

    step: RestoreEtcd


@dataclass(frozen=True)
class Done:
    """An earlier restore of this machine, whose answer was lost, has worked, and is written down now."""

    message: str


Verdict = Union[NeedAnswers, Refused, Install, Go, Done]


@dataclass(frozen=True)
class Gate:
    """One row. `which` gives what the words speak of ('' when the row does not hold); `asked` rows look at the answers."""

    id: str
    which: Callable[[Restoring], str]
    reason: str | Callable[[Restoring], str]
    message: str
    hint: str
    asked: bool = False
    passing: bool = False


def asked_control_planes(seen: Restoring) -> tuple[Record, ...]:
    """Every control plane that is asked: approved, and sent a configuration; the lost ones too, since who answers is not lost."""
    return tuple(machine for machine in approved_control_planes(seen.machines) if was_sent(machine))


def operation_name(machine: str) -> str:
    """What `status.operation` is called while a restore is under way."""
    return f"restore on {machine}"


def _own(seen: Restoring, wrong: Callable[[Record], bool]) -> str:
    return seen.target.name if seen.machine is None or wrong(seen.machine) else ""


def _running(seen: Restoring, name: str) -> bool:
    """An etcd that answers, or may: it is not ended by a restore."""
    answer = seen.answer(name)
    if not isinstance(answer, Present):
        return False
    state = next((service.state for service in answer.value.services if service.id == "etcd"), "")
    return state in ("Running", "Stopping") or isinstance(answer.value.etcd, Present)


def _silent(seen: Restoring, name: str) -> bool:
    return not isinstance(seen.answer(name), Present)


def _others(seen: Restoring, wrong: Callable[[Restoring, str], bool], *, lost: bool | None = None) -> str:
    names = [machine.name for machine in asked_control_planes(seen) if machine.name != seen.target.name and wrong(seen, machine.name)]
    return ", ".join(name for name in names if lost is None or (name in seen.lost) == lost)


def _not_fresh(seen: Restoring, name: str) -> bool:
    """A control plane that answers and is not one that waits for etcd, by its stage."""
    answer = seen.answer(name)
    return isinstance(answer, Present) and (answer.value.stage.stage != "booting" or answer.value.stage.unattended_install not in ("", "installed"))


def _unread(seen: Restoring, reason: str) -> str:
    answer = seen.answer(seen.target.name)
    return (answer.message or answer.reason) if isinstance(answer, Unknown) and answer.reason == reason and not seen.wiped else ""


def _own_stage(seen: Restoring) -> str:
    """Why the machine does not wait for etcd yet. A recovery that failed leaves `running` with an etcd that failed, and is tried again."""
    answer = seen.answer(seen.target.name)
    if not isinstance(answer, Present):
        return ""
    state = next((service.state for service in answer.value.services if service.id == "etcd"), "")
    if answer.value.stage.stage == "running" and isinstance(answer.value.etcd, Unknown):
        return ""
    if _not_fresh(seen, seen.target.name):
        return answer.value.stage.stage
    return "" if state in ("Preparing", "Waiting", "Initialized", "Failed") else "an etcd service that is not seen yet"


def _snapshot_problem(seen: Restoring) -> str:
    found = seen.snapshot
    if not isinstance(found, Present):
        return (found.message or found.reason) if isinstance(found, Unknown) else "None was named."
    if found.value.problem and not seen.unverified:
        return f"{found.value.name} is no whole snapshot of etcd: {found.value.problem}."
    if found.value.expected and found.value.expected != found.value.sha256:
        return f"{found.value.name} is not what was saved: its SHA-256 is {found.value.sha256}, and the record has {found.value.expected}."
    return ""


def _snapshot_reason(seen: Restoring) -> str:
    return seen.snapshot.reason if isinstance(seen.snapshot, Unknown) else "SnapshotInvalid"


def _wrong_lost(seen: Restoring) -> str:
    known = {machine.name for machine in asked_control_planes(seen)} - {seen.target.name}
    return ", ".join(name for name in seen.lost if name not in known)


def _operation(seen: Restoring) -> str:
    found = text_at(seen.cluster.status, "operation", "name") if seen.cluster is not None else ""
    return found if found != operation_name(seen.target.name) else ""


def _begun_elsewhere(seen: Restoring) -> str:
    found = text_at(seen.cluster.status, "bootstrapping", "machine") if seen.cluster is not None else ""
    return found if found != seen.target.name else ""


def _disrupted(seen: Restoring) -> str:
    disruption = disruption_of(seen.cluster)
    return disruption.machine if disruption is not None and held_by_other(disruption, seen.target.name) else ""


def _other_node(seen: Restoring, name: str) -> bool:
    answer = seen.answer(name)
    machine = next((machine for machine in seen.machines if machine.name == name), None)
    return isinstance(answer, Present) and machine is not None and bool(difference(identity_of(machine), answer.value.identity))


GATES: tuple[Gate, ...] = (
    Gate("17/restore-unconfirmed", lambda seen: "" if seen.confirm == seen.target.cluster else seen.confirm or "empty", "ConfirmationMissing",
         "confirm is {which} and not the name of the cluster, whose etcd becomes what the snapshot holds.", "Set confirm to the name of the cluster."),
    Gate("17/restore-store-in-cluster", lambda seen: inside_cluster(seen.source, seen.cluster.spec if seen.cluster is not None else None), "StoreInCluster",
         "The snapshot is in a store inside the cluster that is restored: {which}.", "Copy it to a folder of this host, and give that as path."),
    Gate("17/restore-not-approved", lambda seen: _own(seen, lambda machine: not is_approved(machine)), "NotApproved",
         "{which} is not approved.", "Approve it with talos_machine_approval."),
    Gate("17/restore-not-control-plane", lambda seen: _own(seen, lambda machine: not is_control_plane(machine)), "NotControlPlane",
         "{which} is not a control plane.", "Name a control plane of the cluster."),
    Gate("17/restore-status-missing", lambda seen: ", ".join(machine.name for machine in approved_control_planes(seen.machines) if status_missing(machine)),
         "StatusMissing", "The status of {which} is gone, so it is not known what its etcd holds.",
         "Bring the state folder back, or say that it is safe with talos_machine, trust: true."),
    Gate("17/restore-not-sent", lambda seen: _own(seen, lambda machine: not was_sent(machine)), "BootstrapNotAvailable",
         "{which} was never sent a configuration.", "Send it with talos_maintenance_apply or talos_controller first."),
    Gate("17/restore-lost-unknown", _wrong_lost, "InvalidInput", "lost names {which}, and no other control plane that was sent a configuration is called so.",
         "Type the names of the control planes that do not answer."),
    Gate("17/restore-operation", _operation, "OperationInProgress", "The cluster's record says that something else is under way: {which}.",
         "Wait for it, or clear it by name with talos_cluster when it is no longer going on."),
    Gate("17/restore-bootstrap-elsewhere", _begun_elsewhere, "BootstrapInProgress", "A bootstrap was begun on {which}.", "Name {which}."),
    Gate("17/restore-disruption", _disrupted, "OperationInProgress", "A disruptive step on {which} has not shown its end.",
         "Follow {which} with talos_stage, or clear the disruption by name."),
    Gate("17/snapshot-invalid", _snapshot_problem, _snapshot_reason, "{which}", "Nothing was sent. Name another snapshot."),
    Gate("17/restore-no-credentials", lambda seen: _unread(seen, "SecretsUnavailable"), "SecretsUnavailable",
         "The control planes can only be read with authentication, and there are no credentials for them. {which}", "Then run this again.", asked=True),
    Gate("17/restore-other-authority", lambda seen: _unread(seen, "UnknownAuthority"), "UnknownAuthority",
         "The control plane answers and is not read with these credentials: {which}", OTHER_CLUSTER, asked=True),
    Gate("17/restore-other-node", lambda seen: ", ".join(machine.name for machine in asked_control_planes(seen) if _other_node(seen, machine.name)),
         "EndpointIdentityMismatch", "Another machine answers at the address of {which}.", "Edit spec.endpoint.", asked=True),
    Gate("17/restore-live", lambda seen: ", ".join(machine.name for machine in asked_control_planes(seen) if _running(seen, machine.name)),
         "ControlPlaneAlive", "The etcd of {which} runs.", _BY_HAND, asked=True),
    Gate("17/restore-lost-answers", lambda seen: _others(seen, lambda seen, name: not _silent(seen, name), lost=True), "ControlPlaneAlive",
         "{which} was typed as lost, and answers.", "Take it out of lost.", asked=True),
    Gate("17/restore-unreachable", lambda seen: _others(seen, _silent, lost=False), "ControlPlaneUnreachable",
         "{which} does not answer with authentication, and may hold a living etcd.",
         "Bring it back; or type its name in lost, when it is gone for good or its disk is empty.", asked=True),
    Gate("17/restore-silent", lambda seen: seen.target.name if _silent(seen, seen.target.name) and not seen.wiped else "", "ControlPlaneUnreachable",
         "{which} does not answer.", "Wait until it is up (talos_stage).", asked=True, passing=True),
    Gate("17/restore-others-busy", lambda seen: _others(seen, _not_fresh), "BootstrapNotAvailable", "{which} answers and does not wait for etcd.",
         "Wait until it is up (talos_stage), or reset it.", asked=True, passing=True),
    Gate("17/restore-not-fresh", _own_stage, "BootstrapNotAvailable", "The machine is not one that waits for etcd: {which}.",
         "Wait until it is up (talos_stage).", asked=True, passing=True),
)


def decide_restore(seen: Restoring, gates: tuple[Gate, ...] = GATES) -> Verdict:
    """What the observation calls for."""
    for gate in gates:
        if gate.asked and seen.answers is None:
            return NeedAnswers()
        if gate.asked and _worked(seen):
            return Done(f"An earlier restore on {seen.target.name}, whose answer was lost, has worked.")
        which = gate.which(seen)
        if which:
            reason = gate.reason if isinstance(gate.reason, str) else gate.reason(seen)
            return Refused(Refusal(seen.target, reason, gate.message.format(which=which), gate.hint.format(which=which), gate.id), gate.passing)
    refusals = lock_refusals(LockView(seen.cluster, seen.machines), seen.target)
    if refusals:
        return Refused(refusals[0])
    if seen.answers is None:
        return NeedAnswers()
    step = _step(seen)
    return Install(step) if seen.wiped else Go(step)


def _worked(seen: Restoring) -> bool:
    """The record says that a restore was begun on this machine, and it is a member that answers."""
    answer = seen.answer(seen.target.name)
    begun = seen.cluster is not None and text_at(seen.cluster.status, "operation", "name") == operation_name(seen.target.name)
    return begun and isinstance(answer, Present) and is_member(answer.value.etcd)


def _step(seen: Restoring) -> RestoreEtcd:
    found = seen.snapshot.value if isinstance(seen.snapshot, Present) else Snapshot("", 0, "")
    lost = f"; given up are {', '.join(seen.lost)}" if seen.lost else ""
    why = f"etcd becomes what {found.name} holds: what Kubernetes was told since is gone, and what pods have on disks stays{lost}"
    return RestoreEtcd(target=seen.target, why=why, sha256=found.sha256, lost=seen.lost, snapshot=found.name,
                       waits_for=(Wait(_UP, target=seen.target.name),) if seen.wiped else ())


def restore_warnings(seen: Restoring) -> tuple[Warn, ...]:
    """What a person reads before agreeing."""
    found = [Warn(seen.target, f"{name} is given up: where it comes back with its data it is another etcd of the same cluster. "
                  "Wipe it before it is switched on.", "17/restore-lost") for name in seen.lost]
    if seen.unverified:
        found.append(Warn(seen.target, "The hash of the snapshot is not checked, since skip_hash_check says so.", "17/restore-unverified"))
    return tuple(found)


def with_restoring(status: Status, machine: str, by: str, now: float) -> Status:
    """Written before anything is sent: until it is cleared nothing else is done to the cluster."""
    return {**status, "operation": {"name": operation_name(machine), "by": by, "since": moment(now)}}


def with_restored(status: Status, now: float) -> Status:
    """Written after it: the cluster's etcd begins here."""
    kept = {key: value for key, value in status.items() if key not in ("operation", "bootstrapping")}
    return {**kept, "bootstrappedAt": moment(now)}


def without_restoring(status: Status, machine: str) -> Status:
    """Withdrawn: nothing was begun."""
    found = status.get("operation")
    if not isinstance(found, dict) or found.get("name") != operation_name(machine):
        return status
    return {key: value for key, value in status.items() if key != "operation"}
