# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans kept in a file, so that one can be read, approved and then be exactly what runs (design section 20, "Saved plans").

The file is JSON: `format`, and `plans`, each with the module's name, `plan_id`, `steps` (id, canonical form, description),
`done`, the ids of the steps that were executed under it, and what was said beside the steps (`refusals`, `warnings`, `waits`);
`run` names the ansible-playbook run that wrote it, and the first task of another run starts the file anew. `id` stands for all
plans of the file together, and `changes` says whether there is anything to do. `digest` is that of everything else in it, so
that a file which was changed after it was read is no longer taken for what was approved. It holds digests, never a secret; mode
0600. Beside it the same is written for a person, as Markdown.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .._model.errors import TalosError
from .._model.plan import Plan, digest, plan_id, step_id
from .._model.plain_files import NotJson, read_given, read_json
from .._model.records import Json
from .plan_markdown import MARK, markdown
from .plan_text import SHORT_ID, refusal_line, wait_text

FORMAT = "ichor.talos/plan/v1"
#: The file by which a folder is known to be a store of records.
_STORE_MARKER = ".ichor-store"


@dataclass(frozen=True)
class SavedStep:
    id: str
    canonical: dict[str, Json]
    description: Mapping[str, Json]


@dataclass(frozen=True)
class SavedPlan:
    """One task's plan in a file."""

    module: str
    plan_id: str
    steps: tuple[SavedStep, ...]
    done: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        return bool(self.steps) and set(self.done) >= {step.id for step in self.steps}


def of_plan(module: str, plan: Plan) -> SavedPlan:
    """What is saved of a plan."""
    steps = tuple(SavedStep(step.id, step.canonical(), {**step.describe(), "address": step.target.address}) for step in plan.steps)
    warnings = tuple(f"{warning.target}: {warning.message}" if str(warning.target) else warning.message for warning in plan.warnings)
    return SavedPlan(module, plan.id, steps, refusals=tuple(map(refusal_line, plan.refusals)), warnings=warnings, waits=tuple(map(wait_text, plan.waits)))


def shown(plan: SavedPlan, *, canonical: bool = False) -> dict[str, Json]:
    """The plan, without the forms of which its id is made unless they are wanted."""
    steps: list[Json] = [{"id": step.id, "description": dict(step.description), **({"canonical": step.canonical} if canonical else {})} for step in plan.steps]
    return {"module": plan.module, "plan_id": plan.plan_id, "finished": plan.finished, "done": list(plan.done), "steps": steps,
            "refusals": list(plan.refusals), "warnings": list(plan.warnings), "waits": list(plan.waits)}


def id_of(plans: Sequence[SavedPlan]) -> str:
    """One id for the plans of a file together; equal plans have equal ids."""
    return digest([[plan.module, plan.plan_id] for plan in plans])


def text_path(path: str) -> str:
    """Where the readable form of the plan file lies: `plan.md` beside `plan.json`."""
    stem, extension = os.path.splitext(path)
    return f"{stem if extension == '.json' else path}.md"


def read(path: str) -> tuple[SavedPlan, ...]:
    """All plans of a file; `InvalidInput` when it is not there or is no such file, `PlanChanged` when somebody changed it."""
    return _read(path, "plan_file")[1]


def refuse_target(path: str, store_folders: Sequence[str] = ()) -> None:
    """Refuse a path at which no plan may be saved: anything but a plan file is there, or it is inside a store.

    Asked before anything is done, in check mode too. Raises TalosError `InvalidInput`, or `PlanChanged`.
    """
    if not path.strip():
        raise TalosError("InvalidInput", "save_plan is empty.", "Give the path of the file, or leave the option out.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise TalosError("InvalidInput", f"save_plan {path} cannot be written: {folder} is no folder.", "Give a path in a folder that exists.")
    around = [folder, *(str(parent) for parent in Path(folder).parents)]
    stores = {os.path.realpath(store) for store in store_folders if store}
    inside = next((parent for parent in around if parent in stores or os.path.lexists(os.path.join(parent, _STORE_MARKER))), "")
    if inside:
        raise TalosError("InvalidInput", f"save_plan {path} is inside the store {inside}.", "Save the plan outside the folders of the records.")
    if os.path.lexists(path):
        _read(path, "save_plan")
    beside = text_path(path)
    if os.path.lexists(beside) and not _is_text(beside):
        raise TalosError("InvalidInput", f"save_plan {path} would write its readable form to {beside}, which is something else.",
                         "Nothing is written over it: give another path, or move it away.")


def _is_text(path: str) -> bool:
    """Whether a readable plan is there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().rstrip() == MARK
    except OSError:
        return False


def _read(path: str, option: str) -> tuple[str, tuple[SavedPlan, ...]]:
    content = read_given(path, option)
    try:
        data = read_json(content)
        if not isinstance(data, dict) or data["format"] != FORMAT:
            raise ValueError("its format is another one")
        run, plans = str(data.get("run") or ""), _plans(data["plans"])
    except (NotJson, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "Give a file that save_plan wrote, unchanged." if option == "plan_file" else "Nothing is written over it: give another path, or move it away."
        raise TalosError("InvalidInput", f"{option} {path} is no plan file of this collection.", hint, detail=str(error)) from error
    if data.get("digest") != _digest(data) or not all(_is_whole(plan) for plan in plans):
        raise TalosError("PlanChanged", f"The plan file {path} was changed after it was saved: it is no longer what was planned.",
                         "Move it away, save the present plan with save_plan, read it, and run that.")
    return run, plans


def _digest(data: Mapping[str, Json]) -> str:
    return digest({key: value for key, value in data.items() if key != "digest"})


def _is_whole(plan: SavedPlan) -> bool:
    """Whether ids, canonical forms and what is shown of each step belong together."""
    return plan.plan_id == plan_id([step.canonical for step in plan.steps]) and all(
        step.id == step_id(step.canonical) == step.description.get("id") and step.description.get("action") == step.canonical["action"]
        for step in plan.steps)


def _plans(entries: Json) -> tuple[SavedPlan, ...]:
    if not isinstance(entries, list):
        raise ValueError("plans is a list")
    return tuple(_plan(entry) for entry in entries)


def _plan(entry: Json) -> SavedPlan:
    if not isinstance(entry, dict):
        raise ValueError("a plan is a mapping")
    steps = entry["steps"]
    done = entry.get("done") or []
    if not isinstance(steps, list) or not isinstance(done, list):
        raise ValueError("steps and done are lists")
    told = {key: tuple(map(str, value)) for key in ("refusals", "warnings", "waits") if isinstance(value := entry.get(key), list)}
    return SavedPlan(str(entry["module"]), str(entry["plan_id"]), tuple(_step(step) for step in steps), tuple(str(item) for item in done), **told)


def _step(entry: Json) -> SavedStep:
    if not isinstance(entry, dict):
        raise ValueError("a step is a mapping")
    description, canonical = entry["description"], entry["canonical"]
    if not isinstance(canonical, dict) or not isinstance(canonical["action"], str):
        raise ValueError("a step has a canonical form")
    return SavedStep(str(entry["id"]), canonical, description if isinstance(description, dict) else {})


def add(path: str, plan: SavedPlan, run: str = "") -> None:
    """Put a plan into the file, beside those of the same run; one of the same module with the same id is replaced.

    An empty plan is kept too: it says that the task had nothing to do. Nothing but a plan file is written over.
    """
    known, kept = _read(path, "save_plan") if os.path.lexists(path) else ("", ())
    kept = tuple(other for other in kept if (other.module, other.plan_id) != (plan.module, plan.plan_id)) if known == run else ()
    _write(path, (*kept, plan), run)


def record_done(path: str, module: str, executed: Sequence[str]) -> None:
    """Note the steps that were executed, in every plan of that module which has them."""
    if not executed:
        return
    plans = []
    run, saved = _read(path, "plan_file")
    for plan in saved:
        own = {step.id for step in plan.steps} if plan.module == module else set()
        plans.append(replace(plan, done=tuple(dict.fromkeys((*plan.done, *(item for item in executed if item in own))))))
    _write(path, tuple(plans), run)


def _write(path: str, plans: Sequence[SavedPlan], run: str) -> None:
    """The file, then its readable form; a run that is only given the file makes none."""
    entries: list[Json] = [shown(plan, canonical=True) for plan in plans]
    fresh = not os.path.lexists(path)
    data: dict[str, Json] = {"format": FORMAT, "run": run, "id": id_of(plans), "changes": any(plan.steps for plan in plans), "plans": entries}
    data["digest"] = _digest(data)
    _put(Path(path), json.dumps(data, indent=2, sort_keys=True) + "\n")
    beside = text_path(path)
    if fresh or _is_text(beside):
        _put(Path(beside), markdown(id_of(plans)[:SHORT_ID], os.path.basename(path), [shown(plan) for plan in plans]))


def _put(given: Path, text: str) -> None:
    # Through a link, so that what is noted as done is noted for all who know the file by another name.
    target = Path(os.path.realpath(given))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise TalosError("InvalidInput", f"The plan file {target} cannot be written: {error.strerror or error}.",
                         "Give a path in a folder that exists and can be written.") from error
