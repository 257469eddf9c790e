# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine configuration as typed documents: decoded strictly by the schema of a Talos version, and written back.

Talos's own rules, in its order: values of the wrong type, then keys that nobody knows, then documents that may not stand together.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import problem
from .codec import Reading
from .problem import ConfigProblem
from .schema import LEGACY, VERSIONS, Kind, Schema, schema
from .yaml_read import MAPPING, SCALAR, Node, read
from .yaml_write import NEWEST, write_documents

_LEGACY_KEYS = frozenset({"machine", "cluster", "debug", "persist"})


@dataclass
class Document:
    """One document. data: decoded values by field name, an absent key is Go's zero value. line: where it began, 0 when it was made here."""

    kind: Kind
    data: dict[str, Any] = field(repr=False)
    line: int = 0

    @property
    def name(self) -> str:
        """Its name, for kinds that have one."""
        return str(self.data.get("name") or "") if self.kind.named else ""

    @property
    def id(self) -> str:
        """`Kind/name`, `Kind`, or `v1alpha1`."""
        return f"{self.kind.name}/{self.name}" if self.kind.named else self.kind.name

    @property
    def legacy(self) -> bool:
        return self.kind.name == LEGACY

    def copy(self) -> Document:
        return Document(self.kind, self.kind.struct.copy(self.data), self.line)

    def output(self) -> dict[str, Any]:
        """Data for the YAML writer, in Talos's order."""
        body: dict[str, Any] = self.kind.struct.output(self.data)
        return body if self.legacy else {"apiVersion": "v1alpha1", "kind": self.kind.name, **body}


@dataclass
class Config:
    """Typed documents of one configuration, the legacy document first."""

    version: str
    documents: list[Document]
    #: The contract that it was generated for, "" where it was read.
    shape: str = ""

    @property
    def version_of_shape(self) -> str:
        """The contract, else the version of the schema."""
        return self.shape or self.version

    @property
    def schema(self) -> Schema:
        return schema(self.version)

    @property
    def legacy(self) -> Document | None:
        first = self.documents[0] if self.documents else None
        return first if first is not None and first.legacy else None

    def find(self, kind: str, name: str = "") -> Document | None:
        """The document of that kind (and name); None when there is none."""
        for document in self.documents:
            if document.kind.name == kind and (document.name == name or not document.kind.named):
                return document
        return None

    def all(self, kind: str) -> list[Document]:
        return [document for document in self.documents if document.kind.name == kind]

    def copy(self) -> Config:
        return Config(self.version, [document.copy() for document in self.documents], self.shape)

    def text(self, dialect: str = NEWEST) -> str:
        """The configuration as YAML, stable to the byte for equal content."""
        return write_documents([document.output() for document in self.documents], dialect)

    def plain(self) -> list[dict[str, Any]]:
        """Every document as plain data, as it would be read back."""
        return [document.output() for document in self.documents]


def load(data: bytes | str, version: str, *, source: str = "") -> Config:
    """Reads a configuration by the schema of Talos `version` (`1.12`). Raises ConfigProblem."""
    try:
        nodes = read(data)
        if not nodes:
            raise ConfigProblem(problem.NO_DOCUMENT, "there is no document in it")
        kinds = schema(version)
        documents = [decode(node, kinds) for node in nodes]
        refuse_twice(documents)
        return arrange(version, documents)
    except ConfigProblem as error:
        raise error.at(source=source) from None


def understood(data: bytes | str, version: str, most: int, *, source: str = "") -> tuple[Config | None, tuple[ConfigProblem, ...]]:
    """What of a configuration the schema knows, None where that makes none, and the documents and keys that it does not know, in order.

    most: so many of these, for what has thousands.
    """
    found: list[Document] = []
    faults: list[ConfigProblem] = []
    try:
        for node in read(data):
            try:
                document, unknown, dummy = _decoded(node, schema(version), most)
            except ConfigProblem as error:
                faults.append(error)
                continue
            found.append(document)
            faults.extend(unknown)
        refuse_twice(found)
        config = arrange(version, found) if found else None
    except ConfigProblem as error:
        faults.append(error)
        config = None
    return config, tuple(fault.at(source=source) for fault in faults[:most])


def refuse_twice(documents: Iterable[Document]) -> None:
    """A document of the same kind and name twice in one text."""
    seen: set[str] = set()
    for document in documents:
        name = str(document.data.get("name") or "") if not document.legacy else ""
        identity = f"{document.kind.name}/{name}"
        if identity in seen:
            raise ConfigProblem(
                problem.DUPLICATE_DOCUMENT, "this document is there twice", document=document.id, line=document.line,
            )
        seen.add(identity)


def arrange(version: str, documents: Sequence[Document]) -> Config:
    """The legacy document first; refuses documents that may not stand together (reference: conflicts among documents)."""
    legacy = [document for document in documents if document.legacy]
    if len(legacy) > 1:
        raise ConfigProblem(problem.DUPLICATE_DOCUMENT, "the document without a kind is there twice", line=legacy[1].line)
    others = [document for document in documents if not document.legacy]
    seen: set[str] = set()
    claimed: dict[str, str] = {}
    links: dict[str, str] = {}
    for document in others:
        identity = f"{document.kind.name}/{document.name}"
        if identity in seen:
            raise ConfigProblem(problem.DUPLICATE_DOCUMENT, "this document is there twice", document=document.id, line=document.line)
        seen.add(identity)
        if identity in claimed:
            raise _conflict(claimed[identity], identity, document)
        for kind in document.kind.conflicts:
            other = f"{kind}/{document.name}"
            if other in seen:
                raise _conflict(other, identity, document)
            claimed[other] = identity
        if document.kind.link and version not in ("1.12", "1.13"):
            peer = document.data.get("peer") or {}
            for link in (document.name, *([str(peer.get("name") or "")] if document.kind.name == "VethConfig" else ())):
                if link in links:
                    raise ConfigProblem(
                        problem.CONFLICTING_DOCUMENTS, f"{links[link]} and {identity} both configure the link {link[:64]}", line=document.line,
                    )
                links[link] = identity
    return Config(version, [*legacy, *others])


def _conflict(one: str, other: str, document: Document) -> ConfigProblem:
    return ConfigProblem(problem.CONFLICTING_DOCUMENTS, f"conflicting documents: {one} and {other}", line=document.line)


def decode(node: Node, kinds: Schema) -> Document:
    """One document, strictly. Raises ConfigProblem (UnknownKind, WrongType, UnknownKey) with path and line."""
    document, unknown, count = _decoded(node, kinds, 1)
    if unknown:
        raise unknown[0].and_more(count - 1)
    return document


def _decoded(node: Node, kinds: Schema, most: int) -> tuple[Document, tuple[ConfigProblem, ...], int]:
    """One document, a problem for each of the first keys that are not known, and how many such keys there are. Raises ConfigProblem for
    whatever else is wrong with it.
    """
    if node.kind != MAPPING:
        raise ConfigProblem(problem.WRONG_TYPE, "a document has to be a mapping of keys to values", line=node.line)
    kind = _kind_of(node, kinds)
    reading = Reading()
    name = _scalar_text(node, "name")
    identity = kind.name + (f"/{name}" if kind.named and name else "")
    body = Node(MAPPING, [entry for entry in node.value if kind.name == LEGACY or entry[0].value not in ("apiVersion", "kind")], node.line)
    try:
        data = kind.struct.read(body, reading) or {}
    except ConfigProblem as error:
        raise error.at(document=identity) from None
    unknown = tuple(_unknown_key(kind, kinds, path, key.line).at(document=identity) for path, key in reading.unknown[:most])
    return Document(kind, data, node.line), unknown, len(reading.unknown)


def _scalar_text(node: Node, key: str) -> str:
    found = node.get(key)
    return str(found.value) if found is not None and found.kind == SCALAR else ""


def _kind_of(node: Node, kinds: Schema) -> Kind:
    name = _scalar_text(node, "kind")
    version = _scalar_text(node, "apiVersion")
    legacy = any(key.value in _LEGACY_KEYS for key, dummy in node.value)
    if not name:
        if legacy or version == "v1alpha1":
            return kinds.kind(LEGACY)
        raise ConfigProblem(
            problem.UNKNOWN_KIND, "the document has no kind, and neither machine nor cluster",
            hint="Give machine configuration: a document with 'machine' or 'cluster', or one with apiVersion and kind.", line=node.line,
        )
    if not version and not legacy:
        raise ConfigProblem(
            problem.UNKNOWN_KIND, "the document has a kind but no apiVersion", hint="Add 'apiVersion: v1alpha1'.",
            document=name[:64], line=node.line,
        )
    if name in kinds and name != LEGACY and version in ("v1alpha1", "") or version == "" and name in kinds:
        return kinds.kind(name)
    later = [other for other in VERSIONS if name in schema(other)] if version == "v1alpha1" and name != LEGACY else []
    hint = f"It is known from Talos {later[0]} on." if later else "Check its spelling; Kubernetes objects go into inline manifests."
    raise ConfigProblem(
        problem.UNKNOWN_KIND, f"the kind {name[:64]} ({version[:32]}) is not known to Talos {kinds.version}", hint=hint,
        document=_named(node, name), line=node.line,
    )


def _named(node: Node, kind: str) -> str:
    """`Kind/name` of a document that is not known, as far as it says so."""
    return "/".join(part[:64] for part in (kind, _scalar_text(node, "name")) if part)


def _unknown_key(kind: Kind, kinds: Schema, path: str, line: int) -> ConfigProblem:
    later = [
        version for version in VERSIONS
        if version > kinds.version and kind.name in schema(version) and _knows(schema(version).kind(kind.name), path.split("."))
    ]
    hint = f"Talos knows it from {later[0]} on." if later else "Check its spelling and its place."
    return ConfigProblem(
        problem.UNKNOWN_KEY, f"the key '{path.rsplit('.', 1)[-1][:64]}' is not known to Talos {kinds.version}", hint=hint, path=path, line=line,
    )


def _knows(kind: Kind, path: list[str]) -> bool:
    """Whether the schema has a field at this path; list elements and map keys match anything."""
    codec: Any = kind.struct
    for step in path:
        if hasattr(codec, "field"):
            codec = codec.field(step)
            if codec is None:
                return False
        elif hasattr(codec, "item"):
            codec = codec.item
        else:
            return True
    return True
