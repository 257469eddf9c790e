# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may import whom, as docs/architecture.md draws it: `python -m tests.lint.rooms` prints each import that crosses a wall."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "ansible_collections.ichor.talos.plugins.module_utils"

_LOW = {"_model", "_machineconfig", "_decide", "_node", "_kube", "_store", "_archive"}

# Room: the rooms that it knows beside itself.
KNOWS: dict[str, set[str]] = {
    "_model": set(),
    "_machineconfig": {"_model"},
    "_decide": {"_model", "_machineconfig"},
    "_node": {"_model"},
    "_kube": {"_model"},
    "_store": {"_model", "_kube"},
    "_archive": {"_model"},
    "_operations": _LOW,
    "_controller": _LOW | {"_operations"},
    "_ansible": {"_model"},
}

# Files of `_ansible` that bring one room to the modules that need it; its base knows the words alone.
BRINGING = ("with_", {"_node", "_store", "_kube"})

# What runs in Ansible's processes. A module says which operation it is; the rules stay below.
FRONT: dict[str, set[str]] = {
    "plugins/modules": set(KNOWS) - {"_decide", "_machineconfig"},
    "plugins/action": {"_model", "_ansible", "_store"},
    "plugins/inventory": {"_model", "_ansible", "_store", "_kube", "_operations"},
    "plugins/filter": {"_model", "_ansible", "_machineconfig"},
    "plugins/doc_fragments": set(),
}

# Rooms of pure functions, and what would make them impure: the outside world, a clock, chance.
PURE = {"_model", "_machineconfig", "_decide"}
IMPURE_MODULES = {
    *("ansible", "grpc", "kubernetes", "requests"),
    *("asyncio", "http", "multiprocessing", "socket", "ssl", "subprocess", "threading"),
    *("random", "secrets", "time"),
}
CLOCK_READS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}

# A library that only these rooms may import.
ONLY_IN = {
    "grpc": {"_node"},
    "ansible": {"_ansible"},
    "kubernetes": {"_kube"},
}


@dataclass(frozen=True)
class Import:
    """One imported module by its full dotted name, and the line where it stands."""

    name: str
    line: int


def faults(root: Path) -> list[str]:
    """Each import under `root` (a collection's root) that the drawing does not have, as "file:line: what is wrong"."""
    found: list[str] = []
    utilities = root / "plugins/module_utils"
    for path in sorted(utilities.rglob("*.py")):
        parts = path.relative_to(utilities).parts
        where = path.relative_to(root).as_posix()
        if parts[0] not in KNOWS:
            found.append(f"{where}:1: {parts[0]} is no room of the architecture")
            continue
        found.extend(f"{where}:{fault}" for fault in _in_room(path, parts))
    for folder, known in FRONT.items():
        for path in sorted((root / folder).glob("*.py")):
            where = path.relative_to(root).as_posix()
            for entry in _imports(ast.parse(path.read_text(encoding="utf-8")), ()):
                room = _room(entry.name)
                if room and room not in known and not (folder == "plugins/modules" and _is_word(entry.name)):
                    found.append(f"{where}:{entry.line}: {folder} does not know {room}")
                if entry.name.partition(".")[0] in ("grpc", "google", "kubernetes"):
                    found.append(f"{where}:{entry.line}: only a room below may import {entry.name}")
    found.extend(_in_lab(root))
    return found


def _in_room(path: Path, parts: tuple[str, ...]) -> Iterator[str]:
    room = parts[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for entry in _imports(tree, (*PACKAGE.split("."), *parts[:-1])):
        other = _room(entry.name)
        top = entry.name.partition(".")[0]
        brought = BRINGING[1] if room == "_ansible" and path.name.startswith(BRINGING[0]) else set()
        if other and other != room and other not in KNOWS[room] | brought:
            yield f"{entry.line}: {room} does not know {other}"
        if room in PURE and top in IMPURE_MODULES:
            yield f"{entry.line}: {room} is pure and cannot import {entry.name}"
        if top in ONLY_IN and room not in ONLY_IN[top]:
            yield f"{entry.line}: {room} cannot import {entry.name}; that is for {', '.join(sorted(ONLY_IN[top]))}"
        if top == "ansible_collections" and not other:
            yield f"{entry.line}: {room} cannot import {entry.name}"
    if room in PURE:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _read(node.func) in CLOCK_READS:
                yield f"{node.lineno}: {room} is pure and cannot read the clock"


def _in_lab(root: Path) -> Iterator[str]:
    """The lab may import the descriptors and nothing else of the product, so that both cannot be wrong in the same way."""
    for path in sorted((root / "tests/lab").rglob("*.py")):
        for entry in _imports(ast.parse(path.read_text(encoding="utf-8")), ()):
            if entry.name.startswith("ansible_collections.") and not entry.name.startswith(f"{PACKAGE}._node._descriptors"):
                yield f"{path.relative_to(root).as_posix()}:{entry.line}: the lab imports nothing of the product but its descriptors, not {entry.name}"


def _imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[Import]:
    """Every import at any depth; relative ones are resolved against `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*package[: len(package) - node.level + 1],) if node.level else ()
            stem = ".".join((*base, *((node.module,) if node.module else ())))
            yield from (Import(f"{stem}.{alias.name}", node.lineno) for alias in node.names)


def _room(name: str) -> str | None:
    return name.removeprefix(f"{PACKAGE}.").partition(".")[0] if name.startswith(f"{PACKAGE}.") else None


def _is_word(name: str) -> bool:
    """Whether it comes from a file of `_decide` that holds only the words of a rule, which a module's request is made of."""
    return name.startswith(f"{PACKAGE}._decide.") and name.removeprefix(f"{PACKAGE}._decide.").partition(".")[0].endswith("_words")


def _read(function: ast.Attribute) -> tuple[str, str]:
    value = function.value
    return (value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else "", function.attr)


if __name__ == "__main__":
    lines = faults(Path.cwd())
    print("\n".join(lines))
    sys.exit(bool(lines))
