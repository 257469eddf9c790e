# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which patch turns one configuration into another: the opposite of merging (design section 15).

What differs is taken apart into atoms, one for each setting, so that those which are equal on many machines can go into one patch. A list
that is not empty is taken away first and given anew, since a patch would append to it; so is whatever a patch cannot overwrite.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .codec import Codec
from .compare import differences, flat, path_key
from .containers import MapOf, Struct
from .documents import Config, Document
from .patch import apply_patches, patch_of_documents
from .problem import ConfigProblem
from .schema import LEGACY
from .url_passwords import without_url_passwords
from .values import Verbatim

SET, REPLACE, DELETE, ADD_DOCUMENT, REPLACE_DOCUMENT, DELETE_DOCUMENT = "set", "replace", "delete", "add", "give anew", "take away"
_WHOLE = (ADD_DOCUMENT, REPLACE_DOCUMENT, DELETE_DOCUMENT)


@dataclass(frozen=True)
class Atom:
    """One setting of a patch. kind, name: of the document. path: keys below it, () for the whole. value: JSON text, "" where there is none."""

    kind: str
    name: str
    path: tuple[str, ...]
    how: str
    value: str = field(default="", repr=False)

    @property
    def document(self) -> str:
        """As documents are called: `Kind/name`, `Kind` or `v1alpha1`."""
        return f"{self.kind}/{self.name}" if self.name else self.kind

    @property
    def where(self) -> str:
        """For a person: document and dotted path."""
        return without_url_passwords(": ".join(part for part in (self.document, ".".join(path_key(key) for key in self.path)) if part))

    def covers(self, document: str, path: str) -> bool:
        """Whether the setting at this path, as a comparison calls it, is part of this atom."""
        own = ".".join(path_key(key) for key in self.path)
        return document == self.document and (not own or path == own or path.startswith(f"{own}."))


def capture(base: Config, live: Config) -> tuple[Atom, ...]:
    """The atoms that turn `base` into `live`, in the order of the documents of `live`. Settings that mean the same are left out."""
    found: list[Atom] = []
    there = {document.id: document for document in base.documents}
    for document in live.documents:
        before = there.get(document.id)
        if before is None:
            found.append(Atom(document.kind.name, document.name, (), ADD_DOCUMENT, _text(document.output())))
        elif (atoms := _needed(before, document)):
            found.extend(_that_works(base, before, document, atoms))
    kept = {document.id for document in live.documents}
    found.extend(Atom(document.kind.name, document.name, (), DELETE_DOCUMENT) for document in base.documents if document.id not in kept)
    return tuple(found)


def documents_of(atoms: Iterable[Atom]) -> list[Any]:
    """The documents of a patch with these atoms, as plain data: what is taken away first, then what is set."""
    deletes: dict[tuple[str, str], dict[str, Any]] = {}
    sets: dict[tuple[str, str], dict[str, Any]] = {}
    order: list[tuple[str, str]] = []
    for atom in atoms:
        key = atom.kind, atom.name
        if key not in order:
            order.append(key)
        value: Any = json.loads(atom.value) if atom.value else None
        if atom.how in (DELETE_DOCUMENT, REPLACE_DOCUMENT):
            deletes[key] = {**_head(*key), "$patch": "delete"}
        if atom.how in (ADD_DOCUMENT, REPLACE_DOCUMENT):
            sets[key] = value
        if atom.how in (DELETE, REPLACE):
            _put(deletes.setdefault(key, _head(*key)), atom.path, {"$patch": "delete"})
        if atom.how in (SET, REPLACE):
            _put(sets.setdefault(key, _head(*key)), atom.path, value)
    return [holder[key] for key in order for holder in (deletes, sets) if key in holder]


def _head(kind: str, name: str) -> dict[str, Any]:
    if kind == LEGACY:
        return {}
    return {"apiVersion": "v1alpha1", "kind": kind, **({"name": name} if name else {})}


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = value


def _needed(before: Document, after: Document) -> list[Atom]:
    """The atoms of a document that is in both, without those that change nothing in meaning."""
    one, other = flat(before), flat(after)
    missing = object()
    paths = [path for path in (*other, *(path for path in one if path not in other)) if one.get(path, missing) != other.get(path, missing)
             or type(one.get(path)) is not type(other.get(path))]
    if not paths:
        return []
    atoms = list(_walk(after.kind, after.name, after.kind.struct, before.data, after.data, ()))
    return [atom for atom in atoms if any(atom.covers(after.id, path) for path in paths)]


def _walk(kind: Any, name: str, codec: Codec, before: Any, after: Any, path: tuple[str, ...]) -> Iterator[Atom]:
    if isinstance(codec, Struct):
        for entry in codec.fields:
            yield from _step(kind, name, entry.codec, before.get(entry.name), after.get(entry.name), (*path, entry.name), entry.omit_empty)
    elif isinstance(codec, MapOf):
        for key in (*after, *(key for key in before if key not in after)):
            yield from _step(kind, name, codec.item, before.get(key), after.get(key), (*path, key), False, key in before, key in after)


def _step(kind: Any, name: str, codec: Codec, before: Any, after: Any, path: tuple[str, ...], omitted: bool,
          was: bool | None = None, stays: bool | None = None) -> Iterator[Atom]:
    was = not codec.empty(before) or before is not None and codec.pointer if was is None else was
    stays = not codec.empty(after) or after is not None and codec.pointer if stays is None else stays
    if not was and not stays:
        return
    if not stays:
        yield Atom(kind.name, name, path, DELETE)
        return
    said = codec.output(after)
    if was and _text(codec.output(before)) == _text(said):
        return
    if isinstance(codec, (Struct, MapOf)) and isinstance(after, dict) and after:
        inner = list(_walk(kind, name, codec, before if isinstance(before, dict) else {}, after, path))
        if inner:
            yield from inner
            return
    overwrites = not was or isinstance(said, (str, int, float)) and said not in ("", 0, False)
    yield Atom(kind.name, name, path, SET if overwrites else REPLACE, _text(said))


def _that_works(base: Config, before: Document, after: Document, atoms: list[Atom]) -> list[Atom]:
    """These atoms, where merging them gives the document; else the document as a whole, where it can be taken away."""
    alone = Config(base.version, [before.copy()], base.shape)
    if not after.legacy:
        try:
            merged = apply_patches(alone, [patch_of_documents(documents_of(atoms), base.version)])
            if not differences(merged, Config(base.version, [after])):
                return atoms
        except ConfigProblem:
            pass
        return [Atom(after.kind.name, after.name, (), REPLACE_DOCUMENT, _text(after.output()))]
    return atoms


def _text(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    """A file mode is a number to Talos, and written as `0o644`."""
    if isinstance(value, Verbatim):
        return int(value, 8)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
