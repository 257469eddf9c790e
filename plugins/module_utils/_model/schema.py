# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schemas of the five kinds as one table, and the check of a record against it (design sections 3, 4).

Required is only what a record cannot be told from another without; what a later stage needs is asked for by that stage
(section 9: RenderFailed, SecretsUnavailable), so that a person can begin with little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .records import BACKUP, CLUSTER, CONFIG_PATCH, MACHINE, RECLAIM, Record
from .schema_cluster import CLUSTER_SPEC, CLUSTER_STATUS
from .schema_formats import FORMATS
from .schema_machine import MACHINE_SPEC, MACHINE_STATUS
from .schema_requests import BACKUP_SPEC, BACKUP_STATUS, PATCH_SPEC, PATCH_STATUS, RECLAIM_SPEC, RECLAIM_STATUS
from .schema_rules import Context, broken_rules
from .schema_types import Block, MapOf, Problem, Text, check


@dataclass(frozen=True)
class Schema:
    """One kind: its plural (the resource, and the folder of a directory store), spec and status."""

    kind: str
    plural: str
    folder: str
    spec: Block
    status: Block


SCHEMAS: Mapping[str, Schema] = {schema.kind: schema for schema in (
    Schema(CLUSTER, "talosclusters", "clusters", CLUSTER_SPEC, CLUSTER_STATUS),
    Schema(MACHINE, "talosmachines", "machines", MACHINE_SPEC, MACHINE_STATUS),
    Schema(CONFIG_PATCH, "talosconfigpatches", "patches", PATCH_SPEC, PATCH_STATUS),
    Schema(RECLAIM, "machinereclaims", "reclaims", RECLAIM_SPEC, RECLAIM_STATUS),
    Schema(BACKUP, "talosetcdbackups", "backups", BACKUP_SPEC, BACKUP_STATUS),
)}

_LABELS = MapOf(Text("label-value", empty=True), "label-key")
_ANNOTATIONS = MapOf(Text(empty=True), "label-key")


def validate(record: Record, before: Record | None = None, context: Context | None = None, *,
             writing: bool = True) -> tuple[Problem, ...]:
    """Everything that is wrong with a record. `before` is the record that it replaces; not `writing`: only what also holds
    for what a person wrote by hand. Rules over several fields are looked at once the fields themselves are right."""
    schema = SCHEMAS.get(record.kind)
    if schema is None:
        return (Problem(("kind",), f"kind is '{record.kind[:64]}'; it has to be one of {', '.join(SCHEMAS)}.", "schema/kind"),)
    problems: list[Problem] = []
    fault = FORMATS["name"].fault(record.name)
    if fault:
        problems.append(Problem(("metadata", "name"), f"metadata.name is '{record.name[:64]}'; it {fault}.", "schema/name"))
    problems += check(dict(record.labels), _LABELS, ("metadata", "labels"))
    problems += check(dict(record.annotations), _ANNOTATIONS, ("metadata", "annotations"))
    problems += check(record.spec, schema.spec, ("spec",))
    if not problems:
        problems += broken_rules(record, before, context or Context(), writing=writing)
    return tuple(problems)


def validate_status(record: Record) -> tuple[Problem, ...]:
    """Everything in a record's status that the table does not know."""
    schema = SCHEMAS[record.kind]
    return tuple(check(record.status, schema.status, ("status",)))
