# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps, refusals, warnings and waits: what a decision gives (design sections 2, 20).

A plan is a value. Its id is the hash of its canonical form: actions, targets, parameters by digest, fingerprints; no
times, texts, serials or generated names. Two plans with the same id do the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from .errors import ALL_REASONS
from .records import Json

DISRUPTIONS = ("none", "drain", "reboot", "wipe")


@dataclass(frozen=True)
class Target:
    """What a step acts on. Only `cluster_id`, `uid`, `uuid` and `kind` go into the plan's id (plus `name` where it is
    a person's own word and no uid or uuid stands for it, e.g. a cluster)."""

    kind: str = "TalosMachine"
    name: str = ""
    cluster: str = ""
    cluster_id: str = ""
    uid: str = ""
    uuid: str = ""
    address: str = ""

    def canonical(self) -> dict[str, Json]:
        named = "" if (self.uid or self.uuid) else self.name
        return {"kind": self.kind, "name": named, "cluster": self.cluster, "clusterId": self.cluster_id,
                "uid": self.uid, "uuid": self.uuid}

    def __str__(self) -> str:
        return self.name or self.address


@dataclass(frozen=True)
class Wait:
    """Something that a step, or the whole run, waits for; `deadline` in seconds from when the wait begins."""

    what: str
    deadline: float | None = None
    target: str = ""


@dataclass(frozen=True)
class Step:
    """One thing to do. Subclasses set the class variables and add their parameters as fields.

    A field with metadata `{"plan": "digest"}` enters the id by its SHA-256, with `{"plan": "skip"}` not at all.
    Never put a secret into a field that is not skipped or digested.
    """

    action: ClassVar[str] = ""
    disruption: ClassVar[str] = "none"
    reversible: ClassVar[bool] = True

    target: Target
    why: str = field(metadata={"plan": "skip"})
    waits_for: tuple[Wait, ...] = field(default=(), kw_only=True, metadata={"plan": "skip"})
    #: Carried out under the lock of its cluster, one machine after the other (section 13).
    locked: bool = field(default=False, kw_only=True, metadata={"plan": "skip"})

    def canonical(self) -> dict[str, Json]:
        """The step as it enters the plan's id."""
        parameters: dict[str, Json] = {}
        for entry in fields(self):
            how = entry.metadata.get("plan", "")
            if entry.name == "target" or how == "skip":
                continue
            value = plain(getattr(self, entry.name))
            if how == "digest":
                value = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
            parameters[entry.name] = value
        return {"action": self.action, "target": self.target.canonical(), "parameters": parameters}

    @property
    def id(self) -> str:
        """Stable name of this very step: equal for equal action, target and parameters."""
        return step_id(self.canonical())

    def describe(self) -> dict[str, Json]:
        """The step as a result shows it (section 20)."""
        return {
            "id": self.id, "action": self.action, "target": str(self.target), "why": self.why,
            "disruption": self.disruption, "reversible": self.reversible,
            "waits_for": [wait.what for wait in self.waits_for],
        }


def digest(value: Json) -> str:
    """SHA-256 of plain data, hex, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def step_id(canonical: Mapping[str, Json]) -> str:
    """The id of the step with that canonical form."""
    return f"{canonical['action']}-{digest(dict(canonical))[:12]}"


def plan_id(canonicals: Sequence[Json]) -> str:
    """The id of the plan with steps of those canonical forms."""
    return digest({"steps": list(canonicals)})


def plain(value: object) -> Json:
    """Tuples, mappings and dataclasses as plain JSON data, in a stable order."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=repr)
    if hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return str(value)


@dataclass(frozen=True)
class Refusal:
    """Why something is not done. `reason` is of the closed list; `message` says what is wrong, `hint` what to do."""

    target: Target
    reason: str
    message: str
    hint: str = ""
    #: Where the rule stands, e.g. "7/disk-ambiguous": the id of a row in the tests' tables.
    rule: str = ""
    #: As long as it holds, no step of its plan is done; the steps stand there to be read and agreed to.
    whole: bool = False

    def __post_init__(self) -> None:
        if self.reason not in ALL_REASONS:
            raise ValueError(f"reason {self.reason!r} is not in the closed list")


@dataclass(frozen=True)
class Warn:
    """Something that a person has to read before agreeing."""

    target: Target
    message: str
    rule: str = ""


@dataclass(frozen=True)
class Plan:
    """What the present observation calls for, in order (section 20)."""

    steps: tuple[Step, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[Warn, ...] = ()
    waits: tuple[Wait, ...] = ()

    @property
    def id(self) -> str:
        """SHA-256 of the canonical plan, hex; a plan without steps has one too."""
        return plan_id([step.canonical() for step in self.steps])

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    def refused(self, refusal: Refusal | None) -> Plan:
        """This plan with what refused it while it was carried out; once, and None adds nothing."""
        if refusal is None or refusal in self.refusals:
            return self
        return replace(self, refusals=(*self.refusals, refusal))

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.steps + other.steps, self.refusals + other.refusals,
                    self.warnings + other.warnings, self.waits + other.waits)
