# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bootstrapping a new cluster's etcd, once (design section 9, "Bootstrap"): every gate a row, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Union

from .._model.approval import status_missing, was_sent
from .._model.machine import identity_of
from .._model.moments import moment
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Refusal, Step, Target, Wait
from .._model.records import CLUSTER, Record, condition_of, text_at
from .approved import approved_control_planes, etcd_lost, has_converged, is_approved, is_bootstrapped, is_control_plane
from .conditions import Status
from .following import OTHER_CLUSTER, Answer, is_member
from .lock import LockView, disruption_of, held_by_other, lock_refusals
from .same_machine import difference


@dataclass(frozen=True)
class Bootstrapping:
    """One observation. `machines` are all of the cluster. `answers` are the authenticated reads of the approved and sent
    control planes by name, None before they were made (the decision asks for them by `NeedAnswers`). `would_be_sent` names the
    machines to which only this check run would have sent a configuration: they are not up yet, and there is nothing to ask them.
    """

    target: Target
    cluster: Record | None
    machine: Record | None
    machines: tuple[Record, ...] = ()
    answers: tuple[tuple[str, Observed[Answer]], ...] | None = None
    would_be_sent: frozenset[str] = frozenset()

    def answer(self, name: str) -> Observed[Answer]:
        found = dict(self.answers or ()).get(name)
        return found if found is not None else Unknown("ControlPlaneUnreachable", "it was not asked")


@dataclass(frozen=True)
class Bootstrap(Step):
    """Start etcd's data on one control plane. It cannot be taken back."""

    action: ClassVar[str] = "Bootstrap"
    reversible: ClassVar[bool] = False

    machine_uuid: str = ""


@dataclass(frozen=True)
class NeedAnswers:
    """Read the approved and sent control planes now."""


@dataclass(frozen=True)
class Done:
    """The cluster is bootstrapped. `note`: a bootstrap whose answer was lost has worked, and is written down now."""

    message: str
    note: bool = False


@dataclass(frozen=True)
class Refused:
    """No bootstrap. `passing`: the same may go in a while by itself. `later`: the step that it then is, where every control plane
    answers and only has to come up; a run waits for that, so a plan shows it."""

    refusal: Refusal
    passing: bool = False
    later: Bootstrap | None = None


@dataclass(frozen=True)
class Go:
    """The gates are passed."""

    step: Bootstrap


Verdict = Union[NeedAnswers, Done, Refused, Go]

_UP = "the control plane to be up and to wait for its etcd"


def sent_control_planes(seen: Bootstrapping) -> tuple[Record, ...]:
    """Every control plane that has to be asked: approved, and sent a configuration."""
    return tuple(machine for machine in approved_control_planes(seen.machines) if was_sent(machine) and machine.name not in seen.would_be_sent)


@dataclass(frozen=True)
class Gate:
    """One row. `which` names what the words speak of ('' when the row does not hold); `asked` rows look at the answers.
    `before_the_step`: once it has passed the bootstrap follows, rather than being found done."""

    id: str
    which: Callable[[Bootstrapping], str]
    reason: str
    message: str
    hint: str
    asked: bool = False
    passing: bool = False
    before_the_step: bool = True


def _names(seen: Bootstrapping, wanted: Callable[[Record], bool]) -> str:
    return ", ".join(machine.name for machine in seen.machines if wanted(machine))


def _adopted(machine: Record) -> bool:
    ready = condition_of(machine, "Ready")
    return has_converged(machine) or (ready is not None and ready.reason == "AdoptionHeld")


def _own(seen: Bootstrapping, wrong: Callable[[Record], bool]) -> str:
    return seen.target.name if seen.machine is None or wrong(seen.machine) else ""


def _begun_on(seen: Bootstrapping) -> str:
    return text_at(seen.cluster.status, "bootstrapping", "machine") if seen.cluster is not None else ""


def _is_begun(seen: Bootstrapping) -> bool:
    return _begun_on(seen) == seen.target.name


def _under_way(seen: Bootstrapping) -> str:
    begun = _is_begun(seen) and seen.machine is not None and _started(seen.machine, seen.answer(seen.target.name))
    return seen.target.name if begun else ""


def _asked(seen: Bootstrapping, wrong: Callable[[Record, Observed[Answer]], bool]) -> str:
    return ", ".join(machine.name for machine in sent_control_planes(seen) if wrong(machine, seen.answer(machine.name)))


def _silences(seen: Bootstrapping) -> list[str]:
    """Who does not answer, with why."""
    found = ((machine.name, seen.answer(machine.name)) for machine in sent_control_planes(seen))
    return [f"{name} does not ({answer.message or answer.reason})." if isinstance(answer, Unknown) else f"{name} does not."
            for name, answer in found if not isinstance(answer, Present)]


def _unread(seen: Bootstrapping, reason: str) -> str:
    """What the first answer says that failed for this reason, which is one of credentials."""
    found = (answer.message or answer.reason for dummy, answer in seen.answers or () if isinstance(answer, Unknown) and answer.reason == reason)
    return next(found, "")


def _etcd_state(answer: Observed[Answer]) -> str:
    """The state of etcd's service, '' where it was not seen."""
    if not isinstance(answer, Present):
        return ""
    return next((service.state for service in answer.value.services if service.id == "etcd"), "")


def _other_node(machine: Record, answer: Observed[Answer]) -> bool:
    return isinstance(answer, Present) and bool(difference(identity_of(machine), answer.value.identity))


def _started(machine: Record, answer: Observed[Answer]) -> bool:
    """An etcd that runs or ran: the cluster has a member, whatever the records say."""
    return isinstance(answer, Present) and (answer.value.stage.stage == "running" or _etcd_state(answer) in ("Running", "Failed", "Stopping"))


GATES: tuple[Gate, ...] = (
    Gate("9/bootstrap-in-progress", lambda seen: other if (other := _begun_on(seen)) != seen.target.name else "", "BootstrapInProgress",
         "A bootstrap was begun on {which}, and only that machine may be bootstrapped.", "Name {which}."),
    Gate("9/bootstrap-not-approved", lambda seen: _own(seen, lambda machine: not is_approved(machine)), "NotApproved",
         "{which} is not approved.", "Approve it with talos_machine_approval."),
    Gate("9/bootstrap-not-control-plane", lambda seen: _own(seen, lambda machine: not is_control_plane(machine)), "NotControlPlane",
         "{which} is not a control plane.", "Name a control plane of the cluster."),
    Gate("9/bootstrap-status-missing", lambda seen: ", ".join(machine.name for machine in approved_control_planes(seen.machines) if status_missing(machine)),
         "StatusMissing", "The status of {which} is gone, so it is not known what its etcd holds.",
         "Bring the state folder back, or say that it is safe with talos_machine, trust: true."),
    Gate("9/bootstrap-had-members", lambda seen: _names(seen, _adopted), "AlreadyBootstrapped",
         "{which} had joined this cluster, so its etcd has existed.", "Restore etcd from a backup; a bootstrap would begin an empty cluster."),
    Gate("9/bootstrap-not-sent", lambda seen: _own(seen, lambda machine: not was_sent(machine)), "BootstrapNotAvailable",
         "{which} was never sent a configuration.", "Send it with talos_maintenance_apply first."),
    Gate("9/bootstrap-operation", lambda seen: "x" if seen.cluster is not None and seen.cluster.status.get("operation") else "", "OperationInProgress",
         "Something is being done to the whole cluster (status.operation).", "Wait for it, or clear it by name when it is no longer going on."),
    Gate("9/bootstrap-disruption", lambda seen: found.machine if held_by_other(found := disruption_of(seen.cluster), seen.target.name) and found else "",
         "OperationInProgress", "A disruptive step on {which} has not shown its end.", "Follow {which} with talos_stage, or clear the disruption by name."),
    Gate("9/bootstrap-no-credentials", lambda seen: _unread(seen, "SecretsUnavailable"), "SecretsUnavailable",
         "The control planes can only be read with authentication, and there are no credentials for them. {which}",
         "Then run this again.", asked=True),
    Gate("9/bootstrap-other-authority", lambda seen: _unread(seen, "UnknownAuthority"), "UnknownAuthority",
         "A control plane answers and is not read with these credentials: {which}", OTHER_CLUSTER, asked=True, passing=True),
    Gate("9/bootstrap-unreachable", lambda seen: "; ".join(_silences(seen)), "ControlPlaneUnreachable",
         "Every control plane that was sent a configuration has to answer with authentication: {which}",
         "Wait until it is up (talos_stage); or delete its record (talos_machine, state: absent) and approve another control plane in its place.",
         asked=True, passing=True),
    Gate("9/bootstrap-other-node", lambda seen: _asked(seen, _other_node), "EndpointIdentityMismatch",
         "Another machine answers at the address of {which}.", "Edit spec.endpoint.", asked=True),
    Gate("9/bootstrap-under-way", _under_way, "BootstrapInProgress",
         "An earlier bootstrap of {which} has started its etcd, which is no member with a leader yet.", "Wait until it is (talos_stage).",
         asked=True, passing=True, before_the_step=False),
    Gate("9/bootstrap-has-member", lambda seen: _asked(seen, _started), "AlreadyBootstrapped",
         "The etcd of {which} runs, or has data, so the cluster is bootstrapped already.",
         "Find out what bootstrapped it (talosctl etcd members). A cluster that runs is adopted instead (talos_adopt).", asked=True),
    Gate("9/bootstrap-installing", lambda seen: _asked(seen, lambda machine, answer: isinstance(answer, Present)
         and answer.value.stage.unattended_install not in ("", "installed")), "BootstrapNotAvailable",
         "{which} has not finished its install.", "Wait until it is up (talos_stage).", asked=True, passing=True),
    Gate("9/bootstrap-not-booting", lambda seen: _asked(seen, lambda machine, answer: isinstance(answer, Present) and answer.value.stage.stage != "booting"),
         "BootstrapNotAvailable", "{which} is not in the stage booting.", "Wait until it is up (talos_stage).", asked=True, passing=True),
    Gate("9/bootstrap-etcd-unseen", lambda seen: _asked(seen, lambda machine, answer: _etcd_state(answer) not in ("Preparing", "Waiting", "Initialized")),
         "BootstrapNotAvailable", "It cannot be told that {which} has no etcd member.", "Wait until its etcd service waits for the bootstrap (talos_stage).",
         asked=True, passing=True),
)


ETCD_LOST_HINT = ("Restore it on one control plane from a backup: ichor.talos.etcd_restore. Without a backup, talosctl bootstrap begins an empty etcd, "
                  "and all that Kubernetes knew is gone.")


def decide_bootstrap(seen: Bootstrapping, gates: tuple[Gate, ...] = GATES) -> Verdict:
    """What the observation calls for. A bootstrapped cluster is done before anything else is looked at, but for the role of
    the machine that was named. Where a bootstrap of this machine was begun, its etcd is looked at before the records are:
    a machine that was followed in between has joined through that very bootstrap."""
    if is_bootstrapped(seen.cluster) and seen.machine is not None and is_control_plane(seen.machine):
        if etcd_lost(seen.cluster, seen.machines):
            return Refused(Refusal(seen.target, "AlreadyBootstrapped", f"The etcd of cluster {seen.target.cluster} is lost with its last control plane, "
                                   "and it is not begun empty by itself.", ETCD_LOST_HINT, "9/bootstrapped-and-lost"))
        since = text_at(seen.cluster.status, "bootstrappedAt") if seen.cluster is not None else ""
        return Done(f"Cluster {seen.target.cluster} is bootstrapped already, at {since}.")
    if is_bootstrapped(seen.cluster):
        return Refused(Refusal(seen.target, "NotControlPlane", f"{seen.target.name} is not a control plane.", "Name a control plane of the cluster.",
                               "9/bootstrapped-not-control-plane"))
    refusals = lock_refusals(LockView(seen.cluster, seen.machines), seen.target)
    if refusals:
        return Refused(refusals[0])
    if _is_begun(seen) and seen.answers is None:
        return NeedAnswers()
    if _is_begun(seen) and _is_running_member(seen.answer(seen.target.name)):
        return Done("An earlier bootstrap of this machine, whose answer was lost, has worked.", note=True)
    for gate in gates:
        if gate.asked and seen.answers is None:
            return NeedAnswers()
        which = gate.which(seen)
        if which:
            refusal = Refusal(seen.target, gate.reason, gate.message.format(which=which), gate.hint.format(which=which), gate.id)
            comes = gate.passing and gate.before_the_step and not _silences(seen)
            later = _step(seen, Wait(_UP, target=which), *_would_be_up(seen)) if comes else None
            return Refused(refusal, gate.passing, later)
    if seen.answers is None:
        return NeedAnswers()
    return Go(_step(seen, *_would_be_up(seen)))


def _is_running_member(answer: Observed[Answer]) -> bool:
    return isinstance(answer, Present) and is_member(answer.value.etcd)


def _would_be_up(seen: Bootstrapping) -> tuple[Wait, ...]:
    return tuple(Wait(_UP, target=name) for name in sorted(seen.would_be_sent))


def _step(seen: Bootstrapping, *waits: Wait) -> Bootstrap:
    why = "no machine of the cluster ever had etcd"
    return Bootstrap(target=seen.target, why=why if waits else f"{why}, and every control plane that was sent a configuration waits for it",
                     machine_uuid=seen.target.uuid, waits_for=waits)


def with_bootstrapping(status: Status, machine: str, now: float) -> Status:
    """Written before the call: from now on only this machine may be bootstrapped."""
    return {**status, "bootstrapping": {"machine": machine, "time": moment(now)}}


def with_bootstrapped(status: Status, now: float) -> Status:
    """Written after it: never again."""
    kept = {key: value for key, value in status.items() if key != "bootstrapping"}
    return {**kept, "bootstrappedAt": status.get("bootstrappedAt") or moment(now)}


def without_bootstrapping(status: Status, machine: str) -> Status:
    """Withdrawn: the node said that it did not do it."""
    found = status.get("bootstrapping")
    if not isinstance(found, dict) or found.get("machine") != machine:
        return status
    return {key: value for key, value in status.items() if key != "bootstrapping"}


def cluster_target(cluster: str, uid: str, machine: Record | None) -> Target:
    """What the bootstrap names: the machine, in its cluster."""
    if machine is None:
        return Target(kind=CLUSTER, name=cluster, cluster=cluster, cluster_id=uid)
    return Target(name=machine.name, cluster=cluster, cluster_id=uid, uid=machine.uid, uuid=text_at(machine.spec, "identity", "uuid").lower(),
                  address=text_at(machine.spec, "endpoint"))
