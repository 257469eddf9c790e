# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of fields that hold a size: bytes, a share of a disk, a condition on a size."""
from __future__ import annotations

import re
from typing import Any

from . import go_text
from .codec import Codec, Reading, patch_failed
from .yaml_read import SCALAR, Node


class ByteSize(Codec):
    """Bytes as they were typed: (text, sign). A patch overwrites the text, with nothing too, but the sign stays (a slip of Talos's)."""

    __slots__ = ("_negative",)
    zero = ""
    name = "a size such as 10GB"

    def __init__(self, negative: bool) -> None:
        """negative: whether this Talos version knows negative sizes."""
        self._negative = negative

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, self.name)
        if node.is_null() or not node.value:
            return None
        try:
            byte_size(node.value, self._negative)
        except ValueError:
            raise reading.wrong(node, self.name) from None
        return node.value, node.value.startswith("-")

    def merge(self, left: Any, right: Any) -> Any:
        negative = left is not None and left[1]
        return (right[0], negative) if right is not None else ("", True) if negative else None

    def empty(self, value: Any) -> bool:
        return value is None or not value[0]

    def output(self, value: Any) -> Any:
        return "" if value is None else value[0]


def byte_size(text: str, negative: bool = True) -> int:
    return go_text.parse_bytes(text[1:] if negative and text.startswith("-") else text)


def percentage(text: str, negative: bool = True) -> int:
    number = text[:-1].removeprefix("-") if negative else text[:-1]
    if not text.endswith("%") or not re.fullmatch(r"[+]?[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?", number) or not re.search("[0-9]", number):
        raise ValueError("not a percentage")
    if not 0 <= float(number) <= 100:
        raise ValueError("a percentage is from 0 to 100")
    return int(float(number))


class Size(Codec):
    """Bytes or a share. Talos keeps both apart: (bytes or None, share or None), and writes the bytes if there are any."""

    __slots__ = ("_negative",)
    zero = ""

    def __init__(self, negative: bool) -> None:
        self._negative = negative

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, "a size such as 10GB or 80%")
        if node.is_null() or not node.value:
            return None
        try:
            if "%" in node.value:
                percentage(node.value, self._negative)
                return None, node.value
            byte_size(node.value, self._negative)
            return node.value, None
        except ValueError:
            raise reading.wrong(node, "a size such as 10GB or 80%") from None

    def merge(self, left: Any, right: Any) -> Any:
        if right is None or left is None:
            return left if right is None else right
        return right[0] if right[0] is not None else left[0], right[1] if right[1] is not None else left[1]

    def output(self, value: Any) -> Any:
        return "" if value is None else value[0] if value[0] is not None else value[1]


class SizeCondition(Codec):
    """`>= 100GB` and the like; Talos cannot patch one over another."""

    __slots__ = ()
    _FORM = re.compile(r"(>=|<=|>|<|==)?(.*)\Z", re.DOTALL)

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, "a condition such as '>= 100GB'")
        if node.is_null():
            return None
        text = node.value.strip()
        found = self._FORM.match(text)
        try:
            go_text.parse_bytes(found.group(2).strip() if found else "")
        except ValueError:
            raise reading.wrong(node, "a condition such as '>= 100GB'") from None
        return text

    def merge(self, left: Any, right: Any) -> Any:
        if left is not None and right is not None:
            raise patch_failed("a size condition cannot be patched over another one; delete it first")
        return left if right is None else right


class DiskSize(Codec):
    """Bytes, written the human way where that loses nothing."""

    __slots__ = ()
    zero = "0 B"

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR or node.is_null():
            if node.kind == SCALAR:
                return None
            raise reading.wrong(node, "a size such as 10GB")
        try:
            return go_text.parse_bytes(node.value) or None
        except ValueError:
            raise reading.wrong(node, "a size such as 10GB") from None

    def output(self, value: Any) -> Any:
        size = value or 0
        if size % 1000 == 0:
            text = go_text.format_bytes(size)
            if go_text.parse_bytes(text) == size:
                return text
        return size
