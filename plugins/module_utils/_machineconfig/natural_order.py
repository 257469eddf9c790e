# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of map keys in Talos's YAML: runs of digits compare as numbers, letters come after other characters."""
from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key, lru_cache


def sorted_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys in that order. The same few sets of keys come again and again, so results are kept."""
    return _sorted(tuple(keys))


@lru_cache(maxsize=4096)
def _sorted(keys: tuple[str, ...]) -> tuple[str, ...]:
    if len(keys) < 2:
        return keys
    return tuple(sorted(keys, key=cmp_to_key(_compare)))


def _compare(left: str, right: str) -> int:
    if left == right:
        return 0
    return -1 if _less(left, right) else 1


def _less(left: str, right: str) -> bool:
    after_digit = False
    for index, (one, other) in enumerate(zip(left, right)):
        if one == other:
            after_digit = one.isdecimal()
            continue
        one_letter, other_letter = one.isalpha(), other.isalpha()
        if one_letter and other_letter:
            return one < other
        if one_letter or other_letter:
            return one_letter if after_digit else other_letter
        lead = 0
        if one == "0" or other == "0":
            before = index - 1
            while before >= 0 and left[before].isdecimal():
                if left[before] != "0":
                    lead = 1
                    break
                before -= 1
        one_end, one_number = _number(left, index, lead)
        other_end, other_number = _number(right, index, lead)
        if one_number != other_number:
            return one_number < other_number
        if one_end != other_end:
            return one_end < other_end
        return one < other
    return len(left) < len(right)


def _number(text: str, start: int, lead: int) -> tuple[int, int]:
    end = start
    number = lead
    while end < len(text) and text[end].isdecimal():
        number = number * 10 + ord(text[end]) - 48
        end += 1
    return end, number
