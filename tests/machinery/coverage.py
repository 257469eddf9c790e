# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each field of each document kind by itself, in an input that Talos takes and in one that Talos refuses: does this product say the same?

The fields are those of tests/vectors/fields-*.json, not those of the product's own tables. An input that Talos takes is a document with
that field, patched over another one with it; one that Talos refuses has a value of a wrong type there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig import documents, problem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.codec import Codec
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.containers import ListOf, MapOf, Struct
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import LEGACY, schema
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.values import PemPair, Text
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.yaml_write import write
from tests.machinery.random_rows import judged, known, trouble
from tests.parts.oracle import MACHINERY, Oracle
from tests.unit._machineconfig.inputs import Inputs
from tests.vectors_config import HERE, Row

RELEASES = {"1.12": "v1.12.11", "1.13": "v1.13.9", "1.14": "v1.14.0-rc.1"}
TRIES = 60
EMPTY = "debug: false\n"
WRONG: tuple[Any, ...] = ({"a": {"b": [1]}}, [[[1]]], "no such word", 5)
Place = tuple[str, tuple[str, ...]]


def places(contract: str) -> Iterator[Place]:
    """(kind, names down to the field) of every field; () is the kind itself."""
    kinds = json.loads((HERE / f"fields-{RELEASES[contract]}.json").read_text(encoding="utf-8"))
    for kind in kinds:
        yield kind["kind"], ()
        for path in _below(kind["fields"], ()):
            yield kind["kind"], path


def _below(entries: list[dict[str, Any]], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        if entry["t"] == "meta.Meta":
            continue  # apiVersion and kind are in every document
        if entry.get("inline") and "f" in entry:
            yield from _below(entry["f"], above)
            continue
        path = (*above, entry["n"])
        yield path
        if not entry["t"].endswith(".Unstructured"):  # the person's own data, which has no fields
            yield from _below(entry.get("f", []), path)


def codec_at(codec: Codec, path: tuple[str, ...]) -> Codec:
    """The type of the field at the end of a path."""
    if not path:
        return codec
    if isinstance(codec, (ListOf, MapOf)):
        return codec_at(codec.item, path)
    if isinstance(codec, PemPair) and path[0] in codec.keys:
        return Text()
    inner = codec.field(path[0]) if isinstance(codec, Struct) else None
    if inner is None:
        raise LookupError(f"this product does not know {path[0]}")
    return codec_at(inner, path[1:])


def held(codec: Codec, path: tuple[str, ...], value: Any) -> tuple[Any, list[str]]:
    """Data with nothing but the value at the end of the path, and the path as it is told, with indices and keys."""
    if not path:
        return value, []
    if isinstance(codec, ListOf):
        inner, told = held(codec.item, path, value)
        return [inner], ["0", *told]
    if isinstance(codec, MapOf):
        inner, told = held(codec.item, path, value)
        return {"key": inner}, ["key", *told]
    inner, told = held(codec_at(codec, path[:1]), path[1:], value)
    return {path[0]: inner}, [path[0], *told]


@dataclass
class Coverage:
    """What was seen of one contract. newer: places that the machinery here does not know yet."""

    contract: str
    every: list[Place]
    accepted: set[Place] = field(default_factory=set)
    refused: set[Place] = field(default_factory=set)
    newer: set[Place] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def gaps(self) -> list[str]:
        """Places that did not occur in both kinds of input."""
        return [f"{self.contract} {kind} {'.'.join(path)}: {word}" for word, seen in (("never accepted", self.accepted), ("never refused", self.refused))
                for kind, path in self.every if (kind, path) not in seen and not (seen is self.accepted and (kind, path) in self.newer)]

    def line(self) -> str:
        kinds = len({kind for kind, dummy in self.every})
        return (f"coverage of {self.contract} by Talos {MACHINERY[self.contract]}: {kinds} kinds, {len(self.every) - kinds} fields; "
                f"{len(self.accepted)} places in accepted inputs, {len(self.refused)} in refused ones, {len(self.newer)} that it does not know yet; "
                f"{len(self.gaps())} gaps")


def cover(contract: str, oracle: Oracle) -> Coverage:
    """Tries every place."""
    seen = Coverage(contract, list(places(contract)))
    for place in seen.every:
        try:
            _accept(place, oracle, seen)
            _refuse(place, None if place in seen.newer else oracle, seen)
        except LookupError as error:
            seen.wrong.append(f"{contract} {place}: {error}")
    return seen


def document(contract: str, place: Place, value: Any) -> tuple[str, list[str]]:
    kind, path = place
    body, told = held(schema(contract).kind(kind).struct, path, value)
    if kind == LEGACY:
        return write({"version": "v1alpha1", "debug": True, **body}), told
    name = {"name": "n1"} if schema(contract).kind(kind).named and path != ("name",) else {}
    return write({"apiVersion": "v1alpha1", "kind": kind, **name, **body}), told


def _accept(place: Place, oracle: Oracle, seen: Coverage) -> None:
    """Random values until Talos takes one; each that it is asked about is compared. The places on the way to this one are in it too."""
    kind, path = place
    codec = codec_at(schema(seen.contract).kind(kind).struct, path)
    for number in range(TRIES):
        source = Inputs(number, seen.contract, wrong=0.0)
        value = source.value(codec, 0.6, 0) if path else {}
        if not path and kind != LEGACY:
            value = {"name": "n1"} if schema(seen.contract).kind(kind).named else {}
        if value in ("", [], {}, None) and path and number < TRIES // 2:
            continue  # what is left out when it is written proves little
        text, dummy = document(seen.contract, place, value)
        over = source.value(codec, 0.6, 0) if path and number % 2 else value
        # a few fields cannot be patched over themselves: these are patched in
        config = text if number < TRIES // 2 else EMPTY
        patches = [document(seen.contract, place, over)[0]]
        said = oracle.ask(op="patch", config=config, patches=patches)
        row: Row = {"id": f"{place} {number}", "machinery": MACHINERY[seen.contract], "config": config, "patches": patches, "output": said.get("output", ""),
                    "error": said.get("error")}
        found = trouble("patch.jsonl", row)
        error = str(said.get("error") or "")
        if "not registered" in error or "unknown keys found" in error:
            if found and not known(seen.contract, error + found):
                seen.wrong.append(f"{row['id']}: {found} (Talos: {error})")
            seen.newer.add(place)
            return
        if found and not known(seen.contract, error + found):
            seen.wrong.append(f"{row['id']}: {found} (Talos: {error})")
        if not error:
            seen.accepted.add(place)
            name, row, told = judged(f"{place} {number}", text, "metal", oracle)
            found = trouble(name, row)
            if found and not known(seen.contract, told + found):
                seen.wrong.append(f"{row['id']}: {found} (Talos: {told})")
            return


def _refuse(place: Place, oracle: Oracle | None, seen: Coverage) -> None:
    """Values of wrong types until Talos refuses one; this product has to refuse the same one, with its path and line. Without an oracle
    it has to refuse one of them."""
    kind, path = place
    for value in WRONG:
        if not path:
            text, told = write({**({"debug": True} if kind == LEGACY else {"apiVersion": "v1alpha1", "kind": kind}), "noSuchKey": 1}), ["noSuchKey"]
        else:
            text, told = document(seen.contract, place, value)
        try:
            documents.load(text, seen.contract)
            refusal = None
        except problem.ConfigProblem as error:
            refusal = error
        said = str(oracle.ask(op="load", config=text).get("error") or "") if oracle else str(refusal or "")
        if bool(refusal) != bool(said):
            seen.wrong.append(f"{place} {value!r}: this product says {refusal}, Talos {said}")
        if said:
            seen.refused.add(place)
            if refusal is not None and not (refusal.path.startswith(".".join(told)) and refusal.line and "\n" not in refusal.message):
                seen.wrong.append(f"{place} {value!r}: {refusal.path!r}, line {refusal.line}: {refusal}")
            return
