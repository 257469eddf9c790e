# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strategic-merge patches: loading them, and merging them into a configuration with Talos's rules.

A patch is YAML documents; one that matches a document of the configuration by kind and name is merged into it, another is
appended. `$patch: delete` removes a document, a key or a list element; the deletes of a document come before its merge.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import problem
from .codec import patch_failed
from .containers import FreeForm, ListOf, MapOf, Struct
from .documents import Config, Document, arrange, decode, refuse_twice
from .json_patch import refuse_json_patch
from .plain_nodes import node_of
from .problem import ConfigProblem
from .schema import LEGACY, Kind, schema
from .templates import refuse_in_nodes
from .values import Args, Formed, Text
from .yaml_read import MAPPING, SCALAR, SEQUENCE, Node, read

_STRICT_DUPLICATES = ("1.12", "1.13")


@dataclass(frozen=True)
class Delete:
    """One `$patch: delete`. path: keys below the document, () for the document itself.

    element: for a list element the key and the text by which it is found, else None.
    """

    kind: str
    name: str
    path: tuple[str, ...]
    element: tuple[str, str] | None = None
    line: int = 0


@dataclass(frozen=True)
class Patch:
    """A loaded patch for one Talos version. steps: deletes and documents in the order in which they apply."""

    version: str
    steps: tuple[Delete | Document, ...] = field(repr=False)
    source: str = ""

    @property
    def empty(self) -> bool:
        return not self.steps


def load_patch(data: bytes | str, version: str, *, source: str = "") -> Patch:
    """Reads a patch by the schema of Talos `version`. Nothing, or only comments, is a patch that changes nothing.

    Raises ConfigProblem: JSONPatchRefused for RFC 6902 with the strategic-merge form where there is one, and whatever decoding raises.
    """
    try:
        nodes = read(data)
        refuse_json_patch(nodes)
        return Patch(version, _steps(nodes, version), source)
    except ConfigProblem as error:
        raise error.at(source=source) from None


def patch_of_documents(documents: Iterable[Any], version: str, *, source: str = "") -> Patch:
    """The same from documents as plain data, as a TalosConfigPatch record has them; a placeholder that was left in them is refused."""
    try:
        nodes = [node_of(document) for document in documents]
        refuse_json_patch([Node(SEQUENCE, nodes, 0)])
        refuse_in_nodes(nodes)
        return Patch(version, _steps([node for node in nodes if not node.is_null()], version), source)
    except ConfigProblem as error:
        raise error.at(source=source) from None


def _steps(nodes: Sequence[Node], version: str) -> tuple[Delete | Document, ...]:
    kinds = schema(version)
    steps: list[Delete | Document] = []
    documents: list[Document] = []
    for node in nodes:
        if node.kind != MAPPING:
            raise ConfigProblem(problem.WRONG_TYPE, "a patch has to be a mapping of keys to values", line=node.line)
        found: list[tuple[tuple[str, ...], tuple[str, str] | None, int]] = []
        rest = _take_deletes(node, (), False, found)
        if found:
            kind, name = _identity(node, whole=any(not path for path, dummy, unused in found))
            steps.extend(Delete(kind, name, path, element, line) for path, element, line in found)
        if rest is None or found and _nothing_left(rest):
            continue
        document = decode(rest, kinds)
        documents.append(document)
        steps.append(document)
    if version in _STRICT_DUPLICATES:
        refuse_twice(documents)
        arrange(version, documents)
    legacy_deletes = [step for step in steps if isinstance(step, Delete) and step.kind == LEGACY]
    legacy_documents = [step for step in steps if isinstance(step, Document) and step.legacy]
    others = [step for step in steps if not (isinstance(step, Delete) and step.kind == LEGACY) and not (isinstance(step, Document) and step.legacy)]
    return (*legacy_deletes, *legacy_documents, *others)


def _take_deletes(
    node: Node, path: tuple[str, ...], in_list: bool, found: list[tuple[tuple[str, ...], tuple[str, str] | None, int]],
) -> Node | None:
    """The node without what is to be deleted, which goes to `found`; None when nothing is left of it."""
    if node.kind == MAPPING:
        before = len(found)
        entries = []
        for key, value in node.value:
            if key.value == "$patch" and value.kind == SCALAR and value.value == "delete":
                found.append(_delete_of(node, path, in_list))
                return None
            rest = _take_deletes(value, (*path, key.value), False, found)
            if rest is not None:
                entries.append((key, rest))
        if len(found) == before:
            return node
        return Node(MAPPING, entries, node.line) if entries else None
    if node.kind == SEQUENCE:
        before = len(found)
        items = []
        for index, value in enumerate(node.value):
            rest = _take_deletes(value, (*path, f"[{index}]"), True, found)
            if rest is not None:
                items.append(rest)
        if len(found) == before:
            return node
        return Node(SEQUENCE, items, node.line) if items else None
    return node


def _delete_of(node: Node, path: tuple[str, ...], in_list: bool) -> tuple[tuple[str, ...], tuple[str, str] | None, int]:
    where = ".".join(path)
    if in_list:
        return path[:-1], _element(node, where), node.line
    if any(step.startswith("[") for step in path):
        raise ConfigProblem(problem.PATCH_FAILED, "a key inside a list element cannot be deleted", path=where, line=node.line)
    return path, None, node.line


def _element(node: Node, where: str) -> tuple[str, str]:
    for key, value in node.value:
        if key.value != "$patch":
            return key.value, str(value.value) if value.kind == SCALAR else ""
    raise ConfigProblem(
        problem.PATCH_FAILED, "a list element to delete needs a key and a value by which it is found", path=where, line=node.line,
        hint="Elements of a list of plain texts cannot be deleted one by one; delete the whole list and give the new one in another patch.",
    )


def _identity(node: Node, whole: bool) -> tuple[str, str]:
    values = {}
    for key in ("apiVersion", "kind", "name"):
        found = node.get(key)
        values[key] = str(found.value) if found is not None and found.kind == SCALAR else ""
    if not values["kind"] and not values["apiVersion"] and not whole:
        return LEGACY, ""
    if not values["kind"] or not values["apiVersion"]:
        raise ConfigProblem(
            problem.PATCH_FAILED, "a document with '$patch: delete' needs apiVersion and kind" if whole else "apiVersion and kind belong together",
            hint="The document without a kind cannot be deleted.", line=node.line,
        )
    return values["kind"], values["name"]


def _nothing_left(node: Node) -> bool:
    return all(key.value in ("version", "kind", "name") and value.kind == SCALAR for key, value in node.value)


def apply_patches(config: Config, patches: Iterable[Patch]) -> Config:
    """A new configuration with the patches merged in one after the other. Raises ConfigProblem."""
    result = config.copy()
    for patch in patches:
        try:
            _apply(result, patch)
            result.documents = arrange(result.version, result.documents).documents
        except ConfigProblem as error:
            raise error.at(source=patch.source) from None
    return result


def _apply(config: Config, patch: Patch) -> None:
    index = {document.id: document for document in config.documents}
    for step in patch.steps:
        if isinstance(step, Delete):
            identity = f"{step.kind}/{step.name}" if step.name else step.kind
            target = index.get(identity)
            if target is None:
                continue  # deleting from a document that is not there changes nothing
            if step.path or step.element:
                try:
                    _delete(target.kind, target.data, step)
                except ConfigProblem as error:
                    raise error.at(document=target.id, line=step.line) from None
            else:
                config.documents.remove(target)
                del index[identity]
            continue
        target = index.get(step.id)
        if target is None:
            added = step.copy()
            config.documents.append(added)
            index[step.id] = added
            continue
        try:
            target.kind.struct.merge_into(target.data, step.data)
        except ConfigProblem as error:
            raise error.at(document=target.id, line=step.line) from None


def _delete(kind: Kind, data: dict[str, Any], delete: Delete) -> None:
    where = ".".join(delete.path)
    missing = patch_failed("there is nothing to delete at this path", where)
    codec: Any = kind.struct
    value: Any = data
    for position, step in enumerate(delete.path):
        last = position + 1 == len(delete.path)
        if value is None:
            raise missing
        if isinstance(codec, Struct):
            inner = codec.field(step)
            if inner is None:
                raise missing
            if last and delete.element is None:
                value.pop(step, None)
                return
            if value.get(step) is None and isinstance(inner, Struct) and not inner.pointer:
                value[step] = {}
            codec, value = inner, value.get(step)
        elif isinstance(value, dict) and isinstance(codec, (MapOf, FreeForm, Args)) or isinstance(value, dict) and codec is None:
            if step not in value:
                raise missing
            if last and delete.element is None:
                del value[step]
                return
            codec, value = (codec.item if isinstance(codec, MapOf) else None), value[step]
        else:
            raise missing
    if delete.element is None or not isinstance(value, list) or not isinstance(codec, ListOf):
        raise missing
    _delete_element(codec, value, delete.element, missing)


def _delete_element(codec: ListOf, value: list[Any], element: tuple[str, str], missing: ConfigProblem) -> None:
    """The first element whose field has that text; only fields that are or become texts to Talos count, and no nullable ones that are."""
    key, wanted = element
    item = codec.item
    if not isinstance(item, Struct):
        raise missing
    inner = item.field(key)
    for index, entry in enumerate(value):
        if inner is not None:
            if entry.get(key) is None and isinstance(inner, Formed):
                continue  # Go's text of no address is not an empty one
            found = inner.output(entry.get(key))
            if isinstance(found, str) and found == wanted and not (inner.pointer and isinstance(inner, Text)):
                del value[index]
                return
    raise missing
