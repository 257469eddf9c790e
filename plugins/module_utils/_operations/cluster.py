# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create, change or delete the record of a cluster (design section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .._decide.cluster_edit import (
    ClearStatus, ClusterEdit, ClusterSeen, CreateCluster, DeleteCluster, EditCluster, TakeOverStore, decide_cluster,
)
from .._model.errors import TalosError
from .._model.outcome import Difference, Outcome, refused_by
from .._model.plan import Plan
from .._model.ports import Gate, Ports, Store
from .._model.record_uid import record_uid
from .._model.records import CLUSTER, MACHINE, Record, Ref, text_at
from .record_reads import need_store
from .select import as_document


@dataclass(frozen=True)
class Request:
    """What a person wants of one cluster."""

    edit: ClusterEdit = field(default_factory=lambda: ClusterEdit(""))


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read the records, decide, show the plan, write it."""
    store = need_store(ports)
    listing = store.list(CLUSTER)
    name = request.edit.name
    before = next((record for record in listing.records if record.name == name), None)
    broken = next((entry for entry in listing.broken if entry.name == name), None)
    seen = ClusterSeen(before, store.list(MACHINE).records, broken, store.leases.no_lock(), _missing_bundle(store, request.edit, before))
    plan, record = decide_cluster(request.edit, seen)
    granted = gate(plan)
    if plan.refusals:
        return replace(refused_by(plan), blocked=(name,))
    executed = []
    for step in granted.steps:
        record = _write(store, step, record)
        executed.append(step.id)
    would_be, would_delete = _would_be(ports, plan, record)
    return Outcome(
        plan=plan, executed=tuple(executed), differences=_differences(plan, before, record), would_be=would_be, would_delete=would_delete,
        message=f"Cluster {name} is as wanted already." if not plan.steps else "",
        extra={"cluster": as_document(record) if record is not None else None})


def _missing_bundle(store: Store, edit: ClusterEdit, before: Record | None) -> str:
    """The bundle that the record will name and that is not there, or ''; what else is wrong with it is told where it is used."""
    wanted = edit.settings.get("secretsRef", before.spec.get("secretsRef") if before is not None else None)
    name = text_at(wanted, "name")
    if not name or edit.absent:
        return ""
    try:
        return name if store.bundle_form(name) == "absent" else ""
    except TalosError:
        return ""


def _write(store: Store, step: object, record: Record | None) -> Record | None:
    if isinstance(step, TakeOverStore):
        store.leases.take_over()
        return record
    if isinstance(step, CreateCluster):
        return store.create(step.record)
    if isinstance(step, EditCluster):
        return store.update(step.before, step.spec, override=step.override)
    if isinstance(step, DeleteCluster):
        store.delete(step.before)
        return None
    if isinstance(step, ClearStatus) and record is not None:
        what = step.what
        return store.patch_status(record.ref, record.uid, lambda status: {key: value for key, value in status.items() if key != what})
    raise ValueError(f"{step!r} is no step of a cluster")


def _would_be(ports: Ports, plan: Plan, record: Record | None) -> tuple[tuple[Record, ...], tuple[Ref, ...]]:
    if not ports.check or not plan.steps:
        return (), ()
    if record is None:
        return (), tuple(Ref(CLUSTER, step.target.name) for step in plan.steps)
    cleared = {step.what for step in plan.steps if isinstance(step, ClearStatus)}
    after = replace(record, status={key: value for key, value in record.status.items() if key not in cleared})
    return (after if after.uid else replace(after, uid=record_uid(CLUSTER, after.name, after.spec)),), ()


def _differences(plan: Plan, before: Record | None, after: Record | None) -> tuple[Difference, ...]:
    if not any(isinstance(step, (CreateCluster, EditCluster, DeleteCluster)) for step in plan.steps):
        return ()
    name = before.name if before is not None else after.name if after is not None else ""
    return (Difference(dict(before.spec) if before is not None else {}, dict(after.spec) if after is not None else {}, f"TalosCluster/{name}"),)
