# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans kept in a file, so that one can be read, approved and then be exactly what runs (design section 20, "Saved plans").

The file is JSON: `format`, and `plans`, each with the module's name, `plan_id`, `steps` (id, canonical form, description)
and `done`, the ids of the steps that were executed under it; `run` names the ansible-playbook run that wrote it, and the
first task of another run starts the file anew. It holds digests, never a secret; mode 0600.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .._model.errors import TalosError
from .._model.plan import Plan
from .._model.records import Json

FORMAT = "ichor.talos/plan/v1"


@dataclass(frozen=True)
class SavedStep:
    id: str
    canonical: Json
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
    """All plans of a file; `InvalidInput` when it is not there or is no such file."""
    try:
        return _read(path)[1]
    except OSError as error:
        raise TalosError("InvalidInput", f"The plan file {path} cannot be read: {error.strerror or error}.",
                         "Make it with save_plan, for example by the playbook ichor.talos.plan.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TalosError("InvalidInput", f"{path} is no plan file of this collection.",
                         "Give a file that save_plan wrote, unchanged.", detail=str(error)) from error


def _read(path: str) -> tuple[str, tuple[SavedPlan, ...]]:
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r}")
    return str(data.get("run") or ""), tuple(_plan(entry) for entry in data["plans"])


def _plan(entry: Mapping[str, Json]) -> SavedPlan:
    steps = entry["steps"]
    done = entry.get("done") or []
    if not isinstance(steps, list) or not isinstance(done, list):
        raise ValueError("steps and done are lists")
    return SavedPlan(str(entry["module"]), str(entry["plan_id"]), tuple(_step(step) for step in steps), tuple(str(item) for item in done))


def _step(entry: Json) -> SavedStep:
    if not isinstance(entry, dict):
        raise ValueError("a step is a mapping")
    description = entry["description"]
    return SavedStep(str(entry["id"]), entry["canonical"], description if isinstance(description, dict) else {})


def add(path: str, plan: SavedPlan, run: str = "") -> None:
    """Put a plan into the file, beside those of the same run; one of the same module with the same id is replaced.

    An empty plan is kept too: it says that the task had nothing to do.
    """
    try:
        known, kept = _read(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known, kept = "", ()
    kept = tuple(other for other in kept if (other.module, other.plan_id) != (plan.module, plan.plan_id)) if known == run else ()
    _write(path, (*kept, plan), run)


def record_done(path: str, module: str, executed: Sequence[str]) -> None:
    """Note the steps that were executed, in every plan of that module which has them."""
    if not executed:
        return
    plans = []
    run, saved = _read(path)
    for plan in saved:
        own = {step.id for step in plan.steps} if plan.module == module else set()
        plans.append(replace(plan, done=tuple(dict.fromkeys((*plan.done, *(item for item in executed if item in own))))))
    _write(path, tuple(plans), run)


def _write(path: str, plans: Sequence[SavedPlan], run: str) -> None:
    data = {"format": FORMAT, "run": run, "plans": [
        {"module": plan.module, "plan_id": plan.plan_id, "finished": plan.finished, "done": list(plan.done),
         "steps": [{"id": step.id, "description": dict(step.description), "canonical": step.canonical} for step in plan.steps]}
        for plan in plans]}
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
