# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data to YAML, to the byte as Talos's encoder writes it without comments.

The reference is the go-yaml library that each Talos version carries: block style, indent 4, no folding. dialect is the Talos
version whose quoting is wanted; what is sent to nodes is always the newest, which every version reads the same.
"""
from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Any

from . import go_text
from .scalars import resolve_plain
from .values import Verbatim

NEWEST = "1.14"

_OLD_BOOLS = frozenset("y Y yes Yes YES on On ON n N no No NO off Off OFF".split())
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_SAFE = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.+=@$%^()*;~-]*\Z")
_BLOCK_START = frozenset("#,[]{}&*!|>'\"%@`")
_INDICATOR = re.compile(r":(?=[ \t]|\Z)|(?<=[ \t\r\n\x85\u2028\u2029\x00])#")
_NOT_PRINTABLE = re.compile("[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_BREAKS = re.compile("[\n\u2028\u2029]")
_NO_SIMPLE_KEY = re.compile("[\n\r\x85\u2028\u2029]")
_ESCAPES = {
    0x00: "0", 0x07: "a", 0x08: "b", 0x09: "t", 0x0A: "n", 0x0B: "v", 0x0C: "f", 0x0D: "r", 0x1B: "e", 0x22: '"', 0x5C: "\\",
    0x85: "N", 0xA0: "_", 0x2028: "L", 0x2029: "P",
}
_LONGEST_KEY = 128


def write_documents(documents: list[Any], dialect: str = NEWEST) -> str:
    """Documents joined by `---`, each a mapping in the order in which it is to be written."""
    return "---\n".join(write(document, dialect) for document in documents)


def write(document: Any, dialect: str = NEWEST) -> str:
    """One document with its final line break."""
    out: list[str] = []
    if isinstance(document, dict) and document:
        _mapping(document, 0, "", out, dialect)
    elif isinstance(document, (list, tuple)) and document:
        _sequence(document, 0, "", out, dialect)
    else:
        out.append(_scalar(document, 0, -4, dialect) + "\n")
    return "".join(out)


def _mapping(value: dict[str, Any], column: int, first: str, out: list[str], dialect: str) -> None:
    """first: what stands before the first key when the mapping begins within a line."""
    pad = " " * column
    prefix = first or pad
    child = 4 * ((column + 4) // 4)
    for key, inner in value.items():
        simple = (key.isascii() and len(key) or len(key.encode("utf-8", "surrogatepass"))) <= _LONGEST_KEY and not _NO_SIMPLE_KEY.search(key)
        key_text = quoted(key, dialect) if simple else _scalar(key, child, column, dialect)
        lead = f"{prefix}{key_text}:" if simple else f"{prefix}? {key_text}\n{pad}:"
        if isinstance(inner, dict) and inner:
            if simple:
                out.append(lead + "\n")
                _mapping(inner, child, "", out, dialect)
            else:
                _mapping(inner, child, lead + " " * (child - column - 1), out, dialect)
        elif isinstance(inner, (list, tuple)) and inner:
            if simple:
                out.append(lead + "\n")
                _sequence(inner, child, "", out, dialect)
            else:
                _sequence(inner, child, lead + " " * (child - column - 1), out, dialect)
        else:
            out.append(f"{lead} {_scalar(inner, child, column, dialect)}\n")
        prefix = pad


def _sequence(value: list[Any] | tuple[Any, ...], column: int, first: str, out: list[str], dialect: str) -> None:
    pad = " " * column
    prefix = first or pad
    for inner in value:
        if isinstance(inner, dict) and inner:
            _mapping(inner, column + 2, prefix + "- ", out, dialect)
        elif isinstance(inner, (list, tuple)) and inner:
            _sequence(inner, column + 2, prefix + "- ", out, dialect)
        else:
            out.append(f"{prefix}- {_scalar(inner, column + 2, column, dialect)}\n")
        prefix = pad


def _scalar(value: Any, column: int, parent: int, dialect: str) -> str:
    """The text of a scalar or an empty collection; column: where the lines of a block go; parent: where what holds it begins."""
    if isinstance(value, str):
        if isinstance(value, Verbatim):
            return value
        if "\n" in value:
            return _lines(value, column, column - parent, dialect)
        text = quoted(value, dialect)
        if "\u2028" in text or "\u2029" in text:
            return _indent_breaks(text[:-1], column) + text[-1] if text[0] == "'" else _indent_breaks(text, column)
        return text
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return go_text.format_float(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    return _moment(value) if isinstance(value, datetime.datetime) else str(value)


def _moment(value: datetime.datetime) -> str:
    text = value.strftime("%Y-%m-%dT%H:%M:%S")
    if value.microsecond:
        text += f".{value.microsecond:06d}".rstrip("0")
    offset = value.strftime("%z")
    return text + ("Z" if offset in ("", "+0000") else f"{offset[:3]}:{offset[3:5]}")


def _lines(value: str, column: int, deeper: int, dialect: str) -> str:
    """A text with line breaks: a literal block where that can hold it, else double quotes.

    deeper: by how much its lines stand deeper than what holds it. Go-yaml writes 4 there, in a list too, where it is 2, and nothing
    where empty lines come before the space; it cannot read that again. So this is the one place where the bytes are other than Talos's.
    """
    if value.isspace() or value.endswith(" ") or re.search("[ ][\n\u2028\u2029]", value) or _NOT_PRINTABLE.search(value.replace("\t", "")):
        return _double(value)
    stripped = value[:-1] if value[-1] in "\n\u2028\u2029" else value
    chomp = "-" if stripped == value else "+" if not stripped or stripped[-1] in "\n\u2028\u2029" else ""
    begins = value.lstrip("\n\u2028\u2029")[0]
    hint = str(deeper) if begins == " " or begins != value[0] and dialect == "1.12" else ""
    body = _indent_breaks("\n" + (stripped if value[-1] == "\n" else value), column)
    return f"|{hint}{chomp}{body}"


def _indent_breaks(text: str, column: int) -> str:
    return re.sub("([\n\u2028\u2029])(?=[^\n\u2028\u2029])", r"\1" + " " * column, text)


@lru_cache(maxsize=8192)
def quoted(value: str, dialect: str = NEWEST) -> str:
    """A string within one line: plain where it stays a string, else in quotes."""
    if _SAFE.match(value) and value not in _OLD_BOOLS and isinstance(resolve_plain(value), str):
        return value
    if not value:
        return '""'
    plain = resolve_plain(value)
    if not (isinstance(plain, str) and plain == value):
        return _double(value)
    compatible = value not in _OLD_BOOLS and not _BASE60.match(value) and value != "<<"
    if not compatible and dialect != NEWEST:
        return _double(value)
    special = _NOT_PRINTABLE.search(value) or re.search("[ ][\n\u2028\u2029]|[\n\u2028\u2029][ ]", value)
    if special or "\t" in value or "\n" in value:
        return _double(value)
    first = value[0]
    if (
        not compatible or first in _BLOCK_START or first in "-?" and (len(value) == 1 or value[1] in " \t") or value.startswith(("---", "..."))
        or first == " " or value[-1] == " " or _INDICATOR.search(value) or _BREAKS.search(value)
    ):
        return "'" + value.replace("'", "''") + "'"
    return value


def _double(value: str) -> str:
    every = value.startswith("\ufeff")
    result = []
    for character in value:
        code = ord(character)
        if not every and character not in '"\\' and not _NOT_PRINTABLE.match(character) and not _BREAKS.match(character):
            result.append(character)
            continue
        escape = _ESCAPES.get(code)
        if escape is None:
            escape = f"x{code:02X}" if code <= 0xFF else f"u{code:04X}" if code <= 0xFFFF else f"U{code:08X}"
        result.append("\\" + escape)
    return '"' + "".join(result) + '"'
