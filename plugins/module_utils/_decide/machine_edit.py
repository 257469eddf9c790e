# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A person's edits of one machine's record: endpoint, labels, late install, hold, identity (design sections 3 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from .._model.addresses import parse_endpoint
from .._model.approval import approval_state, status_missing, tracked_by, was_sent
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, known_endpoints
from .._model.observations import Disk
from .._model.observed import Present
from .._model.plan import Plan, Refusal, Target, Warn
from .._model.records import ALLOW_DELETE, HOLD_APPLY, Json, JsonMap, Record, text_at
from .._model.schema import validate
from .approval_case import disk_identity, pick
from .change_words import changes
from .disk_gates import DiskCase, disk_refusals, disk_warnings, picked_disk
from .discovery_entry import endpoint_text
from .disk_words import identity_words, install_words
from .hardware_status import disks_of
from .machine_edit_words import Edit, Edited, EditMachine, EditSeen
from .names import missing_record
from .record_deletion import decide_deletion
from .same_machine import recorded_identity
from .trust import decide_trust


@dataclass(frozen=True)
class _Case:
    """One record and what a person changes of it."""

    edit: Edit
    seen: EditSeen
    machine: Record
    target: Target

    @cached_property
    def settings(self) -> Mapping[str, Json]:
        edit = self.edit
        said: dict[str, Json] = {}
        if edit.endpoint:
            said["endpoint"] = _endpoint_words(edit.endpoint)
        if edit.hostname:
            said["hostname"] = edit.hostname
        if edit.labels is not None:
            said["labels"] = {key: edit.labels[key] for key in sorted(edit.labels)}
        if edit.taints is not None:
            said["taints"] = [dict(taint) for taint in edit.taints]
        if edit.identity:
            said["identity"] = dict(edit.identity)
        if edit.install:
            said["install"] = dict(edit.install)
        return {key: value for key, value in said.items() if self.machine.spec.get(key) != value}

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        kept = dict(self.machine.annotations)
        for name, value in ((HOLD_APPLY, self.edit.hold), (ALLOW_DELETE, self.edit.allow_delete)):
            if value:
                kept[name] = "true"
            elif value is False:
                kept.pop(name, None)
        return kept

    @cached_property
    def disks(self) -> tuple[Disk, ...]:
        node = self.seen.node
        if isinstance(node, Present) and isinstance(node.value.disks, Present):
            return node.value.disks.value
        return disks_of(self.machine)

    @cached_property
    def disk_case(self) -> DiskCase:
        install = self.settings.get("install")
        return DiskCase(self.target, pick(install, self.disks) if isinstance(install, dict) else None, self.disks)

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def _endpoint_words(text: str) -> str:
    try:
        return endpoint_text(parse_endpoint(text))
    except TalosError:
        return text


def _tracked(case: _Case) -> Refusal | None:
    tool = tracked_by(case.machine)
    if not tool or case.edit.override:
        return None
    return case.refuse("3/gitops", "RecordTracked", f"{tool} keeps machine {case.machine.name} in step with git and would undo the change.",
                       "Change it in git, or run with override: true.")


def _endpoint(case: _Case) -> Refusal | None:
    if "endpoint" not in case.settings:
        return None
    try:
        host = parse_endpoint(case.edit.endpoint).host
        dial_rules(case.seen.cluster.spec if case.seen.cluster else None, case.edit.allow_loopback).check(host)
    except TalosError as error:
        return case.refuse("3/endpoint-refused", error.reason, error.message, error.hint)
    return None


def _identity_sent(case: _Case) -> Refusal | None:
    if "identity" not in case.settings or not was_sent(case.machine):
        return None
    if recorded_identity({"identity": case.settings["identity"]}) == recorded_identity(case.machine.spec):
        return None
    return case.refuse("7/identity-immutable", "IdentityImmutable", f"Machine {case.machine.name} was sent a configuration, so its identity stays.",
                       "Remove the machine; new hardware is discovered as a new machine.")


def _install_pending(case: _Case) -> Refusal | None:
    if "install" not in case.settings or approval_state(case.machine) == "approved":
        return None
    return case.refuse("7/install-pending", "InstallNotAllowed", f"Machine {case.machine.name} is {approval_state(case.machine)}; its install "
                                                                 "settings belong to the approval.",
                       "Give install to talos_machine_approval.")


def _install_sent(case: _Case) -> Refusal | None:
    if "install" not in case.settings or not (was_sent(case.machine) or status_missing(case.machine)):
        return None
    return case.refuse("7/install-applied", "InstallNotAllowed", f"Machine {case.machine.name} was sent a configuration, so its install settings stay.",
                       "Remove the machine and approve it again to install it elsewhere.")


def _hostname(case: _Case) -> Refusal | None:
    wanted = text_at(case.settings, "hostname").lower()
    for other in case.seen.machines if wanted else ():
        names = {text_at(other.spec, "hostname").lower(), text_at(other.status, "nodeName").lower()}
        if (other.name != case.machine.name and cluster_of(other) == cluster_of(case.machine) and wanted in names
                and text_at(other.spec, "role") == "controlplane" and approval_state(other) != "rejected"):
            return case.refuse("7/hostname-taken", "HostnameTaken", f"Control plane {other.name} has the host name {wanted} already.", "Choose another one.")
    return None


#: One row a refusal.
GATES: tuple[tuple[str, Callable[[_Case], Refusal | None]], ...] = (
    ("3/gitops", _tracked),
    ("3/endpoint-refused", _endpoint),
    ("7/identity-immutable", _identity_sent),
    ("7/install-pending", _install_pending),
    ("7/install-applied", _install_sent),
    ("7/hostname-taken", _hostname),
)


def decide_edit(edit: Edit, seen: EditSeen, now: float) -> Edited:
    """The plan of one machine. Edits come before the trust; a record that is to be gone and is not there is as wanted."""
    if edit.absent and seen.machine is None and seen.broken is None:
        return Edited(Plan())
    early = missing_record(edit.name, seen.machine, seen.broken, seen.machines)
    if early is not None or seen.machine is None:
        return Edited(Plan(refusals=(early,) if early is not None else ()))
    machine = seen.machine
    target = Target(name=machine.name, cluster=cluster_of(machine), cluster_id=seen.cluster.uid if seen.cluster else "", uid=machine.uid,
                    uuid=recorded_identity(machine.spec).uuid, address=text_at(machine.spec, "endpoint"))
    if edit.absent:
        return decide_deletion(edit, seen, machine, target)
    first = _decide_fields(_Case(edit, seen, machine, target))
    if not edit.trust or first.plan.refusals or first.record is None:
        return first
    second = decide_trust(edit, seen, first.record, target, now)
    return Edited(first.plan + second.plan, second.record, second.unreachable)


def _decide_fields(case: _Case) -> Edited:
    refusals = tuple(found for dummy, gate in GATES if (found := gate(case)) is not None) + disk_refusals(case.disk_case)
    spec: dict[str, Json] = {**case.machine.spec, **case.settings}
    disk = picked_disk(case.disk_case)
    if disk is not None:
        spec["approvedDisk"] = disk_identity(disk)
    record = replace(case.machine, spec=spec, annotations=case.annotations)
    if not refusals:
        refusals = tuple(Refusal(case.target, "RecordInvalid", problem.message, "", "3/schema") for problem in validate(record, case.machine))
    if refusals:
        return Edited(Plan(refusals=refusals), case.machine)
    if not case.settings and case.annotations == dict(case.machine.annotations):
        return Edited(Plan(), case.machine)
    changed = {key: case.annotations.get(key, "") for key in (HOLD_APPLY, ALLOW_DELETE)
               if case.annotations.get(key) != case.machine.annotations.get(key)}
    step = EditMachine(case.target, _why(case, changed, spec), settings=case.settings,
                       annotations=changed, before=case.machine, spec=spec, override=case.edit.override)
    return Edited(Plan((step,), warnings=_warnings(case) + disk_warnings(case.disk_case)), record)


def _why(case: _Case, annotations: Mapping[str, str], spec: JsonMap) -> str:
    """What was, and what becomes of it."""
    told = list(changes({key: case.machine.spec.get(key) for key in case.settings if key != "install"},
                        {key: value for key, value in case.settings.items() if key != "install"}))
    if "install" in case.settings:
        old, new = case.machine.spec.get("install"), case.settings["install"]
        if install_words(old) != install_words(new):
            told.append(f"install disk {install_words(old) or 'nothing'} → {install_words(new) or 'nothing'}")
        told.extend(changes(_without_disk(old), _without_disk(new), "install."))
    if spec.get("approvedDisk") != case.machine.spec.get("approvedDisk"):
        told.append(f"the approved disk becomes the one with {identity_words(spec.get('approvedDisk'))}")
    told.extend(f"{name.rpartition('/')[2]} is {'set' if value else 'taken away'}" for name, value in sorted(annotations.items()))
    return f"a person changes {'; '.join(told)}"


def _without_disk(install: Json) -> JsonMap:
    return {key: value for key, value in install.items() if key not in ("disk", "diskSelector")} if isinstance(install, dict) else {}


def _warnings(case: _Case) -> tuple[Warn, ...]:
    found: list[Warn] = []
    if "endpoint" in case.settings:
        wanted = parse_endpoint(case.edit.endpoint)
        for other in case.seen.machines:
            if other.name != case.machine.name and wanted in known_endpoints(other):
                found.append(Warn(case.target, f"Machine {other.name} is known at {wanted} too.", "3/endpoint-shared"))
    return tuple(found)
