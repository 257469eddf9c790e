# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records as values: five kinds, one shape for both stores (design section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Union

API_VERSION = "ichor.maesh.dev/v1alpha1"
CLUSTER = "TalosCluster"
MACHINE = "TalosMachine"
CONFIG_PATCH = "TalosConfigPatch"
RECLAIM = "MachineReclaim"
BACKUP = "TalosEtcdBackup"
#: No record of a store: how a check run hands on the placeholder of a secrets bundle that would be made (section 20).
BUNDLE = "SecretsBundle"
KINDS = (CLUSTER, MACHINE, CONFIG_PATCH, RECLAIM, BACKUP)

#: Annotations, part of the interface (section 3).
HOLD_APPLY = "ichor.maesh.dev/hold-apply"
TRUST_FINGERPRINT = "ichor.maesh.dev/trust-maintenance-fingerprint"
ALLOW_DELETE = "ichor.maesh.dev/allow-delete"
RESET_AT = "ichor.maesh.dev/reset-at"
CORDONED_AT = "ichor.maesh.dev/cordoned-at"
#: On a patch that adoption wrote: the hash of its documents. One that was edited since is a person's.
CAPTURED = "ichor.maesh.dev/captured"

#: How the name of a leader's lock begins; no cluster can be called so.
LEADER = "leader:"

#: Plain data, as YAML and JSON know it.
Json = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]
JsonMap = Mapping[str, "Json"]


@dataclass(frozen=True)
class Ref:
    """Names one record."""

    kind: str
    name: str


@dataclass(frozen=True)
class Record:
    """One record as read. The mappings are never changed in place; writers make new ones.

    `uid` in the directory store is a digest of kind, name and what makes the record itself (a machine: its identity);
    `resource_version` changes with each write of the spec; `status_version` with each write of the status.
    `status_set_aside` is True where a status was found that belongs to another record (it is not in `status`).
    """

    kind: str
    name: str
    spec: JsonMap = field(default_factory=dict)
    status: JsonMap = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    status_version: str = ""
    status_set_aside: bool = False
    #: Where a person finds it (a file's path, or namespace/name), for messages only.
    source: str = ""

    @property
    def ref(self) -> Ref:
        return Ref(self.kind, self.name)


@dataclass(frozen=True)
class Broken:
    """A record that cannot be read: reported by name and line, never overwritten (section 4)."""

    kind: str
    name: str
    source: str
    line: int
    message: str

    @property
    def where(self) -> str:
        """Its source, and the line in it where one is known."""
        return f"{self.source}, line {self.line}" if self.line else self.source

    @property
    def sentence(self) -> str:
        """The message with its full stop, where another sentence follows."""
        return self.message.rstrip(".") + "."


@dataclass(frozen=True)
class Listing:
    """All records of a kind, sorted by name, and what could not be read beside them."""

    records: tuple[Record, ...] = ()
    broken: tuple[Broken, ...] = ()
    #: Names of approved machines whose record is gone while their status is still there: reported, not acted upon (section 4).
    vanished: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """One entry of `status.conditions` as Kubernetes has them; `status` is True, False or Unknown as text."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int = 0
    last_transition_time: str = ""


@dataclass(frozen=True)
class Event:
    """Something that happened to a record (section 3): type Normal or Warning, a reason of the closed list, a text."""

    ref: Ref
    type: str
    reason: str
    message: str
    time: str = ""


def dig(data: Json | JsonMap, *path: str) -> Json:
    """The value at a path of keys, or None where a step is missing or is no mapping."""
    here: Json | JsonMap = data
    for key in path:
        if not isinstance(here, Mapping):
            return None
        here = here.get(key)
    return dict(here) if isinstance(here, Mapping) else here


def text_at(data: Json | JsonMap, *path: str) -> str:
    """The text at a path, or ''."""
    found = dig(data, *path)
    return found if isinstance(found, str) else ""


def list_at(data: Json | JsonMap, *path: str) -> tuple[Json, ...]:
    """The list at a path as a tuple, or ()."""
    found = dig(data, *path)
    return tuple(found) if isinstance(found, list) else ()


def new_document(record: Record) -> dict[str, Json]:
    """The record as it is written for the first time, without its status."""
    metadata: dict[str, Json] = {"name": record.name}
    if record.labels:
        metadata["labels"] = dict(record.labels)
    if record.annotations:
        metadata["annotations"] = dict(record.annotations)
    return {"apiVersion": API_VERSION, "kind": record.kind, "metadata": metadata, "spec": dict(record.spec)}


def condition_of(record: Record, condition_type: str) -> Condition | None:
    """The condition of that type in a record's status, or None."""
    for entry in list_at(record.status, "conditions"):
        if text_at(entry, "type") == condition_type:
            generation = dig(entry, "observedGeneration")
            return Condition(
                type=condition_type, status=text_at(entry, "status"), reason=text_at(entry, "reason"),
                message=text_at(entry, "message"), last_transition_time=text_at(entry, "lastTransitionTime"),
                observed_generation=generation if isinstance(generation, int) else 0,
            )
    return None


def leader_lock(name: str) -> str:
    """The lock that only the one holds who leads under that name."""
    return LEADER + name
