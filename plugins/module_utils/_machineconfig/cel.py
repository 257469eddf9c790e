# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions of the language CEL that this product writes itself: selectors of disks and links, from fixed templates."""
from __future__ import annotations

import re


def quote(text: str) -> str:
    """A CEL string. Go's quoting: only what has to be escaped is."""
    return '"' + "".join(
        f"\\{character}" if character in '"\\' else character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    ) + '"'


def equals_path(path: str) -> str:
    """The disk with this device path, as Talos's generator writes it; a link such as /dev/disk/by-id/… is looked up in its symlinks."""
    if path.startswith("/dev/disk/"):
        return f"{quote(path)} in disk.symlinks"
    return f"disk.dev_path == {quote(path)}"


def permanent_mac(mac: str) -> str:
    """The link with this permanent hardware address."""
    return f"mac(link.permanent_addr) == {quote(mac.lower())}"


def balanced(expression: str) -> bool:
    """Whether quotes, brackets and braces close: all that is checked of an expression here; Talos checks the rest."""
    rest = re.sub(r"'''.*?'''|\"\"\".*?\"\"\"|[rR]?'(?:\\.|[^'\\\n])*'|[rR]?\"(?:\\.|[^\"\\\n])*\"", "''", expression, flags=re.DOTALL)
    if '"' in rest or rest.replace("''", "").count("'"):
        return False
    closing = {")": "(", "]": "[", "}": "{"}
    stack: list[str] = []
    for character in rest:
        if character in "([{":
            stack.append(character)
        elif character in closing and (not stack or stack.pop() != closing[character]):
            return False
    return not stack


_UNITS = frozenset({"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "kB", "MB", "GB", "TB", "PB", "EB"})
_CLASSES = frozenset({"Besteffort", "Burstable", "Guaranteed", "Podruntime", "System"})
_PRESSURE = frozenset(f"memory_{kind}_{span}" for kind in ("some", "full") for span in ("avg10", "avg60", "avg300", "total"))
_USAGE = frozenset({"qos_memory_current", "qos_memory_peak", "qos_memory_max"})
_TRIGGER = _PRESSURE | {f"qos_{name}" for name in _PRESSURE} | _USAGE
#: The variables that an expression may use, by the place where it stands.
DISK = frozenset({"disk", "system_disk"}) | _UNITS
VOLUME = frozenset({"volume", "disk"}) | _UNITS
LINK = frozenset({"link"})
OOM_TRIGGER = _TRIGGER | {f"d_{name}" for name in _TRIGGER} | {"time_since_trigger"} | _UNITS | _CLASSES
OOM_RANKING = frozenset({"memory_max", "memory_current", "memory_peak", "path", "class"}) | _UNITS | _CLASSES
_ALWAYS = frozenset({
    "true", "false", "null", "in", "bool", "bytes", "double", "duration", "dyn", "int", "list", "map", "string", "timestamp", "type", "uint", "null_type",
    "optional", "google",
})
_MACROS = re.compile(r"\.(?:all|exists|exists_one|map|filter|transformList|transformMap|optMap|optFlatMap)\s*\(")
_STRINGS = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|[rRbB]{0,2}'(?:\\.|[^'\\\n])*'|[rRbB]{0,2}\"(?:\\.|[^\"\\\n])*\"|//[^\n]*", re.DOTALL)
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\s*\(|\w)")


def wrong_expression(text: str, variables: frozenset[str]) -> str:
    """"" or what is wrong with an expression, in the words of CEL where it is a name that is not there.

    Brackets and quotes are checked, and names of variables; types, fields and functions are left to Talos. An expression with
    a macro (`exists` and the like) has variables of its own, so its names are left to Talos, too.
    """
    if not balanced(text):
        return "Syntax error: brackets or quotes do not close"
    bare = _STRINGS.sub(lambda found: " " * len(found.group(0)), text)
    if _MACROS.search(bare):
        return ""
    wrong = []
    for found in _IDENTIFIER.finditer(bare):
        name = found.group(0)
        before = bare[:found.start()].rstrip()
        after = bare[found.end():].lstrip()
        if name in variables or name in _ALWAYS or before.endswith(".") or before.endswith(("{", ",")) and after.startswith(":"):
            continue
        line = text.count("\n", 0, found.start())
        column = found.start() - (text.rfind("\n", 0, found.start()) + 1)
        shown = text.split("\n")[line]
        wrong.append(
            f"ERROR: <input>:{line + 1}:{column + 1}: undeclared reference to '{name}' (in container '')\n | {shown}\n | {'.' * column}^")
    return "\n".join(wrong)
