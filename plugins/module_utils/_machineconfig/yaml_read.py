# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes to trees of YAML nodes, as strict as Talos and bounded in time and memory.

The parser of PyYAML (libyaml where it is compiled in) gives events; everything above events is here, because
PyYAML's own loader reads YAML 1.1 (`on` becomes true, `1:30` becomes 90) and lets duplicate keys pass.
What a scalar means is not decided here: the node keeps its text, and whether it was quoted.
"""
from __future__ import annotations

import re
from typing import Any

from . import problem
from .problem import ConfigProblem

try:
    import yaml
except ImportError:  # reported by whoever runs the module
    yaml = None  # type: ignore[assignment]

SCALAR, MAPPING, SEQUENCE = 0, 1, 2

MAX_BYTES = 10_000_000  # a node refuses bigger requests long before
MAX_DEPTH = 100
MAX_NODES = 200_000
MAX_ALIAS_NODES = 50_000  # what aliases may add when written out; more is an alias bomb

_STR_TAG = "tag:yaml.org,2002:str"
_CORE_TAGS = frozenset("tag:yaml.org,2002:" + name for name in ("str", "int", "float", "bool", "null", "map", "seq", "timestamp", "binary"))
_SURROGATE = re.compile("[\ud800-\udfff]")
_UTF16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


class Node:
    """One YAML node. Shared between an anchor and its aliases, so it is never changed after reading.

    kind: SCALAR (value: str), MAPPING (value: list of (key node, value node)), SEQUENCE (value: list of nodes).
    plain: the scalar stands without quotes, so that `5`, `true`, `~` are more than text. tag: an explicit core tag, or "".
    line: 1-based. size: nodes below and including this one, aliases written out.
    """

    __slots__ = ("kind", "value", "plain", "tag", "line", "size")

    def __init__(self, kind: int, value: Any, line: int, plain: bool = False, tag: str = "") -> None:
        self.kind = kind
        self.value = value
        self.line = line
        self.plain = plain
        self.tag = tag
        self.size = 1

    def get(self, key: str) -> Node | None:
        """The value under a key of a mapping; None when this is no mapping or has no such key."""
        if self.kind == MAPPING:
            for name, value in self.value:
                if name.value == key:
                    found: Node = value
                    return found
        return None

    def is_null(self) -> bool:
        return self.kind == SCALAR and self.plain and self.value in ("", "~", "null", "Null", "NULL")


def read(data: bytes | str, *, source: str = "") -> list[Node]:
    """All documents of a text, empty and null ones left out. Raises ConfigProblem (InvalidYAML, ConfigTooLarge)."""
    try:
        return [node for node in _compose(decode(data)) if not node.is_null()]
    except ConfigProblem as error:
        raise error.at(source=source) from None


def decode(data: bytes | str) -> str:
    """The text without a BOM. UTF-8 only: Talos's tools write nothing else, and a wrong guess would change keys."""
    if isinstance(data, str):
        if len(data) > MAX_BYTES:
            raise _too_large(len(data))
        found = _SURROGATE.search(data)  # what Python makes of bytes that are no UTF-8
        if found:
            raise ConfigProblem(problem.INVALID_YAML, "the text is not UTF-8", hint="Save it as UTF-8.", line=data.count("\n", 0, found.start()) + 1)
        return data[1:] if data.startswith("\ufeff") else data
    if len(data) > MAX_BYTES:
        raise _too_large(len(data))
    if data.startswith(_UTF16_OR_32):
        raise ConfigProblem(problem.INVALID_YAML, "the text is UTF-16 or UTF-32", hint="Save it as UTF-8.", line=1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigProblem(problem.INVALID_YAML, "the text is not UTF-8", hint="Save it as UTF-8.", line=line) from None


def _too_large(size: int) -> ConfigProblem:
    return ConfigProblem(
        problem.TOO_LARGE, f"the text has {size} bytes, more than the {MAX_BYTES} that are read",
        hint="Keep large manifests outside of the machine configuration.",
    )


def _compose(text: str) -> list[Node]:
    if yaml is None:
        raise ConfigProblem(problem.MISSING_LIBRARY, "the Python library PyYAML is missing", hint="Install PyYAML.")
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise ConfigProblem(problem.INVALID_YAML, "the text holds a NUL character", hint="Save it as UTF-8 text.", line=line)
    loader = getattr(yaml, "CLoader", yaml.Loader)
    documents: list[Node] = []
    try:
        builder = _Builder()
        for event in yaml.parse(text, Loader=loader):
            done = builder.take(event)
            if done is not None:
                documents.append(done)
                if len(documents) > 1000:
                    raise ConfigProblem(problem.TOO_LARGE, "the text has more than 1000 documents")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or getattr(error, "context", None)
        line = mark.line + 1 if mark is not None else _line_of(text, error)
        if _starts_with_tab(text, line):
            what = "a tab is used for indentation"
        if "nesting depth" in str(what):  # libyaml has a bound of its own
            raise ConfigProblem(problem.INVALID_YAML, f"nested deeper than {MAX_DEPTH} levels", line=line) from None
        raise ConfigProblem(problem.INVALID_YAML, f"not valid YAML: {_clean(what)}", line=line) from None
    return documents


def _starts_with_tab(text: str, line: int) -> bool:
    lines = text.splitlines()
    return 0 < line <= len(lines) and "\t" in lines[line - 1][:len(lines[line - 1]) - len(lines[line - 1].lstrip())]


def _line_of(text: str, error: Any) -> int:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 0


def _clean(what: object) -> str:
    """A parser's words without what it quotes of the text, which may be a secret."""
    words = str(what or "it cannot be parsed")
    return words.split('"', 1)[0].rstrip() or "it cannot be parsed"


class _Builder:
    """Builds nodes from events on an explicit stack, so that deep nesting cannot exhaust Python's."""

    def __init__(self) -> None:
        self._stack: list[Node] = []
        self._pending: list[Node | None] = []  # the key that waits for its value, one for each open node
        self._keys: list[set[str]] = []
        self._anchors: dict[str, Node] = {}
        self._open_anchors: list[str | None] = []
        self._nodes = 0
        self._alias_nodes = 0
        self._root: Node | None = None

    def take(self, event: Any) -> Node | None:
        """One event; the document when it ends one."""
        kind = event.__class__.__name__
        if kind == "ScalarEvent":
            tag = self._tag(event)
            plain = event.implicit[0] and event.style in (None, "") or bool(tag) and tag != _STR_TAG
            node = Node(SCALAR, event.value, event.start_mark.line + 1, plain, tag)
            self._count(node)
            if event.anchor:
                self._anchors[event.anchor] = node
            self._add(node)
        elif kind == "MappingStartEvent" or kind == "SequenceStartEvent":
            self._tag(event)
            node = Node(MAPPING if kind == "MappingStartEvent" else SEQUENCE, [], event.start_mark.line + 1)
            self._count(node)
            if len(self._stack) >= MAX_DEPTH:
                raise ConfigProblem(problem.INVALID_YAML, f"nested deeper than {MAX_DEPTH} levels", line=node.line)
            self._stack.append(node)
            self._pending.append(None)
            self._keys.append(set())
            self._open_anchors.append(event.anchor)
        elif kind == "MappingEndEvent" or kind == "SequenceEndEvent":
            node = self._stack.pop()
            self._pending.pop()
            self._keys.pop()
            anchor = self._open_anchors.pop()
            if node.kind == MAPPING:
                _merge(node)
            if anchor:
                self._anchors[anchor] = node
            self._add(node)
        elif kind == "AliasEvent":
            line = event.start_mark.line + 1
            target = self._anchors.get(event.anchor)
            if event.anchor in self._open_anchors:
                raise ConfigProblem(problem.INVALID_YAML, "an alias refers to the node that it stands in", line=line)
            if target is None:
                raise ConfigProblem(problem.INVALID_YAML, "an alias refers to an anchor that is not defined before it", line=line)
            self._alias_nodes += target.size
            if self._alias_nodes > MAX_ALIAS_NODES:
                raise ConfigProblem(problem.TOO_LARGE, f"aliases expand to more than {MAX_ALIAS_NODES} nodes", line=line)
            self._add(target)
        elif kind == "DocumentEndEvent":
            root, self._root = self._root, None
            self._anchors.clear()
            return root
        return None

    def _tag(self, event: Any) -> str:
        tag = event.tag or ""
        if not tag or tag == "!" or tag in _CORE_TAGS:
            return _STR_TAG if tag == "!" else tag
        raise ConfigProblem(
            problem.UNEXPANDED_TEMPLATE, "a value carries a tag of its own (such as !vault) that Talos does not know",
            hint="Put the plain value there before the text is handed over.", line=event.start_mark.line + 1,
        )

    def _count(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ConfigProblem(problem.TOO_LARGE, f"the text has more than {MAX_NODES} values", line=node.line)

    def _add(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        parent.size += node.size
        if parent.kind == SEQUENCE:
            parent.value.append(node)
            return
        key = self._pending[-1]
        if key is None:
            if node.kind != SCALAR:
                raise ConfigProblem(problem.INVALID_YAML, "a key has to be a plain word", line=node.line)
            if node.value in self._keys[-1]:
                raise ConfigProblem(problem.INVALID_YAML, f"the key '{node.value[:64]}' is there twice in one mapping", line=node.line)
            self._keys[-1].add(node.value)
            self._pending[-1] = node
        else:
            parent.value.append((key, node))
            self._pending[-1] = None


def _merge(node: Node) -> None:
    """Writes out `<<`: keys of the mapping itself win over those that are merged in, earlier merged ones over later."""
    merged = [value for key, value in node.value if key.plain and key.value == "<<"]
    if not merged:
        return
    entries = [(key, value) for key, value in node.value if not (key.plain and key.value == "<<")]
    present = {key.value for key, dummy in entries}
    for value in merged:
        for source in value.value if value.kind == SEQUENCE else [value]:
            if source.kind != MAPPING:
                raise ConfigProblem(problem.INVALID_YAML, "'<<' needs a mapping or a list of mappings", line=value.line)
            for key, inner in source.value:
                if key.value not in present:
                    present.add(key.value)
                    entries.append((key, inner))
    node.value = entries
