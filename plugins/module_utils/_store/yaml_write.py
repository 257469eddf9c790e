# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data as YAML text that every reader takes the same way: readers of YAML 1.1 and of 1.2 alike.

A text is written plain only where no reader could take it for something else; everything else is double-quoted as in
JSON, which is YAML too.
"""

from __future__ import annotations

import json
import re

from .._model.records import Json
from .yaml_nodes import YamlProblem, resolve_plain

try:
    import yaml
except ImportError:  # reported by the module that runs
    yaml = None  # type: ignore[assignment]

_PLAIN = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+=:@~%^ -]*\Z")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_HIDDEN = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def scalar(value: None | bool | int | float | str, *, quote: str = "") -> str:
    """One scalar on one line. `quote` is the quotation mark to keep to where the text allows it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = json.dumps(value)
        return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 knows no number with an exponent and no dot
    if quote == "'" and value.isprintable() and not _HIDDEN.search(value):
        return "'" + value.replace("'", "''") + "'"
    if quote != '"' and _is_plain(value):
        return value
    return quoted(value)


def quoted(text: str) -> str:
    """A double-quoted text."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    if not _PLAIN.match(text) or ": " in text or text.endswith((":", " ")) or text.lower() in _WORDS:
        return False
    if text[0].isdigit() and text.replace("_", "").isdigit():
        return False  # leading zeros, underscores: numbers to some readers
    try:
        if not isinstance(resolve_plain(text), str):
            return False
    except YamlProblem:
        return False
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers if yaml is not None else {}
    return not any(pattern.match(text) for dummy, pattern in resolvers.get(text[0], []))


def flow(value: Json) -> str:
    """Any value on one line, in the form with braces and brackets."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow_word(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return _flow_word(value) if isinstance(value, str) else scalar(value)


def _flow_word(text: str) -> str:
    """Inside braces a plain text must not hold a colon: some readers split it there."""
    return quoted(text) if ":" in text else scalar(text)


def block(value: Json, indent: int, *, step: int = 2, dash: int = 2) -> list[str]:
    """A non-empty mapping or list as lines, indented by `indent` spaces; `dash` is how far a list stands in from its key."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            lines += entry(key, inner, indent, step=step, dash=dash)
    elif isinstance(value, list):
        for item in value:
            lines += item_lines(item, indent, step=step, dash=dash)
    return lines


def entry(key: str, value: Json, indent: int, *, step: int = 2, dash: int = 2) -> list[str]:
    """One `key: value` of a block mapping as lines."""
    head = " " * indent + f"{scalar(key)}:"
    if not isinstance(value, (dict, list)):
        return [f"{head} {scalar(value)}"]
    if not value:
        return [f"{head} {flow(value)}"]
    return [head, *block(value, indent + (step if isinstance(value, dict) else dash), step=step, dash=dash)]


def item_lines(value: Json, indent: int, *, step: int = 2, dash: int = 2) -> list[str]:
    """One item of a block list as lines; `indent` is where the dash stands."""
    mark = " " * indent + "- "
    if not isinstance(value, (dict, list)):
        return [mark + scalar(value)]
    if not value:
        return [mark + flow(value)]
    inner = block(value, indent + 2, step=step, dash=dash)
    return [mark + inner[0][indent + 2:], *inner[1:]]


def document(value: dict[str, Json]) -> str:
    """A whole new file."""
    return "\n".join(block(value, 0)) + "\n"
