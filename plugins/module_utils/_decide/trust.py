# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Accepting another certificate for a machine, because a person says so (design sections 4, 5, 9 and 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from .._model.approval import approval_state, status_missing
from .._model.hardware import meaningful
from .._model.machine import known_endpoints
from .._model.moments import moment
from .._model.observations import NodeFacts
from .._model.observed import Present, Unknown
from .._model.plan import Plan, Refusal, Target, Wait
from .._model.records import TRUST_FINGERPRINT, Event, Json, Record, condition_of, dig, text_at
from .discovery import SECOND_READING
from .hardware_status import hardware_values, pin_values
from .machine_edit_words import Edit, Edited, EditSeen, TrustMachine
from .no_answer import sending_of
from .same_machine import difference, recorded_identity
from .status_change import StatusChange
from .weak_identity import is_weak


@dataclass(frozen=True)
class _Trust:
    """One machine whose certificate a person accepts."""

    edit: Edit
    seen: EditSeen
    machine: Record
    target: Target
    now: float

    @cached_property
    def node(self) -> NodeFacts | None:
        return self.seen.node.value if isinstance(self.seen.node, Present) else None

    @cached_property
    def weak(self) -> bool:
        return is_weak(self.machine, self.seen.machines, self.node.identity if self.node is not None else None)

    @cached_property
    def lost(self) -> bool:
        """The status was lost, so that nobody knows whether a configuration was sent."""
        return status_missing(self.machine) or self.machine.status_set_aside

    @property
    def stored(self) -> bool:
        return bool(text_at(self.machine.status, "configStoredAt") or dig(self.machine.status, "sending"))

    @property
    def converged(self) -> bool:
        return bool(text_at(self.machine.status, "appliedConfigHash"))

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def _rejected(case: _Trust) -> Refusal | None:
    if approval_state(case.machine) != "rejected":
        return None
    return case.refuse("5/trust-rejected", "NotApproved", f"Machine {case.machine.name} is rejected.", "Approve it with talos_machine_approval.")


def _sending(case: _Trust) -> Refusal | None:
    sending = sending_of(case.machine.status)
    if sending is None or not sending.fresh(case.now, case.edit.sending_fresh):
        return None
    return case.refuse("9/sending-fresh", "SendingUnconfirmed",
                       f"A configuration is on its way to machine {case.machine.name}, sent by {sending.by or 'another run'}.",
                       f"Run again in {case.edit.sending_fresh:g} s.")


def _identity(case: _Trust) -> Refusal | None:
    if case.node is None:
        return None
    told = difference(meaningful(recorded_identity(case.machine.spec)), meaningful(case.node.identity))
    if not told:
        return None
    return case.refuse("5/trust-identity", "IdentityMismatch", f"Another machine answers at {case.node.endpoint}: {told}.", "Correct spec.endpoint.")


def _named_other(case: _Trust) -> Refusal | None:
    if case.node is None or not case.edit.fingerprint or case.node.certificate.matches(case.edit.fingerprint):
        return None
    return case.refuse("5/trust-fingerprint", "FingerprintMismatch", (
        f"The node at {case.node.endpoint} shows {case.node.certificate.fingerprint}, valid from {moment(case.node.certificate.not_before)}, "
        f"and not {case.edit.fingerprint}."),
        f"Compare it with the machine's console; when it is the one there, run with fingerprint: {case.node.certificate.fingerprint}")


def _elsewhere(case: _Trust) -> Refusal | None:
    known = known_endpoints(case.machine)
    if case.node is None or case.edit.fingerprint or len(known) < 2:
        return None
    return case.refuse("5/trust-elsewhere", "FingerprintMismatch", (
        f"Machine {case.machine.name} answers at {case.node.endpoint} and not at its spec.endpoint {known[1]}, so its fingerprint has to be named."),
        f"Compare it with the node's console and run with fingerprint: {case.node.certificate.fingerprint}")


def _weak(case: _Trust) -> Refusal | None:
    if case.node is None or case.edit.fingerprint or not case.weak:
        return None
    return case.refuse("5/trust-weak", "WeakIdentity", f"The identity of machine {case.machine.name} is weak, so its fingerprint has to be named.",
                       f"Compare it with the node's console and run with fingerprint: {case.node.certificate.fingerprint}")


def _converged(case: _Trust) -> Refusal | None:
    if not case.converged or case.edit.fingerprint:
        return None
    return case.refuse("12/trust-converged", "TrustNotNeeded",
                       f"Machine {case.machine.name} has converged; when it is wiped, its identity counts and not the first certificate.",
                       "Name a fingerprint to insist on that certificate.")


def _configured(case: _Trust) -> Refusal | None:
    silent = case.seen.node
    if not isinstance(silent, Unknown) or silent.reason != "ClientCertificateRequired" or case.lost or case.edit.fingerprint:
        return None
    return case.refuse("5/trust-configured", "TrustNotNeeded",
                       f"Machine {case.machine.name} runs a configuration; a pin only counts in maintenance mode.", "Follow it with talos_stage.")


def _silent(case: _Trust) -> Refusal | None:
    silent = case.seen.node
    if not isinstance(silent, Unknown) or case.edit.fingerprint or silent.reason == "ClientCertificateRequired":
        return None
    reason = "EndpointRefused" if silent.reason == "EndpointRefused" else "NodeUnreachable"
    return case.refuse("5/trust-silent", reason, f"Machine {case.machine.name} does not answer ({silent.message or silent.reason}), so its "
                                                 "certificate cannot be read.",
                       "Switch it on, or name the fingerprint that its console shows.")


#: One row a refusal, in order; the first counts.
GATES = (
    ("5/trust-rejected", _rejected),
    ("9/sending-fresh", _sending),
    ("12/trust-converged", _converged),
    ("5/trust-configured", _configured),
    ("5/trust-silent", _silent),
    ("5/trust-identity", _identity),
    ("5/trust-fingerprint", _named_other),
    ("5/trust-elsewhere", _elsewhere),
    ("5/trust-weak", _weak),
)


def decide_trust(edit: Edit, seen: EditSeen, machine: Record, target: Target, now: float) -> Edited:
    """The plan that accepts a certificate for one machine; without a step where it is accepted already."""
    case = _Trust(edit, seen, machine, target, now)
    refusal = next((found for dummy, gate in GATES if (found := gate(case)) is not None), None)
    if refusal is not None:
        return Edited(Plan(refusals=(refusal,)), machine, unreachable=refusal.reason == "NodeUnreachable")
    fingerprint = case.node.certificate.fingerprint if case.node is not None else edit.fingerprint
    if approval_state(machine) == "pending" or case.converged or case.node is None and not case.lost:
        return _annotate(case, fingerprint)
    return _accept(case, fingerprint)


def _annotate(case: _Trust, fingerprint: str) -> Edited:
    """The annotation: this certificate is accepted when it comes (section 3)."""
    if case.machine.annotations.get(TRUST_FINGERPRINT) == fingerprint:
        return Edited(Plan(), case.machine)
    annotations = {**case.machine.annotations, TRUST_FINGERPRINT: fingerprint}
    step = TrustMachine(case.target, f"a person has verified the certificate {fingerprint}", fingerprint=fingerprint, annotate=True,
                        spec=case.machine.spec, annotations=annotations, override=case.edit.override, waits_for=_waits(case))
    return Edited(Plan((step,)), _with(case.machine, case.machine.spec, annotations))


def _accept(case: _Trust, fingerprint: str) -> Edited:
    """A new pin, and where a configuration was stored or the status lost, leave to send once more."""
    machine = case.machine
    pinned = text_at(machine.spec, "acceptedFingerprint") or text_at(machine.status, "maintenanceFingerprint")
    rearm = case.stored or case.lost
    if not rearm and (case.node is not None and case.node.certificate.matches(pinned)):
        return Edited(Plan(), machine)
    values: dict[str, Json] = {}
    if case.node is not None:
        values = {**pin_values(case.node.certificate, case.now), **hardware_values(case.node), "stage": "maintenance", "stageObserved": True}
    elif case.lost:
        values = {"stage": "unknown", "stageObserved": False}
    if case.lost:
        values["recordUID"] = machine.uid  # the store takes a status for a machine that lost its own only with this word
    if case.stored:
        values.update({"configStoredAt": None, "storedConfigHash": None, "sending": None, "rejectedInputsHash": None})
    events: tuple[Event, ...] = ()
    if case.node is not None and fingerprint != pinned:
        events = (Event(machine.ref, "Normal", "MaintenanceIdentityRefreshed",
                        f"The certificate of {machine.name} changed from {pinned or 'none'} to {fingerprint}; a person accepted it.", moment(case.now)),)
    spec: Mapping[str, Json] = {**machine.spec, "acceptedFingerprint": fingerprint} if fingerprint else machine.spec
    held = condition_of(machine, "Provisioned")
    over = rearm or held is not None and held.reason == "MaintenanceIdentityChanged"
    change = StatusChange(machine.ref, machine.uid, values, without=("Provisioned", "Ready") if over else (), events=events)
    told = f"a person accepts the certificate {fingerprint or '(none)'} in place of {pinned or 'none'}"
    if case.stored:
        told += "; one more send over the insecure API is allowed"
    elif case.lost:
        told += "; its status was lost, and it may be provisioned again"
    step = TrustMachine(case.target, told, fingerprint=fingerprint, rearm=rearm, spec=spec, annotations=machine.annotations, change=change,
                        override=case.edit.override, waits_for=_waits(case))
    return Edited(Plan((step,)), _with(machine, spec, machine.annotations))


def _with(machine: Record, spec: Mapping[str, Json], annotations: Mapping[str, str]) -> Record:
    return replace(machine, spec=spec, annotations=annotations)


def _waits(case: _Trust) -> tuple[Wait, ...]:
    return (Wait(SECOND_READING, case.edit.settle, case.machine.name),) if case.node is not None else ()
