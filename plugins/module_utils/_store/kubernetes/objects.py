# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records as objects of the API server, and back (design sections 3, 4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from ..._model.records import API_VERSION, Json, JsonMap, Record, dig, new_document, text_at
from ..._model.schema import SCHEMAS


def leases_path(namespace: str) -> str:
    """The path of the namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def path_of(namespace: str, kind: str, name: str = "", part: str = "") -> str:
    """The path of a kind, of one record of it, or of a part (`status`) of that."""
    whole = f"/apis/{API_VERSION}/namespaces/{namespace}/{SCHEMAS[kind].plural}"
    return whole + (f"/{name}" if name else "") + (f"/{part}" if part else "")


def record_of(kind: str, found: JsonMap) -> Record:
    """An object as a record.

    `resource_version` tells of specs, labels and annotations alone and `status_version` of statuses, where the API server has
    one version for both: a status that the controller writes is no change of what a person read. A status that names another
    uid, or none, is of another record: it is set aside, never inherited.
    """
    spec, status = _map(found, "spec"), _map(found, "status")
    labels, annotations = _texts(found, "labels"), _texts(found, "annotations")
    uid = text_at(found, "metadata", "uid")
    own = not status or text_at(status, "recordUID") == uid
    generation = dig(found, "metadata", "generation")
    return Record(
        kind, text_at(found, "metadata", "name"), spec, status if own else {}, labels, annotations, uid,
        generation if isinstance(generation, int) else 0, _digest([spec, dict(labels), dict(annotations)]), _digest(status) if status and own else "", not own,
        f"{text_at(found, 'metadata', 'namespace')}/{text_at(found, 'metadata', 'name')}")


def object_of(record: Record, namespace: str) -> JsonMap:
    """A new object for a record, without its status, which the API server takes apart."""
    found = new_document(record)
    metadata = found["metadata"]
    return {**found, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "namespace": namespace}}


def merge_patch(before: JsonMap, after: JsonMap) -> dict[str, Json]:
    """What makes `after` of `before` as a JSON merge patch: only what differs, so that nobody else's field is claimed."""
    patch: dict[str, Json] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            inner = merge_patch(old, value)
            if inner:
                patch[name] = inner
        elif name not in before or value != old or isinstance(value, bool) != isinstance(old, bool):
            patch[name] = value
    return patch


def _map(found: JsonMap, name: str) -> dict[str, Json]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _texts(found: JsonMap, name: str) -> Mapping[str, str]:
    values = dig(found, "metadata", name)
    return {key: value for key, value in values.items() if isinstance(value, str)} if isinstance(values, dict) else {}


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
