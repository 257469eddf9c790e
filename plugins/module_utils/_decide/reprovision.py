# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A converged machine that fell back to maintenance mode (design section 12): the gates of a join, and those that it has of its own.

Every row of provisioning holds here too, but for the ones named in `_INSTEAD`; a row that provisioning gains holds by itself.
"""

from __future__ import annotations

from dataclasses import replace

from .._model.observations import CONTENTS_UNKNOWN, Disk
from .._model.observed import Absent, Present, Unknown
from .._model.plan import Wait, Warn
from .._model.records import HOLD_APPLY, TRUST_FINGERPRINT, dig
from . import provisioning
from .etcd_words import RemoveEtcdMember
from .hostnames import hostname_conflict
from .install_disk import not_the_approved, picked
from .lock import disruption_of, held_by_other
from .member_gates import MEMBER_GATES
from .no_answer import sending_of
from .pin_changed import pin_changed_message
from .provisioning_row import Gate, config_of, facts_of, refuse, walk
from .provisioning_twins import at_same_address, recorded_twin
from .provisioning_words import ApplyConfig, Provisioning, Remove, Send, Verdict
from .record_twin import TWIN_HINT, is_decided
from .reprovision_members import ETCD_GATES, control_plane, evidence_of, stale
from .reprovision_sayings import STATE_HINT, STATE_THERE, UNCLEAR_HINT, UNCLEAR_LABELS
from .reprovision_words import Reinstall, Resume
from .send_words import send_warnings, send_words
from .stale_member import told
from .weak_identity import is_weak
from .wipe_evidence import DATA_PRESENT, STATE_PRESENT, UNCLEAR, WIPED, WipeReading, agrees, has_meta, labels_of

SECOND_READING = "a second equal reading of the wiped disk"
MEMBER_GONE = "its stale etcd member to be removed"


def decide_again(seen: Provisioning, now: float, gates: tuple[Gate, ...] | None = None) -> Verdict:
    """What the observation of a converged machine in maintenance mode calls for."""
    return walk(GATES if gates is None else gates, seen, now) or _again(seen, now)


def reading_of(seen: Provisioning) -> WipeReading | None:
    """This observation as a reading of a wiped control plane; None where it is anything else."""
    if not isinstance(seen.maintenance, Present) or not isinstance(seen.config, Present) or not control_plane(seen):
        return None
    facts = facts_of(seen)
    return WipeReading(facts.certificate.fingerprint, labels_of(facts.partitions)) if evidence_of(seen) == WIPED else None


# What the rows look at.
def _annotated(seen: Provisioning) -> str:
    return seen.machine.annotations.get(TRUST_FINGERPRINT, "").strip() if seen.machine else ""


def _weak(seen: Provisioning) -> bool:
    others = [other for other in seen.everybody if is_decided(other)]
    return seen.machine is not None and not _annotated(seen) and is_weak(seen.machine, others)


def _pin_changed(seen: Provisioning, now: float) -> Verdict:
    message, hint = pin_changed_message(seen.machine, seen.target, _annotated(seen), facts_of(seen).certificate)
    return refuse(seen, "12/annotation", "MaintenanceIdentityChanged", message, hint)


def _disk_problem(seen: Provisioning) -> str:
    """Why the install disk is not sure, or ''. Another disk than the approved one counts only when it is entirely blank."""
    facts = facts_of(seen)
    disk = picked(config_of(seen), facts.disks)
    if isinstance(disk, Absent):
        return disk.source
    if isinstance(disk, Unknown):
        return disk.message
    other = not_the_approved(disk.value, dig(seen.machine.spec, "approvedDisk")) if seen.machine else ""
    if not other or _blank(disk.value) and not isinstance(facts.partitions, Unknown):
        return ""
    return f"{other}, and it is not blank" if disk.value.contents and disk.value.contents != CONTENTS_UNKNOWN else f"{other}, and it is not known to be fit"


def _blank(disk: Disk) -> bool:
    return not (disk.contents or disk.readonly or disk.cdrom or disk.usb or disk.boot_medium)


def _record_conflict(seen: Provisioning) -> str:
    """A machine with the same host name; what etcd's members say is asked by rows of their own."""
    return hostname_conflict(replace(seen, cluster=None))


def _two_answer(seen: Provisioning) -> str:
    """Two nodes of this identity answer at once, in words, or ''."""
    return seen.maintenance.message if isinstance(seen.maintenance, Unknown) and seen.maintenance.reason == "TwinIdentity" else ""


#: Rows of provisioning that section 12 has otherwise: what stands in their place, nothing where they do not hold.
_INSTEAD: dict[str, tuple[Gate, ...]] = {
    "9/5-record-twin": (Gate(
        "12/record-twin", lambda seen, now: bool(recorded_twin(seen)),
        lambda seen, now: refuse(seen, "12/record-twin", "TwinIdentity", recorded_twin(seen), TWIN_HINT)),),
    "9/5-same-address": (Gate(
        "12/same-address", lambda seen, now: bool(at_same_address(seen)),
        lambda seen, now: refuse(seen, "12/same-address", "EndpointRefused", at_same_address(seen),
                                 "Correct spec.endpoint of the one that is not there, with talos_machine.")),),
    "9/4-converged": (Gate(
        "12/two-answer", lambda seen, now: bool(_two_answer(seen)),
        lambda seen, now: refuse(seen, "12/two-answer", "TwinIdentity", _two_answer(seen), "Take one of them off the network, or correct spec.endpoint."),
        needs=("maintenance",)),),
    "9/6-pin": (
        Gate("12/state-present", lambda seen, now: evidence_of(seen) == STATE_PRESENT,
             lambda seen, now: refuse(seen, "12/state-present", "StateNotFound", STATE_THERE, STATE_HINT)),
        Gate("12/weak-identity", lambda seen, now: _weak(seen),
             lambda seen, now: refuse(seen, "12/weak-identity", "ReprovisionBlocked",
                                      "Its identity is weak, so that another machine may answer as it.",
                                      f"Compare the certificate {facts_of(seen).certificate.fingerprint} with the node's console, and say so with "
                                      "talos_machine, trust: true and that fingerprint.")),
        Gate("12/annotation", lambda seen, now: bool(_annotated(seen)) and not facts_of(seen).certificate.matches(_annotated(seen)), _pin_changed)),
    "15/held": (),  # a machine that is held after its adoption has never counted as converged
    "9/6-pin-missing": (),
    "9/6-no-pin": (),
    "9/7-disk": (Gate(
        "12/disk", lambda seen, now: bool(_disk_problem(seen)),
        lambda seen, now: refuse(seen, "12/disk", "InstallDiskUnknown", f"The install disk is not sure: {_disk_problem(seen)}.",
                                 "Put the approved disk or a blank one in its place, or set install with talos_machine.")),),
    "9/8-hold-apply": (Gate(
        "12/hold-apply", lambda seen, now: seen.machine is not None and seen.machine.annotations.get(HOLD_APPLY, "").lower() == "true",
        lambda seen, now: refuse(seen, "12/hold-apply", "ReprovisionBlocked",
                                 f"The machine is in maintenance mode again, and the annotation {HOLD_APPLY} is set on it.",
                                 "Take the hold away with talos_machine when it is to be installed again.")),),
    "9/8-hostname": (Gate(
        "12/hostname", lambda seen, now: bool(_record_conflict(seen)),
        lambda seen, now: refuse(seen, "12/hostname", "HostnameConflict", _record_conflict(seen), "Give this machine a host name of its own.")),),
    "9/8-hostname-record": (),
    **{gate.id: () for gate in MEMBER_GATES},
}

GATES: tuple[Gate, ...] = (
    *(row for gate in provisioning.GATES for row in _INSTEAD.get(gate.id, (gate,))),
    Gate("12/labels-unclear", lambda seen, now: evidence_of(seen) == UNCLEAR,
         lambda seen, now: refuse(seen, "12/labels-unclear", "ReprovisionBlocked", UNCLEAR_LABELS, UNCLEAR_HINT), applies=control_plane),
    *ETCD_GATES,
)


def _again(seen: Provisioning, now: float) -> Send | Remove:
    """The gates are passed: the send, after the removal of the stale member where there is one."""
    removal, waits = stale(seen), second_reading(seen, now)
    send = _send(seen, waits, removal is not None)
    if removal is None:
        return send
    step = RemoveEtcdMember(seen.target, f"its disk was wiped, and etcd still lists it as member {told(removal)}", waits_for=waits, locked=True,
                            member=removal.id)
    return Remove(step, send.step, send.warnings)


def second_reading(seen: Provisioning, now: float) -> tuple[Wait, ...]:
    """What a wiped control plane waits for, unless this is its second equal reading."""
    reading = reading_of(seen)
    if reading is None or agrees(seen.machine.status if seen.machine else {}, reading, now, seen.follow):
        return ()
    return (Wait(SECOND_READING, seen.follow, seen.target.name),)


def _send(seen: Provisioning, waits: tuple[Wait, ...], removal: bool) -> Send:
    config, facts = config_of(seen), facts_of(seen)
    found, plane, disk = evidence_of(seen), control_plane(seen), picked(config, facts.disks)
    resumes = found == DATA_PRESENT and has_meta(facts.partitions)
    last = [Wait(MEMBER_GONE, target=seen.target.name)] if removal else []
    if plane and found == WIPED:
        last += [Wait("joined, a voting etcd member with a leader", target=name) for name in _goes_first(seen)]
    lost = "its configuration was lost and its data is there" if found == DATA_PRESENT else "its disk was wiped" if found == WIPED else \
        "its disk cannot be told"
    kept = ", its etcd member is kept" if plane and found == DATA_PRESENT else ""
    does = "the node installs nothing and resumes" if resumes else send_words(config, disk, facts.disks)
    make: type[ApplyConfig] = Resume if resumes else Reinstall
    step = make(seen.target, f"in maintenance mode again as itself, {lost}{kept}; as {config.role} {config.hostname or '(no host name)'} {does}",
                waits_for=(*waits, *last), locked=plane, config=config.sha256, fingerprint=facts.certificate.fingerprint, role=config.role)
    sending = sending_of(seen.machine.status) if seen.machine else None
    warnings: tuple[Warn, ...] = () if resumes else send_warnings(seen.target, disk)
    return Send(step, sending.attempt + 1 if sending else 1, warnings)


def _goes_first(seen: Provisioning) -> tuple[str, ...]:
    """Machines whose evidence a wiped control plane waits for (section 13)."""
    open_one = disruption_of(seen.cluster)
    found = [open_one.machine] if open_one is not None and held_by_other(open_one, seen.target.name) else []
    return tuple(dict.fromkeys([*found, *seen.after]))
