# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of fields that hold one value: texts, numbers, bools, and texts with a form of their own."""
from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Any

from . import go_text, go_url
from .codec import Codec, Reading, patch_failed
from .natural_order import sorted_keys
from .scalars import BOOL_WORDS, parse_int, resolve, timestamp
from .yaml_read import MAPPING, SCALAR, SEQUENCE, Node


class Text(Codec):
    """A string. Numbers and bools become their text; a date does not (Talos refuses it, it has to be quoted)."""

    __slots__ = ("pointer",)
    zero = ""

    def __init__(self, pointer: bool = False) -> None:
        self.pointer = pointer

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, "a text")
        if node.plain:
            if node.is_null():
                return None
            if node.value[:1].isdigit() and timestamp(node.value) is not None:
                raise reading.wrong(node, "a text (a date has to be quoted)")
        return node.value if node.value or self.pointer else None


class Bool(Codec):
    __slots__ = ("pointer", "zero")

    def __init__(self, pointer: bool) -> None:
        self.pointer = pointer
        self.zero = None if pointer else False

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind == SCALAR:
            if node.is_null():
                return None
            if node.value in BOOL_WORDS and (node.plain or node.value.lower() not in ("true", "false")):
                return BOOL_WORDS[node.value] or (False if self.pointer else None)
        raise reading.wrong(node, "true or false")

    def merge(self, left: Any, right: Any) -> Any:
        return right if right is not None or not self.pointer else left


class Int(Codec):
    __slots__ = ("pointer", "zero", "_least", "_most", "_cuts")

    def __init__(self, pointer: bool, bits: int, signed: bool, cuts: bool = False) -> None:
        """cuts: this Talos version drops what stands behind the point."""
        self.pointer = pointer
        self._cuts = cuts
        self.zero = None if pointer else 0
        self._least = -(1 << (bits - 1)) if signed else 0
        self._most = (1 << (bits - 1 if signed else bits)) - 1

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind == SCALAR:
            if node.is_null():
                return None
            value = resolve(node)
            if isinstance(value, float) and not math.isnan(value) and abs(value) < 1 << 64 and (self._cuts or value == int(value)):
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool):
                if not self._least <= value <= self._most:
                    raise reading.wrong(node, f"a whole number from {self._least} to {self._most}")
                return value or (0 if self.pointer else None)
        raise reading.wrong(node, "a whole number")


class Octal(Int):
    """A file mode: read as a number, written as `0o644`."""

    __slots__ = ()

    def __init__(self, cuts: bool = False) -> None:
        super().__init__(False, 32, False, cuts)

    def output(self, value: Any) -> Any:
        return Verbatim(f"0o{value or 0:o}")


class Verbatim(str):
    """Text that is written to YAML without quotes, since it is not a string to Talos."""

    __slots__ = ()


class Duration(Codec):
    """Nanoseconds, written as Go does. zeros: the types of number of which a 0 without a unit is read too."""

    __slots__ = ("_zeros",)
    zero = "0s"

    def __init__(self, zeros: tuple[type, ...]) -> None:
        self._zeros = zeros

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind == SCALAR:
            if node.is_null():
                return None
            value = resolve(node)
            if isinstance(value, str):
                try:
                    return go_text.parse_duration(value) or None
                except ValueError:
                    raise reading.wrong(node, "a duration such as 1h30m") from None
            if type(value) in self._zeros and value == 0:
                return None
        raise reading.wrong(node, "a duration such as 1h30m")

    def output(self, value: Any) -> Any:
        return go_text.format_duration(value or 0)


class Formed(Codec):
    """A text that is brought into its normal form by a function (ValueError: wrong form). zero: the text of Go's zero value."""

    __slots__ = ("pointer", "zero", "_parse", "name")

    def __init__(self, name: str, parse: Callable[[str], str], zero: str = "", pointer: bool = False) -> None:
        self.name = name
        self._parse = parse
        self.zero = None if pointer else zero
        self.pointer = pointer

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, self.name)
        if node.is_null():
            return None
        try:
            value = self._parse(node.value)
        except ValueError:
            raise reading.wrong(node, self.name) from None
        return value if self.pointer or value != (self.zero or "") else None


class Overwritten(Formed):
    """CEL expressions: a patch overwrites them with what it has, with nothing too (reference: the traps of merging)."""

    __slots__ = ()

    def merge(self, left: Any, right: Any) -> Any:
        return right


class RawBytes(Formed):
    """Bytes in a text of their own: an empty one is left out, but empties what it is patched over."""

    __slots__ = ()

    def read(self, node: Node, reading: Reading) -> Any:
        value = super().read(node, reading)
        return "" if value is None and node.kind == SCALAR and not node.is_null() else value

    def empty(self, value: Any) -> bool:
        return not value


class Unmergeable(Formed):
    """Addresses outside of lists in Talos 1.12 and 1.13, where no patch can be merged into the document at all."""

    __slots__ = ()
    unmergeable = True


def optional(parse: Callable[[str], Any]) -> Callable[[str], str]:
    """The same form, with the empty text let through."""
    def parse_optional(text: str) -> str:
        return str(parse(text)) if text else ""
    return parse_optional


class Choice(Formed):
    """One of a fixed list of words; the first of the list is Go's zero value unless said otherwise."""

    __slots__ = ("words",)

    def __init__(self, words: tuple[str, ...], zero: str, pointer: bool) -> None:
        lowered = {word.lower(): word for word in words} | {word: word for word in words}

        def choose(text: str) -> str:
            word = lowered.get(text) or lowered.get(text.lower())
            if word is None:
                raise ValueError("not one of the words")
            return word

        super().__init__("one of " + ", ".join(word for word in words if word), choose, zero, pointer)
        self.words = words


class Url(Codec):
    """A URL in parts. keep_empty: an empty text is a URL too (the legacy endpoint)."""

    __slots__ = ("pointer", "zero", "_keep_empty")

    def __init__(self, pointer: bool = False, keep_empty: bool = False) -> None:
        self.pointer = pointer
        self.zero = None if pointer else ""
        self._keep_empty = keep_empty

    @property
    def element(self) -> Any:
        return None

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, "a URL")
        if node.is_null() or not node.value and not self._keep_empty:
            return None
        try:
            return go_url.parse(node.value)
        except ValueError as error:
            raise reading.wrong(node, f"a URL ({error})") from None

    def merge(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return left if right is None else right
        try:
            return go_url.merge(left, right)
        except ValueError as error:
            raise patch_failed(str(error)) from None

    def output(self, value: Any) -> Any:
        return self.zero if value is None else value.text()


class Base64(Codec):
    """Bytes in base64, replaced as a whole."""

    __slots__ = ()
    zero = ""

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SCALAR:
            raise reading.wrong(node, "base64 text")
        return None if node.is_null() else base64_text(node, reading)

    def empty(self, value: Any) -> bool:
        return not value


def base64_text(node: Node, reading: Reading) -> str:
    """The text of a scalar when it is base64 (line breaks inside are dropped, as Go does)."""
    text = str(node.value).replace("\r", "").replace("\n", "")
    try:
        if base64.b64encode(base64.b64decode(text, validate=True)).decode() != text:
            # Go takes non-canonical trailing bits and writes them canonically
            return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise reading.wrong(node, "base64 text") from None
    return text


class PemPair(Codec):
    """`{crt, key}` of the legacy document: both always written, both replaced together."""

    __slots__ = ("pointer", "keys")
    _REDACTED = "******"

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.pointer = True
        self.keys = keys

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != MAPPING:
            if node.is_null():
                return None
            raise reading.wrong(node, "a mapping with " + " and ".join(self.keys))
        value = dict.fromkeys(self.keys, "")
        for key, inner in node.value:
            reading.path.append(key.value)
            if key.value not in value:
                reading.unknown.append((".".join(reading.path), inner))
            elif inner.kind != SCALAR:
                raise reading.wrong(inner, "base64 text")
            elif not inner.is_null():
                redacted = key.value == "key" and inner.value == self._REDACTED
                value[key.value] = inner.value if redacted else base64_text(inner, reading)
            reading.path.pop()
        return value

    def copy(self, value: Any) -> Any:
        return None if value is None else dict(value)


class PortRanges(Codec):
    """Ports and ranges `a-b`."""

    __slots__ = ()
    zero = ()

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SEQUENCE:
            if node.is_null():
                return None
            raise reading.wrong(node, "a list of ports and ranges")
        return [self._port(item, reading) for item in node.value if not item.is_null()]

    def _port(self, node: Node, reading: Reading) -> Any:
        if node.kind == SCALAR:
            value = resolve(node)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 65536:
                return value
            found = re.fullmatch(r"([0-9]{1,20})-([0-9]{1,20})", str(node.value))
            if found and int(found.group(1)) < 65536 and int(found.group(2)) < 65536:
                low, high = int(found.group(1)), int(found.group(2))
                return low if low == high else f"{low}-{high}"
        raise reading.wrong(node, "a port or a range a-b")

    def empty(self, value: Any) -> bool:
        return not value

    def output(self, value: Any) -> Any:
        return list(value or ())


class Args(Codec):
    """`{flag: text or list of texts}`; a patch replaces a flag as a whole."""

    __slots__ = ()
    zero: Any = {}

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != MAPPING:
            if node.is_null():
                return None
            raise reading.wrong(node, "a mapping of flags")
        value: dict[str, Any] = {}
        for key, inner in node.value:
            reading.path.append(key.value)
            if inner.kind == SEQUENCE:
                value[key.value] = [item for item in (Text().read(entry, reading) if entry.kind == SCALAR else _fail(entry, reading)
                                                      for entry in inner.value) if item is not None]
            elif inner.kind == SCALAR:
                value[key.value] = Text().read(inner, reading)
            else:
                raise reading.wrong(inner, "a text or a list of texts")
            reading.path.pop()
        return value

    def merge(self, left: Any, right: Any) -> Any:
        return left if not right else {**(left or {}), **right}

    def empty(self, value: Any) -> bool:
        return not value

    def copy(self, value: Any) -> Any:
        return None if value is None else dict(value)

    def output(self, value: Any) -> Any:
        return {key: value[key] or None if isinstance(value[key], str) else value[key] for key in sorted_keys(value)} if value else {}


def _fail(node: Node, reading: Reading) -> Any:
    raise reading.wrong(node, "a text")


def routing_table(text: str) -> str:
    """A number from 1 to 255 or one of Talos's names."""
    lowered = text.lower()
    if lowered in ("unspec", "default", "main", "local"):
        return lowered
    number = parse_int(text) if re.fullmatch(r"[1-9][0-9]{0,2}", text) else None
    if number is None or not 1 <= number <= 252:
        raise ValueError("not a routing table")
    return str(number)
