# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a person's edits of a machine's record (design sections 3, 4, 5 and 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from .._model.observations import EtcdMember, NodeFacts
from .._model.observed import Absent, Observed
from .._model.plan import Plan, Step
from .._model.records import Broken, Json, Record
from .status_change import StatusChange


@dataclass(frozen=True)
class Edit:
    """What a person changes. None, '' or an empty mapping leaves what the record has.

    `hold` and `allow_delete` set or take away the annotations of the same names; `trust` accepts the certificate that the
    node shows now, or the one in `fingerprint`. `alone`: one machine was named, so that a refusal fails the task.
    """

    name: str
    absent: bool = False
    endpoint: str = ""
    hostname: str = ""
    labels: Mapping[str, str] | None = None
    taints: tuple[Mapping[str, Json], ...] | None = None
    install: Mapping[str, Json] | None = None
    identity: Mapping[str, Json] | None = None
    hold: bool | None = None
    allow_delete: bool | None = None
    trust: bool = False
    fingerprint: str = ""
    override: bool = False
    allow_loopback: bool = False
    settle: float = 5.0
    sending_fresh: float = 90.0


@dataclass(frozen=True)
class Etcd:
    """The members as a control plane lists them, and how many of the others answer as voters that see a leader."""

    members: tuple[EtcdMember, ...] = ()
    healthy_others: int = 0


@dataclass(frozen=True)
class EditSeen:
    """What was read. `node` is Absent where it was not asked and Unknown where it is silent; `etcd` likewise."""

    machine: Record | None
    cluster: Record | None = None
    machines: tuple[Record, ...] = ()
    broken: Broken | None = None
    node: Observed[NodeFacts] = field(default_factory=Absent)
    etcd: Observed[Etcd] = field(default_factory=Absent)


@dataclass(frozen=True)
class EditMachine(Step):
    """Write a person's edits into the record."""

    action: ClassVar[str] = "EditMachine"

    settings: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "digest"})
    annotations: Mapping[str, str] = field(default_factory=dict)
    before: Record = field(default_factory=lambda: Record("TalosMachine", ""), metadata={"plan": "skip"})
    spec: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "skip"})
    override: bool = field(default=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class TrustMachine(Step):
    """Accept a certificate for one machine. `rearm`: one more send over the insecure API is allowed by it."""

    action: ClassVar[str] = "TrustMachine"

    fingerprint: str = ""
    rearm: bool = False
    annotate: bool = False
    spec: Mapping[str, Json] = field(default_factory=dict, metadata={"plan": "skip"})
    annotations: Mapping[str, str] = field(default_factory=dict, metadata={"plan": "skip"})
    change: StatusChange | None = field(default=None, metadata={"plan": "skip"})
    override: bool = field(default=False, metadata={"plan": "skip"})


@dataclass(frozen=True)
class DeleteRecord(Step):
    """Delete the record and nothing else; the node is not touched."""

    action: ClassVar[str] = "DeleteRecord"
    reversible: ClassVar[bool] = False

    before: Record = field(default_factory=lambda: Record("TalosMachine", ""), metadata={"plan": "skip"})


@dataclass(frozen=True)
class Edited:
    """The plan of one machine and the record as it would be; None where it would be gone."""

    plan: Plan
    record: Record | None = None
    unreachable: bool = False
