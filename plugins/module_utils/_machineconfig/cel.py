# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions of the language CEL that this product writes itself: selectors of disks and links, from fixed templates."""
from __future__ import annotations

import re
from collections.abc import Mapping

from . import go_text


def quote(text: str) -> str:
    """A CEL string. Go's quoting: only what has to be escaped is."""
    return '"' + "".join(
        f"\\{character}" if character in '"\\' else character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    ) + '"'


def device_path(path: str) -> str:
    """The disk with this kernel path, as Talos's generator writes it."""
    return f"disk.dev_path == {quote(path)}"


def disk_path(path: str) -> str:
    """The disk behind a path that a person gave: a link below /dev/disk is looked up among the disk's links."""
    return f"{quote(path)} in disk.symlinks" if path.startswith("/dev/disk/") else device_path(path)


def permanent_mac(mac: str) -> str:
    """The link with this permanent hardware address."""
    return f"mac(link.permanent_addr) == {quote(mac.lower())}"


_GLOBS = {"model": "model", "serial": "serial", "modalias": "modalias", "uuid": "uuid", "wwid": "wwid", "busPath": "bus_path", "name": "dev_path"}
_TYPES = {"nvme": 'disk.transport == "nvme"', "sd": 'disk.transport == "mmc"', "hdd": "disk.rotational", "ssd": "!disk.rotational"}
_REAL_DISK = 'disk.transport != "" && !disk.readonly && !disk.cdrom'
_COMPARISON = re.compile(r"(>=|<=|>|<|==)?\s*(.+)\Z", re.DOTALL)


def of_selector(selector: Mapping[str, str]) -> str:
    """A legacy disk selector as an expression (reference: legacy selector to CEL). `match` is taken as it stands.

    Raises ValueError for a size that is none or a type that Talos does not know.
    """
    if selector.get("match"):
        return selector["match"]
    terms = []
    if selector.get("size"):
        found = _COMPARISON.match(selector["size"].strip())
        sign, size = (found.group(1) or "==", found.group(2)) if found else ("==", "")
        terms.append(f"disk.size {sign} {_size(size)}")
    terms.extend(f"glob({quote(selector[key])}, disk.{field})" for key, field in _GLOBS.items() if selector.get(key))
    if selector.get("type"):
        if selector["type"] not in _TYPES:
            raise ValueError("the type of a disk is one of nvme, sd, hdd, ssd")
        terms.append(_TYPES[selector["type"]])
    return " && ".join([*terms, _REAL_DISK])


def _size(text: str) -> str:
    """Bytes as an expression, in the largest unit that loses nothing: `100u * GB`."""
    size = go_text.parse_bytes(text)
    factor, units = (1024, ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")) if "i" in text.lower() else (1000, ("kB", "MB", "GB", "TB", "PB", "EB"))
    unit = ""
    for following in units:
        if not size or size % factor:
            break
        size, unit = size // factor, following
    return f"{size}u * {unit}" if unit else f"{size}u"


_PATH_FORMS = (
    re.compile(r"disk\.dev_path\s*==\s*(\"(?:[^\"\\]|\\.)*\"|'[^'\\]*')\s*\Z"), re.compile(r"(\"(?:[^\"\\]|\\.)*\")\s+in\s+disk\.symlinks\s*\Z"),
)
_GLOB_TERM = re.compile(r"glob\((\"(?:[^\"\\]|\\.)*\"), disk\.([a-z_]+)\)\Z")
_SIZE_TERM = re.compile(r"disk\.size (>=|<=|>|<|==) ([0-9]+)u(?: \* ([KMGTPEk]i?B))?\Z")


def path_of(expression: str) -> str:
    """The path of an expression that is exactly one path (`device_path`, `disk_path`), else ""."""
    for form in _PATH_FORMS:
        found = form.match(expression.strip())
        if found:
            return _unquote(found.group(1))
    return ""


def selector_of(expression: str) -> dict[str, str]:
    """The legacy selector that `of_selector` made this expression of; {} for any other expression."""
    if not expression.endswith(_REAL_DISK):
        return {}
    head = expression[:-len(_REAL_DISK)]
    result: dict[str, str] = {}
    types = {text: name for name, text in _TYPES.items()}
    fields = {field: key for key, field in _GLOBS.items()}
    for term in head.split(" && ")[:-1]:
        glob, size = _GLOB_TERM.match(term), _SIZE_TERM.match(term)
        if glob and glob.group(2) in fields:
            result[fields[glob.group(2)]] = _unquote(glob.group(1))
        elif size:
            result["size"] = f"{size.group(1)} {size.group(2)}{size.group(3) or ''}"
        elif term in types:
            result["type"] = types[term]
        else:
            return {}
    return result


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


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
