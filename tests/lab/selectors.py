# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks a selector matches: the install selector's fields, and the CEL expressions that people write for it.

An expression that this does not understand matches nothing; an oracle of Talos's own code can be asked instead.
"""

from __future__ import annotations

import fnmatch
import re
from typing import Any

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "u * KB": 10**3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_TERM = re.compile(r'^\(?\s*(!?)\s*disk\.(\w+)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*\)?$')
_GLOB = re.compile(r'^\(?\s*(!?)\s*glob\(\s*("(?:[^"\\]|\\.)*"|\'[^\']*\')\s*,\s*disk\.(\w+)\s*\)\s*\)?$')
_IN = re.compile(r"^\(?\s*(\"[^\"]*\"|'[^']*')\s+in\s+disk\.symlinks\s*\)?$")


_DISK_FIELDS = frozenset((
    "dev_path", "size", "pretty_size", "io_size", "sector_size", "readonly", "cdrom", "model", "serial", "modalias", "wwid", "uuid", "bus_path", "sub_system",
    "transport", "rotational", "secondary_disks", "symlinks", "firmware_version",
))
_EXPECTING = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"


def expression_error(text: str) -> str | None:
    """The two mistakes in an expression that the lab can tell: it ends too early, or a disk has no such field."""
    bare = re.sub(r"\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'", lambda found: "_" * len(found.group(0)), text)
    if re.search(r"(?:==|!=|<=|>=|<|>|&&|\|\||\+|-|\*|/)\s*$", bare):
        column = len(text.rstrip()) + 1
        return f"ERROR: <input>:1:{column}: Syntax error: mismatched input '<EOF>' expecting {_EXPECTING}\n | {text}\n | {'.' * (column - 1)}^"
    for found in re.finditer(r"\bdisk(\.)(\w+)", bare):
        if found.group(2) not in _DISK_FIELDS:
            column = found.start(1) + 1
            return f"ERROR: <input>:1:{column}: undefined field '{found.group(2)}'\n | {text}\n | {'.' * (column - 1)}^"
    return None


def matching(disks: list[dict[str, Any]], selector: Any) -> list[str]:
    """Kernel names of the matching disks, in name order. Read-only and optical disks never match an install selector."""
    found = []
    for disk in sorted(disks, key=lambda item: str(item["dev_path"])):
        if isinstance(selector, str):
            if _expression(disk, selector):
                found.append(disk["dev_path"].removeprefix("/dev/"))
        elif isinstance(selector, dict) and not disk["readonly"] and not disk["cdrom"] and disk.get("transport") and _fields(disk, selector):
            found.append(disk["dev_path"].removeprefix("/dev/"))
    return found


def _fields(disk: dict[str, Any], selector: dict[str, Any]) -> bool:
    for key, wanted in selector.items():
        name = {"busPath": "bus_path", "name": "dev_path"}.get(key, key)
        if key == "size":
            if not _size(disk["size"], str(wanted)):
                return False
        elif key == "type":
            kind = "nvme" if disk.get("transport") == "nvme" else ("hdd" if disk.get("rotational") else "ssd")
            if str(wanted) != kind:
                return False
        elif not fnmatch.fnmatchcase(str(disk.get(name, "")), str(wanted)):
            return False
    return True


def _size(size: int, condition: str) -> bool:
    found = re.match(r"^\s*(<=|>=|<|>|==)?\s*([\d.]+)\s*([KMGT]i?B|B)?\s*$", condition)
    if found is None:
        return False
    return _compare(size, found.group(1) or "==", float(found.group(2)) * _UNITS[found.group(3) or ""])


def _compare(left: Any, operator: str, right: Any) -> bool:
    return bool({"==": left == right, "!=": left != right}.get(operator)) if operator in ("==", "!=") else {
        "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
    }[operator]


def _expression(disk: dict[str, Any], text: str) -> bool:
    return any(all(_term(disk, term.strip()) for term in part.split("&&")) for part in text.split("||"))


def _term(disk: dict[str, Any], term: str) -> bool:
    if term in ("system_disk", "!system_disk"):
        return term.startswith("!")
    glob = _GLOB.match(term)
    if glob is not None:
        return fnmatch.fnmatchcase(str(disk.get(glob.group(3), "")), glob.group(2)[1:-1]) != bool(glob.group(1))
    inside = _IN.match(term)
    if inside is not None:
        return inside.group(1)[1:-1] in disk.get("symlinks", ())
    found = _TERM.match(term)
    if found is None:
        return False
    negated, name, operator, literal = found.groups()
    value = disk.get(name, "")
    if operator is None:
        return bool(value) != bool(negated)
    return _compare(value, operator, _literal(literal))


def _literal(text: str) -> Any:
    text = text.strip()
    if text[:1] in "\"'":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    found = re.match(r"^([\d.]+)u?\s*(?:\*\s*)?([KMGT]i?B|B)?$", text)
    return float(found.group(1)) * _UNITS[found.group(2) or ""] if found else text
