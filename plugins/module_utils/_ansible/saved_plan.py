# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans kept in a file, so that one can be read, approved and then be exactly what runs (design section 20, "Saved plans").

The file is JSON: `format`, and `plans`, each with the module's name, `plan_id`, `steps` (id, canonical form, description)
and `done`, the ids of the steps that were executed under it; `run` names the ansible-playbook run that wrote it, and the
first task of another run starts the file anew. `digest` is that of everything else in it, so that a file which was changed
after it was read is no longer taken for what was approved. It holds digests, never a secret; mode 0600.
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

    @property
    def finished(self) -> bool:
        return bool(self.steps) and set(self.done) >= {step.id for step in self.steps}


def of_plan(module: str, plan: Plan) -> SavedPlan:
    """What is saved of a plan."""
    steps = tuple(SavedStep(step.id, step.canonical(), step.describe()) for step in plan.steps)
    return SavedPlan(module, plan.id, steps)


def read(path: str) -> tuple[SavedPlan, ...]:
    """All plans of a file; `InvalidInput` when it is not there or is no such file, `PlanChanged` when somebody changed it."""
    return _read(path, "plan_file")[1]


def refuse_target(path: str, store_folders: Sequence[str] = ()) -> None:
    """Refuse a path at which no plan may be saved: anything but a plan file is there, or it is inside a store.

    Asked before anything is done, in check mode too. Raises TalosError `InvalidInput`, or `PlanChanged`.
    """
    if not path.strip():
        raise TalosError("InvalidInput", "save_plan is empty.", "Give the path of the file, or leave the option out.")
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    if not os.path.isdir(folder):
        raise TalosError("InvalidInput", f"save_plan {path} cannot be written: {folder} is no folder.", "Give a path in a folder that exists.")
    around = [folder, *(str(parent) for parent in Path(folder).parents)]
    stores = {os.path.realpath(store) for store in store_folders if store}
    inside = next((parent for parent in around if parent in stores or os.path.lexists(os.path.join(parent, _STORE_MARKER))), "")
    if inside:
        raise TalosError("InvalidInput", f"save_plan {path} is inside the store {inside}.", "Save the plan outside the folders of the records.")
    if os.path.lexists(path):
        _read(path, "save_plan")


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
    return SavedPlan(str(entry["module"]), str(entry["plan_id"]), tuple(_step(step) for step in steps), tuple(str(item) for item in done))


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
    data: dict[str, Json] = {"format": FORMAT, "run": run, "plans": [
        {"module": plan.module, "plan_id": plan.plan_id, "finished": plan.finished, "done": list(plan.done),
         "steps": [{"id": step.id, "description": dict(step.description), "canonical": step.canonical} for step in plan.steps]}
        for plan in plans]}
    data["digest"] = _digest(data)
    target = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise TalosError("InvalidInput", f"The plan file {path} cannot be written: {error.strerror or error}.",
                         "Give a path in a folder that exists and can be written.") from error
