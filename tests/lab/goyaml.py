# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAML as Talos prints resources: block style, four spaces, Go's rules for quoting a scalar."""

from __future__ import annotations

import re
from typing import Any

# What another YAML reader could take for something else than a string: base 60, then the booleans of YAML 1.1.
_SEXAGESIMAL = re.compile(r"^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$")
_NUMBER = re.compile(
    r"^(?:[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)|[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\."
    r"(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_DATE = re.compile(r"^\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?$")
_WORDS = frozenset("true True TRUE false False FALSE null Null NULL ~ y Y yes Yes YES on On ON n N no No NO off Off OFF <<".split())
_PLAIN_START = re.compile(r"^[^\s\-?:,\[\]{}#&*!|>'\"%@`]|^[-?:][^\s,\[\]{}]")


def scalar(value: Any, older: bool = False) -> str:
    """One scalar on one line (a block literal for text with line breaks is the caller's). 1.13 and before quote base 60 doubly."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if text == "" or text in _WORDS or _NUMBER.match(text) or _DATE.match(text):
        return '"' + text + '"'
    if any(ord(char) < 0x20 or ord(char) == 0x7F or 0x80 <= ord(char) < 0xA0 for char in text):
        return _double(text)
    if older and _SEXAGESIMAL.match(text):
        return '"' + text + '"'
    if _SEXAGESIMAL.match(text) or not _plain(text):
        return "'" + text.replace("'", "''") + "'"
    return text


def _plain(text: str) -> bool:
    if not _PLAIN_START.match(text) or text != text.strip() or text.startswith(("---", "...")):
        return False
    return ": " not in text and " #" not in text and not text.endswith(":")


def _double(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(char) or (char if ord(char) >= 0x20 and ord(char) != 0x7F else f"\\x{ord(char):02x}") for char in text) + '"'


def dump(value: Any, older: bool = False) -> str:
    """A document; a bare scalar becomes one line, text with line breaks a block literal."""
    if isinstance(value, dict):
        return _mapping(value, 0, older) if value else "{}\n"
    if isinstance(value, list):
        return _sequence(value, 0, older) if value else "[]\n"
    if isinstance(value, str) and "\n" in value:
        return literal(value)
    return scalar(value, older) + "\n"


def literal(text: str) -> str:
    """A top-level block literal, as the spec of a MachineConfig is printed."""
    indicator = "|" if text.endswith("\n") and not text.endswith("\n\n") else ("|-" if not text.endswith("\n") else "|+")
    hint = "4" if text[:1] in (" ", "\n") else ""
    lines = text[:-1].split("\n") if text.endswith("\n") else text.split("\n")
    return indicator[:1] + hint + indicator[1:] + "\n" + "".join(("    " + line if line else "") + "\n" for line in lines)


def _mapping(value: dict[str, Any], depth: int, older: bool, base: int | None = None) -> str:
    """`base` is the indentation that children are counted from: that of the dash for a mapping inside a list."""
    inner = (depth if base is None else base) + 4
    pad = " " * depth
    out = []
    for key, item in value.items():
        name = scalar(key, older)
        if isinstance(item, dict):
            out.append(f"{pad}{name}: {{}}\n" if not item else f"{pad}{name}:\n{_mapping(item, inner, older)}")
        elif isinstance(item, list):
            out.append(f"{pad}{name}: []\n" if not item else f"{pad}{name}:\n{_sequence(item, inner, older)}")
        elif isinstance(item, str) and "\n" in item:
            body = literal(item).split("\n", 1)
            indented = "".join(pad + line + "\n" if line else "\n" for line in body[1].split("\n")[:-1])
            out.append(f"{pad}{name}: {body[0]}\n{indented}")
        else:
            out.append(f"{pad}{name}: {scalar(item, older)}\n")
    return "".join(out)


def _sequence(value: list[Any], depth: int, older: bool) -> str:
    pad = " " * depth
    out = []
    for item in value:
        if isinstance(item, dict) and item:
            body = _mapping(item, depth + 2, older, depth)
            out.append(pad + "- " + body[depth + 2:])
        elif isinstance(item, list) and item:
            body = _sequence(item, depth + 2, older)
            out.append(pad + "- " + body[depth + 2:])
        else:
            out.append(pad + "- " + dump(item, older))
    return "".join(out)
