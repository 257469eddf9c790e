# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deleting a machine's record, which never touches the node (design section 4, "Deleting a record")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from .._model.approval import approval_state, status_missing, tracked_by, was_sent
from .._model.machine import cluster_of
from .._model.observed import Present, Unknown
from .._model.plan import Plan, Refusal, Target
from .._model.records import ALLOW_DELETE, Record, dig, text_at
from .machine_edit_words import DeleteRecord, Edit, Edited, EditSeen


@dataclass(frozen=True)
class _Deletion:
    """One record that a person wants gone."""

    edit: Edit
    seen: EditSeen
    machine: Record
    target: Target

    @cached_property
    def needs_quorum(self) -> bool:
        return counts_for_quorum(self.machine, self.seen.cluster, self.seen.machines)

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def counts_for_quorum(machine: Record, cluster: Record | None, machines: tuple[Record, ...]) -> bool:
    """Whether etcd may count on this machine: an approved control plane that was, or may have been, sent a configuration, in a
    cluster that is not known to be before its bootstrap. A cluster whose record is missing is not known to be."""
    if approval_state(machine) != "approved" or text_at(machine.spec, "role") != "controlplane":
        return False
    if not (was_sent(machine) or status_missing(machine) or machine.status_set_aside):
        return False
    if cluster is None or cluster.status_set_aside or text_at(cluster.status, "bootstrappedAt") or dig(cluster.status, "bootstrapping"):
        return True
    return any(text_at(other.status, "appliedConfigHash") for other in machines if cluster_of(other) == cluster_of(machine))


def _tracked(case: _Deletion) -> Refusal | None:
    tool = tracked_by(case.machine)
    if not tool or case.edit.override:
        return None
    return case.refuse("3/gitops", "RecordTracked", f"{tool} keeps machine {case.machine.name} in step with git and would make it again.",
                       "Delete it in git, or run with override: true.")


def _not_allowed(case: _Deletion) -> Refusal | None:
    if case.edit.allow_delete or case.machine.annotations.get(ALLOW_DELETE) == "true":
        return None
    return case.refuse("4/allow-delete", "DeleteNotAllowed", f"Nothing says that deleting the record of machine {case.machine.name} is meant.",
                       f"Run with allow_delete: true, or set the annotation {ALLOW_DELETE} to \"true\".")


def _sending(case: _Deletion) -> Refusal | None:
    if not case.machine.status.get("sending"):
        return None
    return case.refuse("4/sending", "SendingUnconfirmed", (
        f"A configuration is on its way to machine {case.machine.name}, or its answer was lost: without the record nobody would know."),
        "Look with talos_stage, or run talos_maintenance_apply again, which settles what became of it; then delete the record.")


def _quorum_unknown(case: _Deletion) -> Refusal | None:
    etcd = case.seen.etcd
    if not case.needs_quorum or isinstance(etcd, Present):
        return None
    why = etcd.message or etcd.reason if isinstance(etcd, Unknown) else "nobody was asked"
    return case.refuse("4/quorum-unknown", "QuorumUnknown", f"Whether etcd keeps its quorum without machine {case.machine.name} cannot be told: {why}.",
                       "Give credentials for the cluster's nodes and run again when the other control planes answer.")


def _quorum(case: _Deletion) -> Refusal | None:
    etcd = case.seen.etcd
    if not case.needs_quorum or not isinstance(etcd, Present):
        return None
    voters = sum(1 for member in etcd.value.members if not member.learner)
    needed = voters // 2 + 1
    if etcd.value.healthy_others >= needed:
        return None
    return case.refuse("4/quorum", "QuorumAtRisk", (
        f"etcd has {voters} voters and needs {needed}; without machine {case.machine.name} only {etcd.value.healthy_others} would be known to answer."),
        "Bring the other control planes back first.")


#: One row a refusal.
GATES: tuple[tuple[str, Callable[[_Deletion], Refusal | None]], ...] = (
    ("3/gitops", _tracked),
    ("4/allow-delete", _not_allowed),
    ("4/sending", _sending),
    ("4/quorum-unknown", _quorum_unknown),
    ("4/quorum", _quorum),
)


def decide_deletion(edit: Edit, seen: EditSeen, machine: Record, target: Target) -> Edited:
    """The plan that deletes one record."""
    case = _Deletion(edit, seen, machine, target)
    refusals = tuple(found for dummy, gate in GATES if (found := gate(case)) is not None)
    if refusals:
        return Edited(Plan(refusals=refusals), machine)
    state = approval_state(machine)
    why = "a person wants it gone; the node is not touched" + (", and this is all there is to its removal" if not was_sent(machine) else "")
    if state == "approved" and was_sent(machine):
        why += " and goes on running what it runs"
    return Edited(Plan((DeleteRecord(target, why, before=machine),)), None)
