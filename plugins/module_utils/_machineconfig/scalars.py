# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plain YAML scalar means to Talos.

The rules are those of Go's yaml.v4, not those of YAML 1.1: `on`, `yes` and `1:30` are text, `0777` and `0o777` are 511,
`1_000` is 1000, a date is a timestamp, `true` is a bool in three spellings.
"""
from __future__ import annotations

import datetime
import re
from typing import Union

from .yaml_read import Node

Scalar = Union[bool, int, float, str, datetime.datetime, None]

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys(("-0", "-0.0"), -0.0),
}
# Words that Go's decoder takes for a bool when the field is one, quoted or not.
BOOL_WORDS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_INT = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|(0|[1-9][0-9]*))\Z")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:([Tt ])([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,]([0-9]{1,9}))?(Z|[-+][0-9]{2}:[0-9]{2})?)?\Z"
)
_START = frozenset("+-.0123456789yYnNtTfFoO~<")


def resolve(node: Node) -> Scalar:
    """The value of a scalar node in a place that takes any type."""
    if not node.plain:
        return str(node.value)
    return resolve_plain(node.value)


def resolve_plain(text: str) -> Scalar:
    if text and text[0] not in _START:
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == ".":
        return _float(text)
    if first in "+-0123456789":
        moment = timestamp(text)
        if moment is not None:
            return moment
        digits = text.replace("_", "")
        number = parse_int(digits)
        if number is not None:
            return number
        if _FLOAT.match(digits):
            return _float(digits)
    return text


def _float(text: str) -> float | str:
    """A decimal number in the range of a double, or the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    if number in (float("inf"), float("-inf")) or not re.fullmatch(r"[-+]?[0-9_.]+([eE][-+]?[0-9]+)?", text):
        return text
    return number


def parse_int(text: str) -> int | None:
    """An integer of 64 bits (signed or unsigned) in any of Go's notations; None when it is none."""
    found = _INT.match(text)
    if found is None:
        return None
    sign, hexadecimal, binary, octal, old_octal, decimal = found.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (old_octal, 8), (decimal, 10)):
        if digits is not None:
            if len(digits) > 70:
                return None
            number = int(digits, base) * (-1 if sign == "-" else 1)
            if -(1 << 63) <= number < (1 << 63) or (not sign and number < (1 << 64)):
                return number
            return None
    return None


def timestamp(text: str) -> datetime.datetime | None:
    """A moment in one of the forms that Go's decoder takes for one; None when it is none."""
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day, mark, hour, minute, second, fraction, zone = found.groups()
    if mark == " " and zone or mark in ("T", "t") and not zone:
        return None
    tz = datetime.timezone.utc
    try:
        if zone and zone != "Z":
            delta = datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            tz = datetime.timezone(-delta if zone[0] == "-" else delta)
        micro = int(((fraction or "") + "000000")[:6])
        return datetime.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micro, tz)
    except ValueError:
        return None
