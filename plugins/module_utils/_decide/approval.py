# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an approval or a rejection writes (design section 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .._model.approval import approval_state, status_lost
from .._model.hardware import meaningful
from .._model.moments import moment, seconds_of
from .._model.observed import Present
from .._model.plan import Plan, Refusal, Wait, Warn
from .._model.ports import Actor
from .._model.records import Condition, Json, JsonMap, Record, condition_of, list_at, text_at
from .._model.schema import validate
from .approval_case import Case, disk_identity
from .approval_gates import APPROVAL, COMMON, FIRST, REJECTION, all_refusals, first_refusal, moved_from, not_a_record
from .approval_words import ApproveMachine, Candidate, Decision, RejectMachine, Wanted
from .discovery import SECOND_READING
from .disk_gates import DiskCase, disk_refusals, disk_warnings, picked_disk
from .disk_words import identity_words, install_words, with_contents
from .hardware_status import hardware_values, pin_values
from .status_change import StatusChange


def nothing_to_say(wanted: Wanted, machine: Record) -> bool:
    """Whether the record says already what the person wants: then the node need not be asked."""
    if approval_state(machine) != wanted.state:
        return False
    if wanted.state == "rejected":
        return True
    case = Case(wanted, Candidate(machine, Actor("", "")), machine)
    accepted = text_at(machine.spec, "acceptedFingerprint")
    return (all(machine.spec.get(key) == value for key, value in case.settings.items())
            and (not wanted.fingerprint or wanted.fingerprint == accepted))


def decide_approval(wanted: Wanted, seen: Candidate, now: float) -> Decision:
    """The plan of one approval or rejection, with the record as it would be."""
    early = not_a_record(wanted, seen)
    if early is not None or seen.machine is None:
        return Decision(Plan(refusals=(early,) if early is not None else ()))
    case = Case(wanted, seen, seen.machine)
    if nothing_to_say(wanted, seen.machine) and not status_lost(seen.machine):
        return Decision(Plan(), seen.machine, text_at(seen.machine.spec, "acceptedFingerprint"), _left_over(seen.machine))
    return _reject(case, now) if wanted.state == "rejected" else _approve(case, now)


def _left_over(machine: Record) -> StatusChange | None:
    """The status of a machine that is decided upon and still says that it waits for that (law 8)."""
    ready = condition_of(machine, "Ready")
    if ready is None or ready.reason != "PendingApproval":
        return None
    if approval_state(machine) == "rejected":
        return _rejected(machine, text_at(machine.spec, "approvedBy"), machine.generation)
    return StatusChange(machine.ref, machine.uid, without=("Ready",))


def _rejected(machine: Record, by: str, generation: int) -> StatusChange:
    condition = Condition("Ready", "False", "Rejected", f"{by} rejected this machine.", generation)
    return StatusChange(machine.ref, machine.uid, conditions=(condition,))


def _reject(case: Case, now: float) -> Decision:
    refusals = first_refusal(COMMON + REJECTION, case)
    if refusals:
        return Decision(Plan(refusals=refusals), case.machine)
    actor = case.seen.actor
    kept = {key: value for key, value in case.machine.spec.items() if key not in ("acceptedFingerprint", "approvedDisk")}
    spec: dict[str, Json] = {**kept, "approvalState": "rejected", "approvedBy": actor.by, "approvedVia": actor.via, "approvedAt": moment(now)}
    change = _rejected(case.machine, actor.by, case.machine.generation + 1)
    step = RejectMachine(case.target, f"{actor.by} rejects it; nothing is ever sent to a rejected machine", before=case.machine, spec=spec,
                         change=change, override=case.wanted.override)
    return Decision(Plan((step,)), replace(case.machine, spec=spec))


def _approve(case: Case, now: float) -> Decision:
    refusals = first_refusal(COMMON + FIRST, case)
    if refusals:
        return Decision(Plan(refusals=refusals), case.machine)
    disks = DiskCase(case.target, case.picked, case.disks, list_at(case.spec, "disks") if case.wanted.disks is not None else ())
    refusals = all_refusals(APPROVAL, case) + disk_refusals(disks)
    fingerprint = _accepted(case)
    spec = _spec(case, disks, fingerprint, now)
    if not refusals:
        refusals = _schema_refusals(case, spec)
    warnings = (*_said_before(case, spec), *_warnings(case), *disk_warnings(disks))
    if refusals:
        return Decision(Plan(refusals=refusals, warnings=warnings), case.machine, fingerprint)
    approved_disk = spec.get("approvedDisk")
    step = ApproveMachine(
        case.target, _why(case, fingerprint), role=case.role, hostname=text_at(spec, "hostname"), settings=case.settings,
        fingerprint=fingerprint, approved_disk=approved_disk if isinstance(approved_disk, dict) else {}, weak=bool(case.weak),
        before=case.machine, spec=spec, change=_change(case, now), override=case.wanted.override, waits_for=_waits(case, now))
    return Decision(Plan((step,), warnings=warnings), replace(case.machine, spec=spec), fingerprint)


def _accepted(case: Case) -> str:
    """The fingerprint that the approval accepts: the node's own now, else the one named, else the recorded pin."""
    if case.node is not None:
        return case.node.certificate.fingerprint
    return case.pin or case.wanted.fingerprint


def _spec(case: Case, disks: DiskCase, fingerprint: str, now: float) -> dict[str, Json]:
    actor = case.seen.actor
    spec: dict[str, Json] = {**case.spec, "approvalState": "approved", "approvedBy": actor.by, "approvedVia": actor.via, "approvedAt": moment(now)}
    if fingerprint:
        spec["acceptedFingerprint"] = fingerprint
    disk = picked_disk(disks)
    if disk is not None:
        spec["approvedDisk"] = disk_identity(disk)
    return spec


def _schema_refusals(case: Case, spec: dict[str, Json]) -> tuple[Refusal, ...]:
    problems = validate(replace(case.machine, spec=spec), case.machine)
    return tuple(Refusal(case.target, "RecordInvalid", problem.message, "", "3/schema") for problem in problems)


def _change(case: Case, now: float) -> StatusChange:
    """Approving always writes a status, so that a lost one is noticed (section 4)."""
    values: dict[str, Json] = {"stage": "maintenance", "stageObserved": case.node is not None}
    if case.node is not None:
        values.update(pin_values(case.node.certificate, now))
        values.update(hardware_values(case.node))
    return StatusChange(case.machine.ref, case.machine.uid, values, without=("Ready",))


def _waits(case: Case, now: float) -> tuple[Wait, ...]:
    """A pin is taken from a settled node (section 5): the recorded reading counts as the first where it is old enough."""
    if case.node is None:
        return ()
    read = seconds_of(text_at(case.machine.status, "maintenanceFingerprintAt"))
    if case.node.certificate.matches(case.pin) and read is not None and now - read >= case.wanted.settle:
        return ()
    return (Wait(SECOND_READING, case.wanted.settle, case.machine.name),)


def _why(case: Case, fingerprint: str) -> str:
    disk = "with no install disk yet"
    if case.picked is not None and len(case.picked.disks) == 1:
        recorded = "" if case.node is not None else ", as discovery saw it"
        disk = f"to be installed on {with_contents(case.picked.disks[0])}{recorded}"
    hostname = text_at(case.spec, "hostname")
    named = f"host name {hostname}" if hostname else "no host name"
    return (f"{case.seen.actor.by} approves it as {case.role}, {named}, {disk}, "
            f"accepting certificate {fingerprint or 'none (it is silent and none is recorded)'}")


def _said_before(case: Case, after: JsonMap) -> Iterator[Warn]:
    """What an earlier decision said otherwise."""
    spec = case.machine.spec
    by, time = text_at(spec, "approvedBy") or "somebody", text_at(spec, "approvedAt") or "an unknown time"
    if approval_state(case.machine) == "rejected":
        yield Warn(case.target, f"It was rejected by {by} at {time}.", "7/was-rejected")
    if approval_state(case.machine) != "approved":
        return
    told = [f"was approved {what} {old} and is approved {what} {new} now" for what, old, new in (
        ("as", text_at(spec, "role"), case.role),
        ("with the host name", text_at(spec, "hostname"), text_at(after, "hostname")),
        ("for", install_words(spec.get("install")), install_words(after.get("install")))) if old and old != new]
    disk, other = spec.get("approvedDisk"), after.get("approvedDisk")
    if disk and other and disk != other:
        told.append(f"was approved for the disk with {identity_words(disk)} and is approved for the one with {identity_words(other)} now")
    if told:
        yield Warn(case.target, f"It {', '.join(told)} ({by} approved it before, at {time}).", "7/approved-otherwise")


def _warnings(case: Case) -> tuple[Warn, ...]:
    found: list[Warn] = []
    silent = case.silent
    if silent is not None:
        kept = f"the recorded certificate {case.pin} stays" if case.pin else "no certificate is recorded, so provisioning takes the first it sees twice"
        if silent.reason == "ClientCertificateRequired":
            found.append(Warn(case.target, f"The node runs a configuration already, so it cannot be looked at; {kept}. Adopt or reclaim "
                                           "it.", "7/configured-node"))
        else:
            found.append(Warn(case.target, f"The node does not answer ({silent.message or silent.reason}); {kept}.", "7/silent-node"))
    if case.node is not None and case.pin and not case.node.certificate.matches(case.pin) and _equal_identity(case):
        shown = case.node.certificate
        found.append(Warn(case.target, (
            f"The certificate changed, with the identity equal: recorded {case.pin} at "
            f"{text_at(case.machine.status, 'maintenanceFingerprintAt') or 'an unknown time'}, "
            f"now {shown.fingerprint}, valid from {moment(shown.not_before)}. Talos issues a new one every 12 hours by itself."), "7/fingerprint-changed"))
    home = moved_from(case)
    if home and case.node is not None:
        found.append(Warn(case.target, f"It answers at {case.node.endpoint} and not at its spec.endpoint {home}: make sure that it is the machine you mean.",
                          "7/moved-address"))
    if case.picked is None:
        found.append(Warn(case.target, "It has no install disk yet; set install with talos_machine before it can be provisioned, or in its configuration.",
                          "7/no-install"))
    if case.weak and case.wanted.accept_weak_identity:
        found.append(Warn(case.target, f"Its identity is weak: {case.weak[0].message}.", "7/weak-accepted"))
    link = _missing_link(case)
    if link:
        found.append(Warn(case.target, link, "7/link-unknown"))
    return tuple(found)


def _equal_identity(case: Case) -> bool:
    return case.node is not None and meaningful(case.node.identity) == meaningful(case.recorded)


def _missing_link(case: Case) -> str:
    """A primary link that the node does not have, in words, or ''."""
    if case.node is None or not isinstance(case.node.links, Present):
        return ""
    name, mac = text_at(case.spec, "network", "primary", "interface"), text_at(case.spec, "network", "primary", "mac").lower()
    if name and all(link.name != name for link in case.node.links.value):
        return f"The node has no link {name}; it has {', '.join(link.name for link in case.node.links.value) or 'none'}."
    if mac and all(mac not in (link.permanent_mac, link.mac) for link in case.node.links.value):
        return f"The node has no link with the MAC {mac}."
    return ""
