# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words that the schemas of records are written in, and the check of one value against them.

They can say no more than a structural schema of Kubernetes can, so that one table serves both stores. There is no
default: a default would write a spec (design section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Union

from .records import Json, JsonMap
from .schema_formats import FORMATS

#: Where a value stands: keys and indexes from the top of the record.
Path = tuple[Union[str, int], ...]


@dataclass(frozen=True)
class Text:
    """A text. `format` is a key of `schema_formats.FORMATS`; `values` is a closed list; '' is refused unless `empty`."""

    format: str = ""
    values: tuple[str, ...] = ()
    empty: bool = False


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    minimum: int | None = None
    maximum: int | None = None
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class Truth:
    """true or false."""


@dataclass(frozen=True)
class ListOf:
    """A list; `unique` is for lists of texts in which a value may stand once."""

    item: Type
    unique: bool = False
    at_least: int = 0


@dataclass(frozen=True)
class MapOf:
    """A mapping of free keys to values of one type; `key_format` as in Text."""

    value: Type
    key_format: str = ""


@dataclass(frozen=True)
class Open:
    """Any mapping: what stands inside is checked by whoever knows it (Helm values, a Talos document)."""


@dataclass(frozen=True)
class Field:
    """One field of a block, with the sentence that docs and CRDs show."""

    type: Type
    doc: str
    required: bool = False


@dataclass(frozen=True)
class Block:
    """A mapping of known fields; every other key is refused by name."""

    fields: Mapping[str, Field] = field(default_factory=dict)


Type = Union[Text, Whole, Truth, ListOf, MapOf, Open, Block]


@dataclass(frozen=True)
class Problem:
    """What is wrong with a record, for a person. `rule` is stable; `line` is filled in by who knows the text (0: unknown)."""

    path: Path
    message: str
    rule: str
    line: int = 0

    @property
    def where(self) -> str:
        return dotted(self.path)

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def dotted(path: Path) -> str:
    """`spec.disks[0].role`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def check(value: Json | JsonMap, wanted: Type, path: Path) -> Iterator[Problem]:
    """Everything that is wrong with a value and what stands inside it."""
    if isinstance(wanted, Text):
        yield from _check_text(value, wanted, path)
    elif isinstance(wanted, Whole):
        yield from _check_whole(value, wanted, path)
    elif isinstance(wanted, Truth):
        if not isinstance(value, bool):
            yield Problem(path, f"{dotted(path)} has to be true or false, without quotes, and is {_kind(value)}.", "schema/type")
    elif isinstance(wanted, ListOf):
        yield from _check_list(value, wanted, path)
    elif not isinstance(value, Mapping):
        yield Problem(path, f"{dotted(path)} has to be a mapping and is {_kind(value)}.", "schema/type")
    elif isinstance(wanted, Block):
        yield from _check_block(value, wanted, path)
    elif isinstance(wanted, MapOf):
        for key, inner in value.items():
            fault = FORMATS[wanted.key_format].fault(key) if wanted.key_format else ""
            if fault:
                yield Problem((*path, key), f"The key '{key}' of {dotted(path)} {fault}.", f"schema/{wanted.key_format}")
            yield from check(inner, wanted.value, (*path, key))


def _check_text(value: Json | JsonMap, wanted: Text, path: Path) -> Iterator[Problem]:
    if isinstance(value, str) and value and not wanted.values and not wanted.format:
        return
    where = dotted(path)
    if not isinstance(value, str):
        example = FORMATS[wanted.format].example if wanted.format else ""
        hint = f"; put it in quotes{f', such as {example!r}' if example else ''}" if isinstance(value, (bool, int, float)) else ""
        yield Problem(path, f"{where} has to be a text and is {_kind(value)}{hint}.", "schema/type")
    elif wanted.values:
        if value not in wanted.values:
            yield Problem(path, f"{where} is '{_short(value)}'; it has to be one of {', '.join(wanted.values)}.", "schema/values")
    elif not value:
        if not wanted.empty:
            yield Problem(path, f"{where} is empty; leave the key out or give it a value.", "schema/empty")
    elif wanted.format:
        fault = FORMATS[wanted.format].fault(value)
        if fault:
            yield Problem(path, f"{where} is '{_short(value)}'; it {fault}.", f"schema/{wanted.format}")


def _check_whole(value: Json | JsonMap, wanted: Whole, path: Path) -> Iterator[Problem]:
    where = dotted(path)
    if isinstance(value, bool) or not isinstance(value, int):
        yield Problem(path, f"{where} has to be a whole number, without quotes, and is {_kind(value)}.", "schema/type")
    elif wanted.values and value not in wanted.values:
        yield Problem(path, f"{where} is {value}; it has to be one of {', '.join(map(str, wanted.values))}.", "schema/values")
    elif wanted.minimum is not None and value < wanted.minimum:
        yield Problem(path, f"{where} is {value}; it has to be at least {wanted.minimum}.", "schema/values")
    elif wanted.maximum is not None and value > wanted.maximum:
        yield Problem(path, f"{where} is {value}; it has to be at most {wanted.maximum}.", "schema/values")


def _check_list(value: Json | JsonMap, wanted: ListOf, path: Path) -> Iterator[Problem]:
    where = dotted(path)
    if not isinstance(value, list):
        yield Problem(path, f"{where} has to be a list and is {_kind(value)}.", "schema/type")
        return
    if len(value) < wanted.at_least:
        yield Problem(path, f"{where} has to hold at least {wanted.at_least}.", "schema/values")
    for index, item in enumerate(value):
        yield from check(item, wanted.item, (*path, index))
        if wanted.unique and item in value[:index]:
            yield Problem((*path, index), f"{where} holds '{_short(str(item))}' twice.", "schema/unique")


def _check_block(value: JsonMap, wanted: Block, path: Path) -> Iterator[Problem]:
    for name, entry in wanted.fields.items():
        if name in value:
            yield from check(value[name], entry.type, (*path, name))
        elif entry.required:
            yield Problem((*path, name), f"{dotted(path)}.{name} is missing.", "schema/required")
    for key in value:
        if key not in wanted.fields:
            near = next((name for name in wanted.fields if name.lower() == str(key).lower()), "")
            hint = f"; '{near}' is" if near else ""
            yield Problem((*path, str(key)), f"{dotted(path)}.{_short(str(key))} is not known{hint}.", "schema/unknown-key")


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"


def _short(text: str) -> str:
    return text if len(text) <= 64 else text[:61] + "..."
