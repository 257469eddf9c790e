# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When an approval or a rejection is refused (design section 7). One row a rule, so that a test can take each away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from .._model.approval import approval_state, status_lost, tracked_by, was_sent
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.hardware import meaningful
from .._model.machine import cluster_of, dial_endpoint, known_endpoints
from .._model.moments import moment
from .._model.observed import Present
from .._model.plan import Refusal, Target
from .._model.records import condition_of, dig, text_at
from .approval_case import Case
from .approval_words import Candidate, Wanted
from .names import missing_record
from .record_twin import TWIN_HINT, answers_to, told_of, twin_of
from .same_machine import difference
from .weak_identity import unique_parts

Row = tuple[str, Callable[[Case], Optional[Refusal]]]


def _refuse(case: Case, rule: str, reason: str, message: str, hint: str) -> Refusal:
    return Refusal(case.target, reason, message, hint, rule)


def not_a_record(wanted: Wanted, seen: Candidate) -> Refusal | None:
    """Names are exact; a record that cannot be read is not guessed at."""
    target = Target(name=wanted.name)
    if any(letter in wanted.name for letter in "*?[]") or not wanted.name:
        return Refusal(target, "InvalidInput", f"{wanted.name!r} is a pattern; an approval takes exact names.",
                       "Name each machine; talos_machine_info lists them.", "7/exact-names")
    missing = missing_record(wanted.name, seen.machine, seen.broken, seen.machines)
    if missing is not None or seen.machine is None:
        return missing
    if wanted.cluster and cluster_of(seen.machine) != wanted.cluster:
        return Refusal(target, "RecordNotFound", f"Machine {wanted.name} belongs to cluster {cluster_of(seen.machine) or '(none)'}, not to {wanted.cluster}.",
                       "Check the name and the cluster.", "7/other-cluster")
    return None


def _schedule(case: Case) -> Refusal | None:
    if not case.seen.actor.schedule:
        return None
    return _refuse(case, "7/schedule", "ScheduleCannotApprove", "A schedule started this run, and only a person approves or rejects a machine.",
                   "Launch the job yourself, or put an approval node before it.")


def _nobody(case: Case) -> Refusal | None:
    if case.seen.actor.by:
        return None
    return _refuse(case, "7/approver-unknown", "ApproverUnknown", "Nobody can be named who approves.", "Run it as a user with a login name.")


def _tracked(case: Case) -> Refusal | None:
    tool = tracked_by(case.machine)
    if not tool or case.wanted.override:
        return None
    return _refuse(case, "3/gitops", "RecordTracked", f"{tool} keeps machine {case.machine.name} in step with git and would undo the change.",
                   "Change it in git, or run with override: true.")


def _status_missing(case: Case) -> Refusal | None:
    if not status_lost(case.machine):
        return None
    return _refuse(case, "4/status-missing", "StatusMissing", (
        f"Machine {case.machine.name} is approved and its status was lost, so nobody knows whether a configuration was sent."),
        "Trust it again with talos_machine and trust: true.")


def _reject_sent(case: Case) -> Refusal | None:
    if approval_state(case.machine) != "approved" or not was_sent(case.machine):
        return None
    return _refuse(case, "7/reject-after-send", "AlreadySent", f"Machine {case.machine.name} was sent a configuration, so its approval stays.",
                   "Remove the machine instead.")


COMMON: tuple[Row, ...] = (
    ("7/schedule", _schedule),
    ("7/approver-unknown", _nobody),
    ("3/gitops", _tracked),
    ("4/status-missing", _status_missing),
)

REJECTION: tuple[Row, ...] = (("7/reject-after-send", _reject_sent),)


def _role_after_send(case: Case) -> Refusal | None:
    if not was_sent(case.machine) or not case.wanted.role or case.wanted.role == text_at(case.machine.spec, "role"):
        return None
    return _refuse(case, "7/role-immutable", "RoleImmutable", f"Machine {case.machine.name} was sent a configuration as {text_at(case.machine.spec, 'role')}.",
                   "Remove it and approve it again with the other role.")


def _settings_after_send(case: Case) -> Refusal | None:
    if not was_sent(case.machine):
        return None
    changed = sorted(key for key, value in case.settings.items() if case.machine.spec.get(key) != value and key != "role")
    if case.wanted.fingerprint and text_at(case.machine.spec, "acceptedFingerprint") not in ("", case.wanted.fingerprint):
        changed.append("fingerprint")
    if not changed:
        return None
    return _refuse(case, "7/approve-after-send", "AlreadySent", (
        f"Machine {case.machine.name} was approved and sent a configuration; an approval no longer changes {', '.join(changed)}."),
        "Edit the record with talos_machine.")


def _cluster(case: Case) -> Refusal | None:
    if case.seen.cluster is not None:
        return None
    return _refuse(case, "7/cluster-missing", "RecordNotFound", f"Machine {case.machine.name} belongs to cluster {case.target.cluster or '(none)'}, "
                                                                "which is not in the store.",
                   "Create it with talos_cluster.")


def _no_role(case: Case) -> Refusal | None:
    if case.role:
        return None
    return _refuse(case, "7/role-missing", "InvalidInput", f"Nothing says what machine {case.machine.name} is to be.",
                   "Give role: controlplane or role: worker.")


def _control_planes(case: Case) -> Refusal | None:
    if case.role != "controlplane" or case.seen.cluster is None:
        return None
    count = dig(case.seen.cluster.spec, "controlPlane", "count")
    wanted = count if isinstance(count, int) and not isinstance(count, bool) else 1
    there = sorted(machine.name for machine in case.siblings if approval_state(machine) == "approved" and text_at(machine.spec, "role") == "controlplane")
    if len(there) + 1 <= wanted + 1:
        return None
    return _refuse(case, "7/control-plane-cap", "TooManyControlPlanes", (
        f"Cluster {case.target.cluster} is to have {wanted} control planes, and {len(there)} are approved already ({', '.join(there)}): one more than "
        "the count is the limit."),
        "Raise controlPlane.count, or remove one first.")


def _twin(case: Case) -> Refusal | None:
    condition = condition_of(case.machine, "WeakIdentity")
    told = condition.message if condition is not None and condition.reason == "TwinIdentity" and condition.status == "True" else ""
    if isinstance(case.seen.home, Present) and case.node is not None:
        home = case.seen.home.value
        if meaningful(home.identity) == meaningful(case.node.identity) and home.certificate.fingerprint != case.node.certificate.fingerprint:
            told = (
                f"Two nodes say that they are one machine, with different certificates: {home.endpoint} with {home.certificate.fingerprint}; "
                f"{case.node.endpoint} with {case.node.certificate.fingerprint}."
            )
    if not told:
        return None
    return _refuse(case, "6/twin", "TwinIdentity", told, "Switch the wrong one off and run a discovery of the whole cluster.")


def _other_record(case: Case) -> Refusal | None:
    other = twin_of(case.machine, case.others)
    if other is None and case.node is not None:
        other = answers_to(case.node.identity, case.machine, case.others)
    if other is None:
        return None
    return _refuse(case, "6/record-twin", "TwinIdentity", told_of(other), TWIN_HINT)


def _weak_unresolved(case: Case) -> Refusal | None:
    if not case.weak or unique_parts(case.recorded, case.others):
        return None
    return _refuse(case, "7/weak-unresolved", "WeakIdentityUnresolved", (
        f"The identity of machine {case.machine.name} is weak ({case.weak[0].message}), and nothing in its spec.identity is real and unique in the store."),
        "Set spec.identity with talos_machine: a UUID, a serial or MACs that no other machine has.")


def _weak_not_accepted(case: Case) -> Refusal | None:
    if not case.weak or case.wanted.accept_weak_identity or not unique_parts(case.recorded, case.others):
        return None
    return _refuse(case, "7/weak-not-accepted", "WeakIdentity", f"The identity of machine {case.machine.name} is weak: {case.weak[0].message}.",
                   "Look at the machine, and approve it with accept_weak_identity: true.")


def _endpoint(case: Case) -> Refusal | None:
    try:
        host = dial_endpoint(case.machine).host
        dial_rules(case.seen.cluster.spec if case.seen.cluster else None, case.wanted.allow_loopback).check(host)
    except TalosError as error:
        return _refuse(case, "3/endpoint-refused", "EndpointRefused", error.message, error.hint)
    silent = case.silent
    if silent is not None and silent.reason == "EndpointRefused":
        return _refuse(case, "3/endpoint-refused", "EndpointRefused", silent.message, "Give an address of the node itself in spec.endpoint.")
    return None


def _identity(case: Case) -> Refusal | None:
    if case.node is None or not case.comparable:
        return None
    told = difference(meaningful(case.recorded), meaningful(case.node.identity))
    if not told:
        return None
    return _refuse(case, "7/identity-differs", "IdentityMismatch", f"Another machine answers at {case.node.endpoint}: {told}.",
                   "Correct spec.endpoint, or discover the machine again.")


def _fingerprint(case: Case) -> Refusal | None:
    named = case.wanted.fingerprint
    if not named:
        return None
    if case.node is not None:
        shown = case.node.certificate
        if shown.matches(named):
            return None
        return _refuse(case, "7/fingerprint", "FingerprintMismatch", (
            f"The node at {case.node.endpoint} shows {shown.fingerprint} (valid from {moment(shown.not_before)}), not the fingerprint {named} that was named; "
            f"recorded is {case.pin or 'none'}{_read_at(case)}. The identity is {'equal' if _identity(case) is None else 'another'}. "
            "Talos issues a new certificate every 12 hours by itself."),
            f"Compare it with the machine's console; when it is the one there, approve with fingerprint: {shown.fingerprint}")
    if case.pin and case.pin != named:
        return _refuse(case, "7/fingerprint", "FingerprintMismatch", f"The node is silent, and recorded is {case.pin}{_read_at(case)}, not the "
                                                                     f"fingerprint {named} that was named.",
                       "Wait until it answers, or approve without a fingerprint.")
    return None


def _read_at(case: Case) -> str:
    at = text_at(case.machine.status, "maintenanceFingerprintAt")
    return f", read at {at}" if at else ""


def _hostname(case: Case) -> Refusal | None:
    hostname = text_at(case.spec, "hostname").lower()
    if not hostname:
        return None
    for other in case.siblings:
        names = {text_at(other.spec, "hostname").lower(), text_at(other.status, "nodeName").lower()}
        if text_at(other.spec, "role") == "controlplane" and approval_state(other) != "rejected" and hostname in names:
            return _refuse(case, "7/hostname-taken", "HostnameTaken", f"Control plane {other.name} of cluster {case.target.cluster} has the host name "
                                                                      f"{hostname} already.",
                           "Choose another host name: Talos evicts the etcd member of the same name.")
    return None


#: The rows that end the question: behind them nothing else can be judged.
FIRST: tuple[Row, ...] = (
    ("7/role-immutable", _role_after_send),
    ("7/approve-after-send", _settings_after_send),
    ("7/cluster-missing", _cluster),
)

APPROVAL: tuple[Row, ...] = (
    ("7/role-missing", _no_role),
    ("7/control-plane-cap", _control_planes),
    ("6/twin", _twin),
    ("6/record-twin", _other_record),
    ("7/weak-unresolved", _weak_unresolved),
    ("7/weak-not-accepted", _weak_not_accepted),
    ("3/endpoint-refused", _endpoint),
    ("7/identity-differs", _identity),
    ("7/fingerprint", _fingerprint),
    ("7/hostname-taken", _hostname),
)


def first_refusal(rows: tuple[Row, ...], case: Case) -> tuple[Refusal, ...]:
    """The first row that refuses, alone."""
    return next(((found,) for dummy, gate in rows if (found := gate(case)) is not None), ())


def all_refusals(rows: tuple[Row, ...], case: Case) -> tuple[Refusal, ...]:
    """Everything that refuses: a person wants to mend it in one go."""
    return tuple(found for dummy, gate in rows if (found := gate(case)) is not None)


def moved_from(case: Case) -> str:
    """The address in the spec, where the machine was seen at another one, else ''."""
    known = known_endpoints(case.machine)
    return str(known[1]) if len(known) > 1 else ""
