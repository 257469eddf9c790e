# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparing what a lab node said with what a recorded row says; masks stand for any value of their form."""

from __future__ import annotations

import functools
import re
from typing import Any

_MASKS = {
    "time": r".*?", "duration": r"[0-9.hms]+", "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "xid": r"(?:[0-9a-v]{20}|\d+)", "id": r"[0-9A-Za-z+/=]+",
    "member-id": r"(?:\d+|[0-9a-f]{16})", "member-id-hex": r"[0-9a-f]{16}", "int": r"\d+", "port": r"\d+", "cert": r"(?s:.*?)", "secret": r"(?s:.*?)",
    "bytes": r"(?s:.*?)", "path": r"\S*", "registry": r"[^\s\"]*?", "discovery-host": r"[^\s/]+", "bookmark": r".*?", "host name": r".*?",
    "host data": r"(?s:.*?)",
}
_MASK = re.compile(
    r"<(ip:[\w]+|time|duration|uuid|xid|id|member-id-hex|member-id|int|port|cert|secret|bytes|path|registry|discovery-host|bookmark"
    r"|host name|host data|log text, \d+ bytes|snapshot chunk, \d+ bytes)>"
)
_UNORDERED = frozenset(("legacy_members", "members", "member_alarms"))
_ONE_LINE_SECRET = r"[^\n]*"


@functools.lru_cache(maxsize=4096)
def _pattern(expected: str, addresses: tuple[tuple[str, str], ...], loose: bool) -> re.Pattern[str]:
    known = dict(addresses)
    out, last = [], 0
    for found in _MASK.finditer(expected):
        out.append(_literal(expected[last:found.start()], loose))
        name = found.group(1)
        if name.startswith("ip:"):
            out.append(re.escape(known.get(name[3:], "?")) if name[3:] in known else r"[0-9a-fA-F.:]+")
        elif name == "secret" and "\n" in expected:
            out.append(_ONE_LINE_SECRET)
        else:
            out.append(_MASKS.get(name, r"(?s:.*?)"))
        last = found.end()
    out.append(_literal(expected[last:], loose))
    return re.compile("".join(out) + r"\Z", re.S)


def _literal(text: str, loose: bool) -> str:
    escaped = re.escape(text)
    return re.sub(r"\\\(line\\ \d+\\\)|\\\(line \d+\\\)", r"\\(line \\d+\\)", escaped) if loose else escaped


def text_matches(expected: str, actual: str, addresses: dict[str, str], loose: bool = False) -> bool:
    if expected == actual:
        return True
    if "<" not in expected and not loose:
        return False
    return _pattern(expected, tuple(sorted(addresses.items())), loose).match(actual) is not None


class Mismatch(Exception):
    """Where and how an answer differs."""


def compare(expected: Any, actual: Any, addresses: dict[str, str], varies: tuple[str, ...] = (), path: str = "/responses") -> None:
    """Raises Mismatch at the first difference. Lists of members are sets; a last element `<N more>` stands for the rest."""
    if path in varies or any(path.startswith(item + "/") for item in varies):
        return
    if expected == "<uuid>" and path.endswith("/actor_id") and actual:
        return  # the recording masks whatever actor was asked for
    if isinstance(expected, str) and isinstance(actual, (str, int)) and text_matches(expected, str(actual), addresses):
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected:
            if key not in actual:
                if f"{path}/{key}" in varies:
                    continue
                raise Mismatch(f"{path}/{key} is missing, expected {expected[key]!r}")
            compare(expected[key], actual[key], addresses, varies, f"{path}/{key}")
        extra = [key for key in actual if key not in expected and f"{path}/{key}" not in varies]
        if extra:
            raise Mismatch(f"{path}/{extra[0]} is {actual[extra[0]]!r}, not expected")
        return
    if isinstance(expected, list) and isinstance(actual, list):
        _lists(expected, actual, addresses, varies, path)
        return
    if expected != actual:
        raise Mismatch(f"{path}: expected {expected!r}, got {actual!r}")


def _lists(expected: list[Any], actual: list[Any], addresses: dict[str, str], varies: tuple[str, ...], path: str) -> None:
    wanted = list(expected)
    if wanted and isinstance(wanted[-1], str) and re.match(r"^<\d+ more>$", wanted[-1]):
        wanted.pop()
        actual = actual[:len(wanted)]
    if wanted and isinstance(wanted[0], str) and re.match(r"^<\d+ earlier>$", wanted[0]):
        wanted = wanted[1:]
        actual = actual[len(actual) - len(wanted):]
    if len(wanted) != len(actual):
        raise Mismatch(f"{path} has {len(actual)} entries, expected {len(wanted)}")
    if path.rpartition("/")[2] in _UNORDERED:
        rest = list(actual)
        for item in wanted:
            hit = next((index for index, candidate in enumerate(rest) if _equal(item, candidate, addresses, varies, path)), None)
            if hit is None:
                raise Mismatch(f"{path}: {item!r} is not among {rest!r}")
            rest.pop(hit)
        return
    for first, second in zip(wanted, actual, strict=True):
        compare(first, second, addresses, varies, path)


def _equal(expected: Any, actual: Any, addresses: dict[str, str], varies: tuple[str, ...], path: str) -> bool:
    try:
        compare(expected, actual, addresses, varies, path)
    except Mismatch:
        return False
    return True
