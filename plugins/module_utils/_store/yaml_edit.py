# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes to a text of YAML that leave every other byte as it is (design section 4).

The differences between what the text says and what it is to say are made one at a time, each as one or two splices at
places that the parser told; after each the text is parsed again. In the end it has to say exactly what was wanted,
else nothing is changed and `CannotEdit` says where. Nothing is ever written out anew.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping as MappingType, Sequence as SequenceType
from dataclasses import dataclass
from typing import Literal, Union

from .._model.records import Json
from .yaml_nodes import Mapping, Node, Scalar, Sequence, YamlProblem, is_merge, parse, to_data
from .yaml_splice import CannotEdit, Style, Text, add_entry, delete_entry, delete_item, insert_item, replace

_MOST_STEPS = 5000


Steps = tuple[Union[str, int], ...]


@dataclass(frozen=True)
class _Replace:
    """The value of an entry (`key` given) or of an item becomes another. `path` leads to it, here and below."""

    path: Steps
    parent: Union[Mapping, Sequence]
    key: Scalar | None
    node: Node
    value: Json
    in_flow: bool


@dataclass(frozen=True)
class _Add:
    path: Steps
    mapping: Mapping
    value: Json


@dataclass(frozen=True)
class _Delete:
    path: Steps
    mapping: Mapping
    index: int


@dataclass(frozen=True)
class _Insert:
    path: Steps
    sequence: Sequence
    value: Json


@dataclass(frozen=True)
class _Drop:
    path: Steps
    sequence: Sequence


_Change = Union[_Replace, _Add, _Delete, _Insert, _Drop]


def canonical(value: Json | MappingType[str, Json]) -> str:
    """One text for equal data: `1`, `1.0` and `true` are three different things."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def edit(text: str, wanted: dict[str, Json]) -> str:
    """The text changed so that it says `wanted`. Raises CannotEdit, and YamlProblem where the text is broken before."""
    root = parse(text)
    if not isinstance(root, Mapping):
        raise YamlProblem("the file is no mapping", root.line)
    style = Style.of(text, root)
    goal = canonical(wanted)
    for dummy in range(_MOST_STEPS):
        have = to_data(root)
        if canonical(have) == goal:
            return text
        change = _first_difference(root, have, wanted)
        changed = _apply(Text(text, style), change)
        line = _place(change).line
        try:
            following = parse(changed)
            made = canonical(to_data(following)) == canonical(_with_change(have, change, change.path))
        except YamlProblem:
            raise CannotEdit(line) from None
        if not made or not isinstance(following, Mapping):
            raise CannotEdit(line)
        text, root = changed, following
    raise CannotEdit(root.line)


def _with_change(have: Json, change: _Change, path: Steps) -> Json:
    """The data as it has to be after one change; an anchor whose aliases would change with it shows here."""
    step = path[0]
    if isinstance(have, dict):
        copy = dict(have)
        if len(path) > 1:
            copy[str(step)] = _with_change(copy[str(step)], change, path[1:])
        elif isinstance(change, _Delete):
            copy.pop(str(step))
        elif isinstance(change, (_Replace, _Add)):
            copy[str(step)] = change.value
        return copy
    items = list(have) if isinstance(have, list) else []
    index = int(step)
    if len(path) > 1:
        items[index] = _with_change(items[index], change, path[1:])
    elif isinstance(change, _Drop):
        items.pop(index)
    elif isinstance(change, _Insert):
        items.insert(index, change.value)
    elif isinstance(change, _Replace):
        items[index] = change.value
    return items


def _opcodes(have: list[Json], want: list[Json]) -> SequenceType[tuple[str, int, int, int, int]]:
    """difflib's description of how one list becomes the other."""
    matcher = difflib.SequenceMatcher(None, [canonical(item) for item in have], [canonical(item) for item in want], autojunk=False)
    return matcher.get_opcodes()


def _place(change: _Change) -> Node:
    if isinstance(change, _Replace):
        return change.node
    return change.mapping if isinstance(change, (_Add, _Delete)) else change.sequence


def _apply(text: Text, change: _Change) -> str:
    if isinstance(change, _Replace):
        return replace(text, change.parent, change.key, change.node, change.value, change.in_flow)
    if isinstance(change, _Add):
        return add_entry(text, change.mapping, str(change.path[-1]), change.value)
    if isinstance(change, _Delete):
        return delete_entry(text, change.mapping, change.index)
    if isinstance(change, _Insert):
        return insert_item(text, change.sequence, int(change.path[-1]), change.value)
    return delete_item(text, change.sequence, int(change.path[-1]))


def _first_difference(root: Mapping, have: Json, want: dict[str, Json]) -> _Change:
    found = _in_mapping((), root, have if isinstance(have, dict) else {}, want, root.flow)
    if found is None:
        raise CannotEdit(root.line)
    return found


def _in_mapping(path: Steps, node: Mapping, have: dict[str, Json], want: dict[str, Json], in_flow: bool) -> _Change | None:
    written = {key.text: (key, value) for key, value in node.entries if not is_merge(key)}
    for name, value in want.items():
        if name in written and name in have:
            key, child = written[name]
            found = _below((*path, name), child, have[name], value, in_flow)
            if isinstance(found, bool):
                return _Replace((*path, name), node, key, child, value, in_flow)
            if found is not None:
                return found
    for name, value in want.items():
        if name not in written and (name not in have or canonical(have[name]) != canonical(value)):
            return _Add((*path, name), node, value)
    for index, (key, dummy) in enumerate(node.entries):
        if not is_merge(key) and key.text not in want:
            return _Delete((*path, key.text), node, index)
    if set(have) - set(want):
        raise CannotEdit(node.line)  # merged in from elsewhere: nothing here to take away
    return None


def _in_sequence(path: Steps, node: Sequence, have: list[Json], want: list[Json], in_flow: bool) -> _Change | None:
    for tag, start, end, other, last in _opcodes(have, want):
        if tag == "delete":
            return _Drop((*path, start), node)
        if tag == "insert":
            return _Insert((*path, start), node, want[other])
        if tag == "replace":
            if end - start > last - other:
                return _Drop((*path, end - 1), node)
            if end - start < last - other:
                return _Insert((*path, end), node, want[last - 1])
            found = _below((*path, start), node.items[start], have[start], want[other], in_flow)
            if isinstance(found, bool):
                return _Replace((*path, start), node, None, node.items[start], want[other], in_flow)
            return found
    return None


def _below(path: Steps, node: Node, have: Json, want: Json, in_flow: bool) -> _Change | Literal[True] | None:
    """The first change inside of a value; True where the value itself has to be replaced; None for equal data."""
    if canonical(have) == canonical(want):
        return None
    if have and want:
        if isinstance(node, Mapping) and isinstance(have, dict) and isinstance(want, dict):
            return _in_mapping(path, node, have, want, in_flow or node.flow)
        if isinstance(node, Sequence) and isinstance(have, list) and isinstance(want, list):
            return _in_sequence(path, node, have, want, in_flow or node.flow)
    return True
