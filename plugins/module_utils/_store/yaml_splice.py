# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The splices by which one change is made in a text of YAML, in the text's own style.

Each function gives the changed text. A form of YAML that it does not know raises CannotEdit; a change that comes out
otherwise than meant is found by whoever parses the text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from .._model.records import Json
from .yaml_nodes import BREAK, Alias, Mapping, Node, Scalar, Sequence
from .yaml_write import block, entry, flow, item_lines, quoted, scalar


#: Anchor and tag of a value, on the line of its key.
_PROPERTIES = re.compile(r"(?:[ \t]*[&!][^\s,\[\]{}]*)*")


class CannotEdit(Exception):
    """A change cannot be made without touching what stands around it; `line` is where (1-based)."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


@dataclass(frozen=True)
class Style:
    """How a text is written: its line break, how far a mapping stands in from its key, and how far a list does."""

    newline: str = "\n"
    step: int = 2
    dash: int = 2

    @classmethod
    def of(cls, text: str, root: Mapping) -> Style:
        """The style of the first of each that the text has."""
        found = BREAK.search(text)
        steps = [(child, child.column - parent.column) for parent, child in _nested(root)]
        step = next((width for child, width in steps if isinstance(child, Mapping)), 2)
        dash = next((width for child, width in steps if isinstance(child, Sequence)), 2)
        return cls(found.group() if found is not None else "\n", step, dash)


def _nested(node: Node) -> Iterator[tuple[Mapping, Union[Mapping, Sequence]]]:
    """Block mappings and what stands in block form under their keys."""
    if isinstance(node, Mapping) and not node.flow:
        for dummy, value in node.entries:
            if isinstance(value, (Mapping, Sequence)) and not value.flow:
                yield node, value
            yield from _nested(value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _nested(item)


@dataclass(frozen=True)
class Text:
    """A text and its style, with the questions that splicing asks."""

    text: str
    style: Style

    def line_start(self, offset: int) -> int:
        """Where the line of an offset starts."""
        last = 0
        for found in BREAK.finditer(self.text, 0, offset):
            last = found.end()
        return last

    def line_end(self, offset: int) -> int:
        """Where the line of an offset ends, before its line break."""
        found = BREAK.search(self.text, offset)
        return found.start() if found is not None else len(self.text)

    def next_line(self, offset: int) -> int:
        """Where the line after that of an offset starts."""
        found = BREAK.search(self.text, offset)
        return found.end() if found is not None else len(self.text)

    def is_first(self, offset: int) -> bool:
        """Whether only spaces stand before an offset on its line."""
        return not self.text[self.line_start(offset):offset].strip(" ")

    def spliced(self, *pieces: tuple[int, int, str]) -> str:
        """The text with each [start, end) replaced; the pieces do not overlap."""
        text = self.text
        for start, end, new in sorted(pieces, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def lines(self, lines: list[str]) -> str:
        """Lines as one text, with the text's own line breaks between them."""
        return self.style.newline.join(lines)

    def after(self, node: Node) -> tuple[int, bool]:
        """Where a line that follows a node goes in: the offset, and whether that is the start of a line."""
        last = last_leaf(node)
        if isinstance(last, Scalar) and last.style in ("|", ">"):
            start = self.line_start(last.end)
            kept = "+" in self.text[last.start:self.line_end(last.start)].split("#")[0]
            if kept and start > last.start and not self.text[start:last.end].strip(" "):
                return start, True
        return self.line_end(self.content_end(node)), False

    def content_end(self, node: Node) -> int:
        """Where the last character of a node's content ends."""
        last = last_leaf(node)
        if isinstance(last, Scalar) and last.style in ("|", ">"):
            return last.start + len(self.text[last.start:last.end].rstrip(" \r\n\x85\u2028\u2029"))
        return last.end

    def put_after(self, node: Node, lines: list[str]) -> str:
        """The text with whole lines put behind those of a node."""
        offset, at_start = self.after(node)
        new = self.lines(lines)
        if not at_start:
            return self.spliced((offset, offset, self.style.newline + new))
        fresh = offset == 0 or BREAK.match(self.text, offset - 1) is not None
        return self.spliced((offset, offset, ("" if fresh else self.style.newline) + new + self.style.newline))


def last_leaf(node: Node) -> Node:
    """The last scalar, alias or flow collection of a node."""
    while isinstance(node, (Mapping, Sequence)) and not node.flow:
        node = node.entries[-1][1] if isinstance(node, Mapping) else node.items[-1]
    return node


def replace(text: Text, parent: Union[Mapping, Sequence], key: Scalar | None, node: Node, value: Json, in_flow: bool) -> str:
    """Another value at the place of `node`, which is under `key` of a mapping or an item of a list."""
    is_block = isinstance(node, (Mapping, Sequence)) and not node.flow
    if in_flow or not (isinstance(value, (dict, list)) and value):
        inline = _inline(node, value, in_flow)
        if is_block:
            return _block_to_inline(text, key, node, inline)
        start, end = _span(text, node)
        lead = "" if start == 0 or text.text[start - 1] in " [{,\n" else " "
        return text.spliced((start, end, lead + inline + _tail(text, end)))
    if key is not None:
        indent = parent.column + (text.style.step if isinstance(value, dict) else text.style.dash)
        lines = block(value, indent, step=text.style.step, dash=text.style.dash)
        if is_block:
            if not text.is_first(node.start):
                raise CannotEdit(node.line)
            return text.spliced((text.line_start(node.start), text.content_end(node), text.lines(lines)))
        start, end = _span(text, node)
        while start > 0 and text.text[start - 1] == " ":
            start -= 1
        rest = text.line_end(end)
        return text.spliced((start, end, ""), (rest, rest, text.style.newline + text.lines(lines)))
    indent = parent.column + 2
    lines = block(value, indent, step=text.style.step, dash=text.style.dash)
    head, rest_lines = lines[0][indent:], lines[1:]
    if is_block:
        if text.is_first(node.start):
            raise CannotEdit(node.line)
        return text.spliced((node.start, text.content_end(node), text.lines([head, *rest_lines])))
    start, end = _span(text, node)
    lead = "" if text.text[start - 1:start] == " " else " "
    rest = text.line_end(end)
    tail = text.style.newline + text.lines(rest_lines) if rest_lines else ""
    return text.spliced((start, end, lead + head), (rest, rest, tail))


def _inline(node: Node, value: Json, in_flow: bool) -> str:
    quote = node.style if isinstance(node, Scalar) else ""
    if isinstance(value, str) and quote in ("'", '"'):
        return scalar(value, quote=quote)
    if isinstance(value, (dict, list)) or in_flow:
        return flow(value)
    return scalar(value)


def _tail(text: Text, end: int) -> str:
    """A space where a comment would else touch the new value."""
    return " " if text.text[end:end + 1] == "#" else ""


def _span(text: Text, node: Node) -> tuple[int, int]:
    """The characters of a value that stands on its key's line."""
    if isinstance(node, Scalar) and node.style in ("|", ">"):
        return node.start, text.content_end(node)
    return node.start, node.end


def _block_to_inline(text: Text, key: Scalar | None, node: Node, inline: str) -> str:
    """A block collection gives way to a value on the line of its key or dash."""
    end = text.content_end(node)
    if not text.is_first(node.start) or isinstance(node, Sequence) and key is None:
        return text.spliced((node.start, end, inline))
    if key is None:
        raise CannotEdit(node.line)
    colon = text.text.find(":", key.end)
    if colon < 0 or text.text[key.end:colon].strip():
        raise CannotEdit(key.line)
    found = _PROPERTIES.match(text.text, colon + 1)
    behind = found.end() if found is not None else colon + 1
    return text.spliced((behind, behind, " " + inline), (text.line_start(node.start), text.next_line(end), ""))


def add_entry(text: Text, mapping: Mapping, key: str, value: Json) -> str:
    """A new entry behind the others of a mapping that has some."""
    if mapping.flow:
        last_key, last = mapping.entries[-1]
        end = max(last.end, last_key.end)
        word = quoted(key) if ":" in key else scalar(key)
        return text.spliced((end, end, f", {word}: {flow(value)}"))
    lines = entry(key, value, mapping.column, step=text.style.step, dash=text.style.dash)
    return text.put_after(mapping, lines)


def delete_entry(text: Text, mapping: Mapping, index: int) -> str:
    """An entry gone, with its own lines; comments above it stay."""
    key, value = mapping.entries[index]
    following = mapping.entries[index + 1][0] if index + 1 < len(mapping.entries) else None
    if mapping.flow:
        if following is not None:
            return text.spliced((key.start, following.start, ""))
        if index == 0:
            return text.spliced((key.start, max(value.end, key.end), ""))
        before_key, before = mapping.entries[index - 1]
        return text.spliced((max(before.end, before_key.end), max(value.end, key.end), ""))
    if text.is_first(key.start):
        return text.spliced((text.line_start(key.start), _lines_end(text, value), ""))
    return _close_up(text, key.start, value, following.start if following is not None else None, key.line)


def _lines_end(text: Text, node: Node) -> int:
    """The start of the first line behind those of a node."""
    offset, at_start = text.after(node)
    return offset if at_start else text.next_line(offset)


def _close_up(text: Text, start: int, value: Node, following: int | None, line: int) -> str:
    """The first entry behind a dash gone: what follows it moves up, unless a comment stands between."""
    end = text.content_end(value)
    if following is None:
        raise CannotEdit(line)
    return text.spliced((start, end if text.text[end:following].strip() else following, ""))


def insert_item(text: Text, sequence: Sequence, index: int, value: Json) -> str:
    """A new item before item `index` of a list that has some, or behind the last."""
    items = sequence.items
    if sequence.flow:
        if index < len(items):
            start = _with_properties(text, items[index])
            return text.spliced((start, start, flow(value) + ", "))
        end = items[-1].end
        return text.spliced((end, end, ", " + flow(value)))
    lines = item_lines(value, sequence.column, step=text.style.step, dash=text.style.dash)
    if index >= len(items):
        return text.put_after(sequence, lines)
    start = _dash(text, sequence, items[index])
    if not text.is_first(start):  # behind the dash of another list
        column = sequence.column
        return text.spliced((start, start, text.lines([lines[0][column:], *lines[1:], " " * column])))
    start = text.line_start(start)
    return text.spliced((start, start, text.lines(lines) + text.style.newline))


def delete_item(text: Text, sequence: Sequence, index: int) -> str:
    """An item gone, with its own lines."""
    items = sequence.items
    item = items[index]
    if sequence.flow:
        if index + 1 < len(items):
            return text.spliced((_with_properties(text, item), _with_properties(text, items[index + 1]), ""))
        return text.spliced((items[index - 1].end if index else _with_properties(text, item), item.end, ""))
    start = _dash(text, sequence, item)
    if text.is_first(start):
        return text.spliced((text.line_start(start), _lines_end(text, item), ""))
    following = _dash(text, sequence, items[index + 1]) if index + 1 < len(items) else None
    return _close_up(text, start, item, following, item.line)


def _with_properties(text: Text, item: Node) -> int:
    """Where an item of a flow list starts; one with an anchor or a tag is left to a person."""
    if not isinstance(item, Alias) and item.anchor or isinstance(item, Scalar) and item.tag:
        raise CannotEdit(item.line)
    return item.start


def _dash(text: Text, sequence: Sequence, item: Node) -> int:
    """The offset of the dash of an item."""
    start = text.line_start(item.start)
    while start > 0 and text.text[start + sequence.column:start + sequence.column + 1] != "-":
        start = text.line_start(start - 1)
    dash = start + sequence.column
    if text.text[dash:dash + 1] != "-" or dash >= max(item.start, 1):
        raise CannotEdit(item.line)
    return dash
