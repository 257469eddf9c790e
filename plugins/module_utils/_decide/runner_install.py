# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which objects of the runner have to be applied, or which files written (design section 18, role `runner`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from .._model.approval import tracked_by
from .._model.observed import Absent, Observed, Present
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.records import Json, JsonMap, Record, dig, text_at


@dataclass(frozen=True)
class Seen:
    """One object: as it is wanted, as it is, and what the API server would make of it if the wanted one were applied (or the same, where
    files are written)."""

    wanted: JsonMap
    now: Observed[JsonMap]
    after: JsonMap = field(default_factory=dict)
    file: str = ""


@dataclass(frozen=True)
class ApplyObject(Step):
    """Apply one object to the API server, under a field manager of ours."""

    action: ClassVar[str] = "ApplyObject"

    wanted: JsonMap = field(default_factory=dict, repr=False, metadata={"plan": "digest"})


@dataclass(frozen=True)
class WriteManifest(Step):
    """Write one object into its file."""

    action: ClassVar[str] = "WriteManifest"

    wanted: JsonMap = field(default_factory=dict, repr=False, metadata={"plan": "digest"})
    file: str = field(default="", metadata={"plan": "skip"})


def decide_install(objects: Sequence[Seen], override: bool) -> Plan:
    """A step for each object that is not as it is wanted, in the order of the objects."""
    plan = Plan()
    for seen in objects:
        if isinstance(seen.now, Present) and meaning(seen.now.value) == meaning(seen.after or seen.wanted):
            continue
        name, kind = text_at(seen.wanted, "metadata", "name"), text_at(seen.wanted, "kind")
        target = Target(kind=kind, name=f"{kind} {name}")
        why = "it is not there" if isinstance(seen.now, Absent) else "it differs from what this version needs"
        if seen.file:
            plan += Plan((WriteManifest(target, why, seen.wanted, seen.file),))
            continue
        tool = _tracked(seen.now)
        if tool and not override:
            plan += Plan(refusals=(Refusal(target, "RecordTracked", f"{kind} {name} is kept in step with git by {tool}, which would undo a change made here.",
                                           "Render the manifests into that repository (manifests), or set override: true.", "18/runner-tracked"),))
            continue
        plan += Plan((ApplyObject(target, why, seen.wanted),), warnings=_storage(target, seen))
    return Plan(() if plan.refusals else plan.steps, plan.refusals, plan.warnings)


def meaning(found: JsonMap) -> JsonMap:
    """An object without what the API server alone writes."""
    metadata = found.get("metadata")
    kept: dict[str, Json] = {name: value for name, value in metadata.items()
                             if name in ("name", "namespace", "labels", "annotations")} if isinstance(metadata, dict) else {}
    return {name: value for name, value in found.items() if name != "status"} | {"metadata": kept}


def _tracked(now: Observed[JsonMap]) -> str:
    if not isinstance(now, Present):
        return ""
    labels, annotations = ({key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
                           for found in (dig(now.value, "metadata", "labels"), dig(now.value, "metadata", "annotations")))
    return tracked_by(Record(text_at(now.value, "kind"), text_at(now.value, "metadata", "name"), {}, {}, labels, annotations))


def _storage(target: Target, seen: Seen) -> tuple[Warn, ...]:
    """A resource that changes under records which are there already is worth a look."""
    if target.kind != "CustomResourceDefinition" or not isinstance(seen.now, Present):
        return ()
    return (Warn(target, "The definition of records that may be there already changes; records that it does not allow any more can be read, and not written.",
                 "18/runner-definition-changes"),)
