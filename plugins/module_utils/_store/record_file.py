# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One record's file: read, written anew, and changed in place (design sections 3, 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from .._model.records import API_VERSION, Json, JsonMap, Record, new_document
from .._model.schema import validate
from . import yaml_write
from .yaml_nodes import Node, YamlProblem, at, decode, parse, to_data

_TOP = ("apiVersion", "kind", "metadata", "spec")
#: What Kubernetes knows of metadata; of these a directory store reads name, labels and annotations.
_METADATA = frozenset((
    "name", "namespace", "labels", "annotations", "uid", "resourceVersion", "generation", "creationTimestamp", "finalizers",
    "managedFields", "ownerReferences", "selfLink",
))


@dataclass(frozen=True)
class RecordFile:
    """A file that could be read: its record (without uid, generation and status) and what changing it needs."""

    record: Record
    text: str
    bom: str
    data: Mapping[str, Json]


def version_of(content: bytes) -> str:
    """`resource_version`: the file's hash."""
    return hashlib.sha256(content).hexdigest()[:40]


def read(kind: str, name: str, content: bytes, source: str) -> RecordFile:
    """The record in a file. Raises YamlProblem with the line for a file that is no such record."""
    bom, text = decode(content)
    root = parse(text)
    data = to_data(root)
    if not isinstance(data, dict):
        raise YamlProblem("the file is no mapping of apiVersion, kind, metadata and spec", root.line)
    _check_top(root, data, kind, name)
    metadata = data["metadata"]
    spec = data["spec"]
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise YamlProblem("metadata and spec have to be mappings", root.line)
    record = Record(kind=kind, name=name, spec=spec, labels=_texts(root, metadata, "labels"), annotations=_texts(root, metadata, "annotations"),
                    resource_version=version_of(content), source=source)
    for problem in validate(record, writing=False):
        raise YamlProblem(problem.message.rstrip("."), at(root, problem.path).line)
    return RecordFile(record, text, bom, data)


def _check_top(root: Node, data: dict[str, Json], kind: str, name: str) -> None:
    for key in data:
        if key == "status":
            raise YamlProblem("'status' does not belong in this file; the product keeps it in its state folder", at(root, (key,)).line)
        if key not in _TOP:
            raise YamlProblem(f"'{key[:64]}' is not known beside {', '.join(_TOP)}", at(root, (key,)).line)
    for key in _TOP:
        if key not in data:
            raise YamlProblem(f"'{key}' is missing", root.line)
    if data["apiVersion"] != API_VERSION:
        raise YamlProblem(f"apiVersion has to be {API_VERSION}", at(root, ("apiVersion",)).line)
    if data["kind"] != kind:
        raise YamlProblem(f"kind has to be {kind} in this folder", at(root, ("kind",)).line)
    metadata = data["metadata"]
    if isinstance(metadata, dict):
        for key in metadata:
            if key not in _METADATA:
                raise YamlProblem(f"metadata.{key[:64]} is not known", at(root, ("metadata", key)).line)
        if metadata.get("name") != name:
            raise YamlProblem(f"metadata.name has to be '{name}', as the file is called", at(root, ("metadata", "name")).line)


def _texts(root: Node, metadata: dict[str, Json], key: str) -> dict[str, str]:
    found = metadata.get(key)
    if found is None:
        return {}
    where = at(root, ("metadata", key)).line
    if not isinstance(found, dict):
        raise YamlProblem(f"metadata.{key} has to be a mapping", where)
    texts: dict[str, str] = {}
    for name, value in found.items():
        if not isinstance(value, str):
            raise YamlProblem(f"metadata.{key}.{name[:64]} has to be a text; put it in quotes", at(root, ("metadata", key, name)).line)
        texts[name] = value
    return texts


def new_content(record: Record) -> bytes:
    """A new file for a record."""
    return yaml_write.document(new_document(record)).encode()


def changed_content(file: RecordFile, spec: JsonMap, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> bytes:
    """The file with another spec, labels and annotations (None: as they are), every other byte as it was.

    Raises CannotEdit.
    """
    from .yaml_edit import edit  # only a person's edit needs it, and every import is paid for by each task

    wanted = dict(file.data)
    wanted["spec"] = dict(spec)
    found = wanted["metadata"]
    metadata = dict(found) if isinstance(found, dict) else {}
    for key, new in (("labels", labels), ("annotations", annotations)):
        if new is not None and dict(new) != _plain(metadata.get(key)):
            if new:
                metadata[key] = dict(new)
            else:
                metadata.pop(key, None)
    wanted["metadata"] = metadata
    return (file.bom + edit(file.text, wanted)).encode()


def _plain(found: Json) -> dict[str, Json]:
    return found if isinstance(found, dict) else {}
