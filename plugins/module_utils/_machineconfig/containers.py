# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of fields that hold others: structures, lists, maps and free-form data, with Talos's rules of merging.

Decoded structures are dicts by the field's name in which an absent key is Go's zero value; they are changed in place while
patches are merged, so whatever is taken over from a patch is copied.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from . import problem
from .codec import Codec, Reading, patch_failed
from .natural_order import sorted_keys
from .problem import ConfigProblem
from .yaml_read import MAPPING, SCALAR, SEQUENCE, Node
from .scalars import resolve


class Field(NamedTuple):
    """One field of a structure: its name, its type, whether it is left out when empty."""

    name: str
    codec: Codec
    omit_empty: bool


class Struct(Codec):
    """A structure; pointer says whether Go has a pointer to it, so that `{}` is something else than nothing."""

    __slots__ = ("pointer", "_make", "_fields", "_by_name", "zero", "_decisive")

    def __init__(self, make: Any, pointer: bool, decisive: tuple[str, ...] = ()) -> None:
        """make: gives the fields. decisive: the fields that decide whether it is empty, where Talos looks at these only."""
        self.pointer = pointer
        self._decisive = decisive
        self.zero = None
        self._make = make
        self._fields: tuple[Field, ...] | None = None
        self._by_name: dict[str, Codec] = {}

    @property
    def fields(self) -> tuple[Field, ...]:
        """Made when they are first needed, since few kinds are used in one configuration."""
        if self._fields is None:
            self._fields = self._make()
            self._by_name = {field.name: field.codec for field in self._fields}
        return self._fields

    @property
    def element(self) -> Any:
        return {}

    def field(self, name: str) -> Codec | None:
        if self._fields is None:
            self.fields  # pylint: disable=pointless-statement
        return self._by_name.get(name)

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != MAPPING:
            if node.is_null():
                return None
            raise reading.wrong(node, "a mapping")
        value: dict[str, Any] = {}
        path = reading.path
        if self._fields is None:
            self.field("")
        known = self._by_name
        for key, inner in node.value:
            codec = known.get(key.value)
            path.append(key.value)
            if codec is None:
                reading.unknown.append((".".join(path), key))
            else:
                decoded = codec.read(inner, reading)
                if decoded is not None:
                    value[key.value] = decoded
            path.pop()
        return value if value or self.pointer else None

    def merge(self, left: Any, right: Any) -> Any:
        if right is None and self.pointer:
            return left
        if left is None:
            if self.pointer:
                return self.copy(right)
            left = {}
        self.merge_into(left, right or {})
        return left if left or self.pointer else None

    def merge_into(self, left: dict[str, Any], right: dict[str, Any]) -> None:
        for field in self.fields:
            before, after = left.get(field.name), right.get(field.name)
            if field.codec.unmergeable:
                raise patch_failed("this Talos version cannot merge a patch into this document; delete it and give it anew", field.name)
            if before is None and after is None:
                continue
            try:
                merged = field.codec.merge(before, after)
            except ConfigProblem as error:
                raise _below(error, field.name) from None
            if merged is None:
                left.pop(field.name, None)
            else:
                left[field.name] = merged

    def empty(self, value: Any) -> bool:
        if self.pointer:
            return value is None
        return value is None or all(
            field.codec.empty(value.get(field.name)) for field in self.fields if not self._decisive or field.name in self._decisive)

    def output(self, value: Any) -> Any:
        if value is None:
            if self.pointer:
                return None
            value = {}
        result = {}
        for field in self.fields:
            inner = value.get(field.name)
            if not (field.omit_empty and field.codec.empty(inner)):
                result[field.name] = field.codec.output(inner)
        return result

    def copy(self, value: Any) -> Any:
        if value is None:
            return None
        by_name = self._by_name if self._fields is not None else {field.name: field.codec for field in self.fields}
        return {name: by_name[name].copy(inner) for name, inner in value.items()}


def _below(error: ConfigProblem, name: str) -> ConfigProblem:
    error.path = f"{name}.{error.path}" if error.path else name
    error.at()
    return error


class ListOf(Codec):
    """A list; a patch appends. replace: a patch replaces."""

    __slots__ = ("item", "_replace")
    zero: Any = ()

    def __init__(self, item: Codec, replace: bool = False) -> None:
        self.item = item
        self._replace = replace

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != SEQUENCE:
            if node.is_null():
                return None
            raise reading.wrong(node, "a list")
        result = []
        for index, inner in enumerate(node.value):
            if inner.kind == SCALAR and inner.is_null():
                if self.item.pointer:
                    raise reading.wrong(inner, f"a value (element {index} is null)")
                continue  # Go drops a null where the element cannot be one
            reading.path.append(str(index))
            value = self.item.read(inner, reading)
            reading.path.pop()
            result.append(self.item.element if value is None else value)
        return result

    def merge(self, left: Any, right: Any) -> Any:
        if right is None:
            return left
        if self._replace or left is None:
            return self.copy(right)
        left.extend(self.copy(right))
        return left

    def empty(self, value: Any) -> bool:
        return not value

    def output(self, value: Any) -> Any:
        return [self.item.output(inner) for inner in value or ()]

    def copy(self, value: Any) -> Any:
        return None if value is None else [self.item.copy(inner) for inner in value]


class KeyedList(ListOf):
    """A list whose elements a patch finds again by a key. keys: tried in this order, the first that the element of the patch has.

    replace_found: the element found is replaced, not merged (image verification rules).
    """

    __slots__ = ("_keys", "_replace_found")

    def __init__(self, item: Struct, keys: tuple[str, ...], replace_found: bool = False) -> None:
        super().__init__(item)
        self._keys = keys
        self._replace_found = replace_found

    def merge(self, left: Any, right: Any) -> Any:
        if not right:
            return left
        result = [] if left is None else left
        before = len(result)
        for element in right:
            index = self._find(result[:before] if self._replace_found else result, element)
            if index is None:
                result.append(self.item.copy(element))
            elif self._replace_found:
                result[index] = self.item.copy(element)
            else:
                try:
                    self.item.merge(result[index], element)
                except ConfigProblem as error:
                    raise _below(error, str(index)) from None
        return result

    def _find(self, left: list[dict[str, Any]], element: dict[str, Any]) -> int | None:
        for position, key in enumerate(self._keys):
            wanted = element.get(key)
            if wanted is None and position + 1 < len(self._keys):
                continue
            if isinstance(wanted, dict) and "physical" in wanted:
                return None  # Go compares the pointer, which is never the same
            if wanted is None and position > 0:
                return None
            matching = [index for index, inner in enumerate(left) if inner.get(key) == wanted]
            if not matching:
                return None
            return matching[-1] if self._replace_found else matching[0]
        return None


class MapOf(Codec):
    """A map with text keys; a patch merges key by key. An existing text is not replaced by an empty one."""

    __slots__ = ("item",)
    zero: Any = {}

    def __init__(self, item: Codec) -> None:
        self.item = item

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != MAPPING:
            if node.is_null():
                return None
            raise reading.wrong(node, "a mapping")
        result: dict[str, Any] = {}
        for key, inner in node.value:
            reading.path.append(key.value)
            value = self.item.read(inner, reading)
            result[key.value] = value if value is not None or self.item.pointer else self.item.zero
            reading.path.pop()
        return result

    def merge(self, left: Any, right: Any) -> Any:
        if right is None:
            return left
        result: dict[str, Any] = {} if left is None else left
        for key, value in right.items():
            before = result.get(key)
            if before is None:
                result[key] = self.item.copy(value)
            elif isinstance(value, str):
                result[key] = value or before
            else:
                try:
                    result[key] = self.item.merge(before, value)
                except ConfigProblem as error:
                    raise _below(error, key) from None
        return result

    def empty(self, value: Any) -> bool:
        return not value

    def output(self, value: Any) -> Any:
        return {key: self.item.output(value[key]) for key in sorted_keys(value)} if value else {}

    def copy(self, value: Any) -> Any:
        return None if value is None else {key: self.item.copy(inner) for key, inner in value.items()}


class FreeForm(Codec):
    """A mapping of the person's own. A patch merges deeply and appends lists; replace: a patch replaces it whole."""

    __slots__ = ("_replace",)
    zero: Any = {}

    def __init__(self, replace: bool = False) -> None:
        self._replace = replace

    def read(self, node: Node, reading: Reading) -> Any:
        if node.kind != MAPPING:
            if node.is_null():
                return None
            raise reading.wrong(node, "a mapping")
        return _free(node, reading) or None

    def merge(self, left: Any, right: Any) -> Any:
        if right is None:
            return left
        if left is None or self._replace:
            return copy_free(right)
        merge_free(left, right)
        return left

    def empty(self, value: Any) -> bool:
        return not value

    def output(self, value: Any) -> Any:
        return sorted_free(value) if value else {}

    def copy(self, value: Any) -> Any:
        return copy_free(value)


def _free(node: Node, reading: Reading) -> Any:
    if node.kind == SCALAR:
        return resolve(node)
    if node.kind == SEQUENCE:
        return [_free(inner, reading) for inner in node.value]
    result = {}
    for key, inner in node.value:
        reading.path.append(key.value)
        if key.plain and not isinstance(resolve(key), str):
            raise ConfigProblem(
                problem.WRONG_TYPE, "a key has to be a text (quote it)", path=".".join(reading.path), line=key.line,
            )
        result[key.value] = _free(inner, reading)
        reading.path.pop()
    return result


def sorted_free(value: Any) -> Any:
    """Free-form data with the keys of all mappings in the order of Talos's output."""
    if isinstance(value, dict):
        return {key: sorted_free(value[key]) for key in sorted_keys(value)}
    return [sorted_free(inner) for inner in value] if isinstance(value, list) else value


def copy_free(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copy_free(inner) for key, inner in value.items()}
    return [copy_free(inner) for inner in value] if isinstance(value, list) else value


def merge_free(left: dict[str, Any], right: dict[str, Any]) -> None:
    """Free-form data into free-form data, by Talos's rules."""
    for key, after in right.items():
        before = left.get(key)
        if before is None:
            left[key] = copy_free(after)
        elif _go_type(before) != _go_type(after):
            raise patch_failed(
                f"the patch has {_go_type(after)} where the configuration has {_go_type(before)}", key,
                f"merge type mismatch left {_go_type(before)} right {_go_type(after)}",
            )
        elif isinstance(after, dict):
            try:
                merge_free(before, after)
            except ConfigProblem as error:
                raise _below(error, key) from None
        elif isinstance(after, list):
            before.extend(copy_free(after))
        elif isinstance(after, bool) or after:
            left[key] = after


def _go_type(value: Any) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float64"), (str, "string"), (dict, "map[string]interface {}"),
                       (list, "[]interface {}")):
        if isinstance(value, kind):
            return name
    return "nil" if value is None else "time.Time"
