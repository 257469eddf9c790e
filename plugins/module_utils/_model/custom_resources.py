# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The five kinds as CustomResourceDefinitions, from the table of schemas and the table of rules (design section 4).

No property has a `default:`, since an API server's default would write a spec. Where a form of text has neither pattern nor
expression in `schema_formats`, the product alone checks it.
"""

from __future__ import annotations

from .records import API_VERSION, BACKUP, CLUSTER, CONFIG_PATCH, MACHINE, RECLAIM, Json, JsonMap
from .rule_expressions import validations
from .schema import SCHEMAS, Schema
from .schema_formats import FORMATS
from .schema_types import Block, ListOf, MapOf, Open, Text, Truth, Type, Whole

GROUP, VERSION = API_VERSION.split("/")
CATEGORIES = ("ichor", "talos")
SHORT_NAMES = {CLUSTER: "tcl", MACHINE: "tm", CONFIG_PATCH: "tcp", RECLAIM: "mrc", BACKUP: "teb"}

#: Lengths that no honest record reaches: an API server estimates the cost of a rule by the longest value that it may meet.
LONGEST_TEXT = 4096
LONGEST_LIST = 256
LONGEST_MAP = 256

_READY = '.status.conditions[?(@.type=="Ready")]'
#: What `kubectl get` shows: name, path, type; a fourth word puts a column into `-o wide` only.
_COLUMNS: dict[str, tuple[tuple[str, ...], ...]] = {
    CLUSTER: (("Talos", ".spec.talosVersion", "string"), ("Kubernetes", ".spec.kubernetesVersion", "string"),
              ("Endpoint", ".spec.endpoint", "string"), ("Bootstrapped", ".status.bootstrappedAt", "date"),
              ("Operation", ".status.operation.name", "string"), ("Hold", ".spec.hold", "string", "wide")),
    MACHINE: (("Cluster", ".spec.clusterRef", "string"), ("Role", ".spec.role", "string"), ("Hostname", ".spec.hostname", "string"),
              ("Endpoint", ".spec.endpoint", "string"), ("Approval", ".spec.approvalState", "string"), ("Stage", ".status.stage", "string"),
              ("Ready", f"{_READY}.status", "string"), ("Reason", f"{_READY}.reason", "string"),
              ("Seen at", ".status.observedEndpoint", "string", "wide"), ("Talos", ".status.talosVersion", "string", "wide"),
              ("Message", f"{_READY}.message", "string", "wide")),
    CONFIG_PATCH: (("Cluster", ".spec.clusterRef", "string"), ("Layer", ".spec.layer", "string"), ("Priority", ".spec.priority", "integer"),
                   ("Role", ".spec.machineSelector.role", "string")),
    RECLAIM: (("Address", ".spec.address", "string"), ("UUID", ".spec.confirmUUID", "string"), ("Goes to", ".spec.clusterRef", "string"),
              ("Outcome", ".status.outcome", "string"), ("Void after", ".spec.notAfter", "string")),
    BACKUP: (("Cluster", ".spec.clusterRef", "string"), ("Schedule", ".spec.schedule", "string"), ("Keep", ".spec.keep", "integer"),
             ("Last", ".status.backups[0].time", "date"), ("Size", ".status.backups[0].size", "integer", "wide"),
             ("Ready", f"{_READY}.status", "string"), ("Reason", f"{_READY}.reason", "string")),
}


def definitions() -> tuple[JsonMap, ...]:
    """The CustomResourceDefinitions of all kinds, as `kubectl apply` takes them."""
    return tuple(definition(schema) for schema in SCHEMAS.values())


def definition(schema: Schema) -> JsonMap:
    """The CustomResourceDefinition of one kind."""
    columns: list[Json] = [_column(*column) for column in _COLUMNS[schema.kind]]
    columns.append({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    root: dict[str, Json] = {
        "type": "object", "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
            "spec": _structural(schema.spec, "What people want."),
            "status": _structural(schema.status, "What was seen and done; written by the controller."),
        },
    }
    rules = validations(schema.kind)
    if rules:
        root["x-kubernetes-validations"] = [dict(rule) for rule in rules]
    version: dict[str, Json] = {
        "name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}}, "additionalPrinterColumns": columns,
    }
    names: dict[str, Json] = {
        "kind": schema.kind, "listKind": f"{schema.kind}List", "plural": schema.plural, "singular": schema.kind.lower(),
        "shortNames": [SHORT_NAMES[schema.kind]], "categories": list(CATEGORIES),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{schema.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "ichor.talos"}},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _column(name: str, path: str, kind: str, where: str = "") -> dict[str, Json]:
    column: dict[str, Json] = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": 1} if where else column


def _structural(wanted: Type, doc: str = "") -> dict[str, Json]:
    """One type as a structural schema."""
    said: dict[str, Json] = {"description": doc} if doc else {}
    if isinstance(wanted, Text):
        return {**said, **_text(wanted)}
    if isinstance(wanted, Whole):
        bounds: dict[str, Json] = {"type": "integer", "format": "int64"}
        bounds |= {name: value for name, value in (("minimum", wanted.minimum), ("maximum", wanted.maximum)) if value is not None}
        return {**said, **bounds, **({"enum": list(wanted.values)} if wanted.values else {})}
    if isinstance(wanted, Truth):
        return {**said, "type": "boolean"}
    if isinstance(wanted, ListOf):
        return {**said, **_list(wanted)}
    if isinstance(wanted, MapOf):
        return {**said, "type": "object", "maxProperties": LONGEST_MAP, "additionalProperties": _structural(wanted.value)}
    if isinstance(wanted, Open):
        return {**said, "type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties: dict[str, Json] = {name: _structural(entry.type, entry.doc) for name, entry in wanted.fields.items()}
    required: list[Json] = [name for name, entry in wanted.fields.items() if entry.required]
    return {**said, "type": "object", "properties": properties, **({"required": required} if required else {})}


def _text(wanted: Text) -> dict[str, Json]:
    if wanted.values:
        return {"type": "string", "enum": list(wanted.values)}
    schema: dict[str, Json] = {"type": "string", "maxLength": LONGEST_TEXT}
    if not wanted.empty:
        schema["minLength"] = 1
    form = FORMATS[wanted.format] if wanted.format else None
    if form is not None:
        schema["maxLength"] = form.longest
        if form.pattern:
            schema["pattern"] = f"^$|{form.pattern}" if wanted.empty else form.pattern
        if form.expression:
            schema["x-kubernetes-validations"] = [{"rule": form.expression, "message": f"it {form.fault('?')}"}]
    return schema


def _list(wanted: ListOf) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "array", "maxItems": LONGEST_LIST, "items": _structural(wanted.item)}
    if wanted.at_least:
        schema["minItems"] = wanted.at_least
    if wanted.unique:
        schema["x-kubernetes-list-type"] = "set"
    elif isinstance(wanted.item, Block) and wanted.item.fields.keys() >= {"type", "status", "reason"}:
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    else:
        schema["x-kubernetes-list-type"] = "atomic"
    return schema
