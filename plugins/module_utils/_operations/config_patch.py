# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create, change or delete a configuration patch, test-rendered for every approved machine that it selects (design section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .._decide.approved import in_cluster, is_approved
from .._decide.patch_edit import decide_patch, documents_of, wanted_spec
from .._decide.patch_words import CreatePatch, DeletePatch, EditPatch, PatchEdit, PatchSeen
from .._machineconfig.masking import Mask
from .._machineconfig.patch_check import PatchEffect, check_patch
from .._machineconfig.render import PatchRecord
from .._machineconfig.secret_paths import secret_leaves
from .._machineconfig.shown import redact
from .._machineconfig.yaml_write import write_documents
from .._model.errors import TalosError
from .._model.outcome import Difference, MachineRow, Outcome, refused_by
from .._model.plan import Plan
from .._model.ports import Gate, Ports, Store
from .._model.record_uid import record_uid
from .._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Json, JsonMap, Record, Ref, list_at, text_at
from .config_shown import as_data
from .record_reads import MachineView, need_store
from .rendering import Renderer
from .select import as_document


@dataclass(frozen=True)
class Request:
    """What a person wants of one patch. A file's documents are in `edit.text`, and are read here."""

    edit: PatchEdit = field(default_factory=lambda: PatchEdit(""))


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read the records, render with and without, decide, show the plan, write."""
    store, edit = need_store(ports), request.edit
    if edit.text is not None:
        edit = replace(edit, settings={**edit.settings, "documents": list(documents_of(edit.text, edit.source))})
    seen = _observe(store, edit)
    plan, record = decide_patch(edit, seen)
    granted = gate(plan)
    mask = Mask(value for document in list_at(wanted_spec(edit, seen.patch), "documents") if isinstance(document, dict)
                for dummy, value in secret_leaves(text_at(document, "kind"), document))
    effects: list[Json] = [_effect(effect, mask) for effect in seen.effects or ()]
    if plan.refusals:
        return replace(refused_by(plan), blocked=(edit.name,),
                       extra={"effects": effects if any(refusal.rule == "8/patch-breaks" for refusal in plan.refusals) else []})
    executed = []
    for step in granted.steps:
        if isinstance(step, CreatePatch):
            record = store.create(Record(CONFIG_PATCH, edit.name, step.spec))
        elif isinstance(step, EditPatch):
            record = store.update(step.before, step.spec, override=step.override)
        elif isinstance(step, DeletePatch):
            store.delete(step.before)
        executed.append(step.id)
    return Outcome(
        plan=plan, executed=tuple(executed), message="" if plan.steps else f"Patch {edit.name} is as wanted already.",
        machines=tuple(_row(effect) for effect in seen.effects or () if plan.steps), differences=_differences(plan, edit.name, seen.patch, record),
        would_be=_would_be(ports, plan, record), would_delete=(Ref(CONFIG_PATCH, edit.name),) if ports.check and plan.steps and record is None else (),
        extra={"patch": {**as_document(record), "spec": _shown(record.spec)} if record is not None else None, "effects": effects})


def _observe(store: Store, edit: PatchEdit) -> PatchSeen:
    listing = store.list(CONFIG_PATCH)
    before = next((record for record in listing.records if record.name == edit.name), None)
    broken = next((entry for entry in listing.broken if entry.name == edit.name), None)
    spec = wanted_spec(edit, before)
    name = text_at(spec, "clusterRef")
    cluster = store.get(CLUSTER, name) if name else None
    if cluster is None or edit.absent or broken is not None:
        return PatchSeen(before, broken, cluster, unchecked=f"there is no cluster {name}.")
    machines = in_cluster(store.list(MACHINE).records, name)
    renderer = Renderer(store)
    try:
        inputs = [(renderer.input_of(MachineView(machine, cluster, machines)), text_at(machine.status, "talosVersion"))
                  for machine in machines if is_approved(machine)]
    except TalosError as error:
        return PatchSeen(before, broken, cluster, machines, unchecked=error.text)
    return PatchSeen(before, broken, cluster, machines, check_patch(PatchRecord.of(edit.name, spec), inputs))


def _effect(effect: PatchEffect, mask: Mask) -> dict[str, Json]:
    """What it would do to one machine, as a result shows it."""
    problem = effect.problem or effect.broken_before
    needs = effect.effect
    return {
        "machine": effect.machine, "renders": problem is None, "message": problem.message if problem is not None else "",
        "changes": as_data(effect.changes, mask), "needs_reboot": needs.needs_reboot if needs is not None else None,
        "reboot": [one.where for one in needs.reboot] if needs is not None else [], "later": [one.where for one in needs.later] if needs is not None else [],
        "never": [one.where for one in needs.never] if needs is not None else []}


def _row(effect: PatchEffect) -> MachineRow:
    problem = effect.broken_before
    return MachineRow(effect.machine, reason="RenderFailed" if problem is not None else "", message=problem.message if problem is not None else "",
                      changed=bool(effect.changes))


def _shown(spec: JsonMap) -> dict[str, Json]:
    """The spec with the documents as a text in which secrets are fingerprints."""
    documents = [document for document in list_at(spec, "documents") if isinstance(document, dict)]
    return {**spec, "documents": redact(write_documents(documents)) if documents else ""}


def _differences(plan: Plan, name: str, before: Record | None, after: Record | None) -> tuple[Difference, ...]:
    if not plan.steps:
        return ()
    return (Difference(_shown(before.spec) if before is not None else {}, _shown(after.spec) if after is not None else {}, f"{CONFIG_PATCH}/{name}"),)


def _would_be(ports: Ports, plan: Plan, record: Record | None) -> tuple[Record, ...]:
    if not ports.check or not plan.steps or record is None:
        return ()
    return (record if record.uid else replace(record, uid=record_uid(CONFIG_PATCH, record.name, record.spec)),)
