# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A record's text as a tree of nodes that know where they stand (design section 4).

The tree is built from PyYAML's events (libyaml where it is there), because its loader lets duplicate keys pass and
reads `on` and `10:20` as something else than text. Offsets are indexes into the text without its BOM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Union, cast

from .._model.errors import TalosError
from .._model.records import Json

try:
    import yaml
except ImportError:  # reported by the module that runs
    yaml = None  # type: ignore[assignment]

MAX_BYTES = 2_000_000
MAX_DEPTH = 60
MAX_NODES = 100_000

_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null"))
_COLLECTION_TAGS = frozenset(_TAG + name for name in ("map", "seq"))
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,60})\Z")
_BASED = re.compile(r"0(?:x[0-9a-fA-F]{1,50}|o[0-7]{1,60})\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NO_NUMBER = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*\s*)*")
#: White space, comments and line breaks between the properties of a block list and its first dash.
_BLANK = re.compile("(?:[ \t]*(?:#[^\n\r\x85\u2028\u2029]*)?(?:\r\n|[\n\r\x85\u2028\u2029]))* *")
_CONFLICT = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)
#: The line breaks of YAML 1.1, which PyYAML goes by.
BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class YamlProblem(Exception):
    """What is wrong with a text and on which line (1-based, 0 where there is none)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(slots=True)
class Scalar:
    """One scalar. `start` is behind an anchor or tag; an empty value has start == end. `style` is '', ', ", | or >."""

    text: str
    start: int
    end: int
    line: int
    column: int
    style: str = ""
    tag: str = ""
    anchor: str = ""


@dataclass(slots=True)
class Mapping:
    """One mapping; `flow` is the form with braces. In the block form `end` is of no use: see `content_end`."""

    entries: list[tuple[Scalar, Node]]
    start: int
    end: int
    line: int
    column: int
    flow: bool = False
    anchor: str = ""


@dataclass(slots=True)
class Sequence:
    """One sequence; `flow` is the form with brackets; `column` is that of its dashes."""

    items: list[Node]
    start: int
    end: int
    line: int
    column: int
    flow: bool = False
    anchor: str = ""


@dataclass(slots=True)
class Alias:
    """`*name`, standing for `target`."""

    target: Scalar | Mapping | Sequence
    start: int
    end: int
    line: int
    column: int


Node = Union[Scalar, Mapping, Sequence, Alias]


class _Mark(Protocol):
    """A place in the text, as PyYAML has it: lines and columns from 0."""

    index: int
    line: int
    column: int


class _Event(Protocol):
    """PyYAML's events, of which each has the attributes that its name needs."""

    start_mark: _Mark
    end_mark: _Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    flow_style: bool | None


def decode(data: bytes) -> tuple[str, str]:
    """BOM ('' or the mark) and text. Raises YamlProblem for anything but UTF-8 text of a sensible size."""
    if len(data) > MAX_BYTES:
        raise YamlProblem(f"the file has {len(data)} bytes, more than the {MAX_BYTES} that are read")
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise YamlProblem("the file is UTF-16 or UTF-32; save it as UTF-8", 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlProblem("the file is not UTF-8 text", data.count(b"\n", 0, error.start) + 1) from None
    if "\x00" in text:
        raise YamlProblem("the file holds a NUL character, as after a crash of the machine", text.count("\n", 0, text.index("\x00")) + 1)
    return ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)


def parse(text: str) -> Node:
    """The one document of a text. Raises YamlProblem."""
    if yaml is None:
        raise TalosError("MissingLibrary", "The Python library PyYAML is missing.", "Install PyYAML for the Python that runs this module.")
    if not text.strip():
        raise YamlProblem("the file is empty", 1)
    conflict = _CONFLICT.search(text)
    if conflict is not None and "<<<<<<< " in text:
        raise YamlProblem("the file holds an unresolved merge conflict of git", _line_at(text, conflict.start()))
    loader = getattr(yaml, "CLoader", yaml.Loader)
    builder = _Builder(text)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(cast(_Event, event))
    except yaml.YAMLError as error:
        raise _parser_problem(text, error) from None
    if builder.root is None:
        raise YamlProblem("the file holds no record", 1)
    return builder.root


def _line_at(text: str, offset: int) -> int:
    return len(BREAK.findall(text, 0, offset)) + 1


def _parser_problem(text: str, error: Exception) -> YamlProblem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = getattr(error, "position", None)
    line = mark.line + 1 if mark is not None else _line_at(text, position) if isinstance(position, int) else 0
    lines = BREAK.split(text)
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in here[:len(here) - len(here.lstrip())]:
        return YamlProblem("a tab is used for indentation; YAML takes only spaces there", line)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    return YamlProblem(f"the file is not valid YAML: {what}", line)


class _Builder:
    """Puts events together on an explicit stack, so that deep nesting cannot exhaust Python's."""

    def __init__(self, text: str) -> None:
        self.root: Node | None = None
        self._text = text
        self._stack: list[Mapping | Sequence] = []
        self._keys: list[Scalar | None] = []
        self._seen: list[set[str]] = []
        self._anchors: dict[str, Scalar | Mapping | Sequence] = {}
        self._documents = 0
        self._nodes = 0

    def take(self, event: _Event) -> None:
        name = type(event).__name__
        if name == "ScalarEvent":
            self._add(self._scalar(event))
        elif name in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, name == "MappingStartEvent")
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            node = self._stack.pop()
            node.end = event.end_mark.index
            self._keys.pop()
            self._seen.pop()
            self._add(node)
        elif name == "AliasEvent":
            mark = event.start_mark
            target = self._anchors.get(event.anchor or "")
            if target is None or any(target is node for node in self._stack):
                raise YamlProblem(f"the alias '*{event.anchor}' has no anchor before it", mark.line + 1)
            self._add(Alias(target, mark.index, event.end_mark.index, mark.line + 1, mark.column))
        elif name == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                raise YamlProblem("the file holds more than one document; each record has a file of its own", event.start_mark.line + 1)

    def _scalar(self, event: _Event) -> Scalar:
        mark, end = event.start_mark, event.end_mark.index
        tag = event.tag or ""
        if tag == "!":
            tag = _TAG + "str"
        if tag and tag not in _SCALAR_TAGS:
            raise YamlProblem(f"the tag '{tag.replace(_TAG, '!!')}' is not known in a record; write the plain value", mark.line + 1)
        start = mark.index
        if event.anchor or event.tag:
            found = _PROPERTIES.match(self._text, start, end)
            start = found.end() if found is not None else start
        node = Scalar(event.value, start, end, mark.line + 1, mark.column, event.style or "", tag, event.anchor or "")
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _open(self, event: _Event, mapping: bool) -> None:
        mark = event.start_mark
        if event.tag and event.tag not in _COLLECTION_TAGS:
            raise YamlProblem(f"the tag '{event.tag}' is not known in a record", mark.line + 1)
        if len(self._stack) >= MAX_DEPTH:
            raise YamlProblem(f"the file is nested deeper than {MAX_DEPTH} levels", mark.line + 1)
        node: Mapping | Sequence
        if mapping:
            node = Mapping([], mark.index, mark.index, mark.line + 1, mark.column, bool(event.flow_style), event.anchor or "")
        else:
            node = Sequence([], mark.index, mark.index, mark.line + 1, mark.column, bool(event.flow_style), event.anchor or "")
        if event.anchor or event.tag:
            self._pass_properties(node)
        if event.anchor:
            self._anchors[event.anchor] = node
        self._stack.append(node)
        self._keys.append(None)
        self._seen.append(set())

    def _pass_properties(self, node: Mapping | Sequence) -> None:
        """Move the start behind an anchor or tag, to the bracket or the first dash; a block mapping's is that of its first key."""
        found = _PROPERTIES.match(self._text, node.start)
        node.start = found.end() if found is not None else node.start
        if isinstance(node, Sequence) and not node.flow:
            found = _BLANK.match(self._text, node.start)
            node.start = found.end() if found is not None else node.start
            breaks = [line.end() for line in BREAK.finditer(self._text, 0, node.start)]
            node.column = node.start - (breaks[-1] if breaks else 0)

    def _add(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise YamlProblem(f"the file has more than {MAX_NODES} values", node.line)
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is not None:
            parent.entries.append((key, node))
            self._keys[-1] = None
            return
        if not isinstance(node, Scalar):
            raise YamlProblem("a key has to be a plain word", node.line)
        if node.text in self._seen[-1]:
            raise YamlProblem(f"the key '{node.text[:64]}' is there twice", node.line)
        if not parent.entries and not parent.flow:
            parent.column = node.column  # with an anchor before it, the mapping's own mark is the anchor's
            parent.start = node.start
        self._seen[-1].add(node.text)
        self._keys[-1] = node


def is_merge(key: Scalar) -> bool:
    """Whether a key is YAML's merge key."""
    return key.text == "<<" and key.style == "" and not key.tag


def resolve(node: Scalar) -> Json:
    """What a scalar means by YAML 1.2's core schema, narrower: `007`, `yes` and `1:30` are text. Raises YamlProblem."""
    text = node.text
    if node.tag:
        return _tagged(node)
    if node.style:
        return text
    return resolve_plain(text, node.line)


def resolve_plain(text: str, line: int = 0) -> Json:
    """The same for the text of a plain scalar."""
    if text in _NULLS:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if text[0] in "+-.0123456789":
        if _DECIMAL.match(text):
            return int(text)
        if _BASED.match(text):
            return int(text, 0)
        if _FLOAT.match(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                raise YamlProblem(f"the number {text} is too large", line)
            return number
        if _NO_NUMBER.match(text):
            raise YamlProblem(f"{text} is no number that a record can hold", line)
    return text


def _tagged(node: Scalar) -> Json:
    kind = node.tag[len(_TAG):]
    if kind == "str":
        return node.text
    value = resolve_plain(node.text, node.line)
    wanted: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,), "null": (type(None),)}
    if not isinstance(value, wanted[kind]) or isinstance(value, bool) != (kind == "bool"):
        raise YamlProblem(f"'{node.text[:64]}' is no {kind}", node.line)
    return float(value) if kind == "float" and isinstance(value, int) else value


def to_data(node: Node) -> Json:
    """The plain data of a tree; aliases and merges written out. Raises YamlProblem for what a record cannot hold."""
    return _Reading().data(node)


class _Reading:
    """Counts what aliases add, so that a few lines cannot fill the memory."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def data(self, node: Node, depth: int = 0) -> Json:
        self._left -= 1
        if self._left < 0 or depth > 2 * MAX_DEPTH:
            raise YamlProblem("aliases in the file expand to too many values", node.line)
        if isinstance(node, Alias):
            return self.data(node.target, depth + 1)
        if isinstance(node, Scalar):
            return resolve(node)
        if isinstance(node, Sequence):
            return [self.data(item, depth + 1) for item in node.items]
        found: dict[str, Json] = {}
        merged: list[Node] = []
        for key, value in node.entries:
            if is_merge(key):
                merged.append(value)
            else:
                found[key.text] = self.data(value, depth + 1)
        for source in merged:
            for mapping in self._sources(source):
                read = self.data(mapping, depth + 1)
                for name, inner in (read.items() if isinstance(read, dict) else ()):
                    found.setdefault(name, inner)
        return found

    def _sources(self, node: Node) -> Iterator[Mapping]:
        target = node.target if isinstance(node, Alias) else node
        for item in target.items if isinstance(target, Sequence) else [target]:
            inner = item.target if isinstance(item, Alias) else item
            if not isinstance(inner, Mapping):
                raise YamlProblem("'<<' needs a mapping or a list of mappings", node.line)
            yield inner


def at(node: Node, path: tuple[str | int, ...]) -> Node:
    """The deepest node on the way along a path: for the line of a message."""
    here = node
    for step in path:
        target = here.target if isinstance(here, Alias) else here
        if isinstance(target, Mapping):
            following = next((value for key, value in target.entries if key.text == step), None)
        elif isinstance(target, Sequence) and isinstance(step, int) and step < len(target.items):
            following = target.items[step]
        else:
            following = None
        if following is None:
            return here
        here = following
    return here
