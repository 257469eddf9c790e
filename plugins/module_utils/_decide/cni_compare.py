# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An object of a render against the same object as it is in the cluster (design section 15).

`lay` gives both the differences and the object that has none of them: every place that does not differ stays as the cluster has it, so that a change
touches what is shown and nothing else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from .._model.plan import digest
from .._model.records import Json, JsonMap, dig, text_at
from .cni_filled import ANY, METADATA, NOTHING, Shape, shape_of
from .cni_words import Change

#: Fields that say nothing when they are empty, and are filled in so.
_EMPTY = frozenset({"securityContext", "resources", "emptyDir", "status", "namespaceSelector", "objectSelector", "loadBalancer", "metadata"})
#: What tells the entries of a list apart, tried in order.
_KEYS = ("name", "mountPath")
_QUANTITIES = re.compile(r"\.(?:limits|requests)\.[^.]+$|\.sizeLimit$|\.divisor$")
_SUFFIXES = {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3), "M": Decimal(10**6),
             "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20),
             "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60)}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]?i?)\Z")
_SECRET_NAME = re.compile(r"(?:token|password|passphrase|secret|private[_-]?key|api[_-]?key|access[_-]?key)\]?(?:\.value)?$", re.IGNORECASE)
_PRIVATE = "PRIVATE KEY-----"


def lay(wanted: JsonMap, live: JsonMap) -> tuple[dict[str, Json], tuple[Change, ...]]:
    """(the live object with the differences put right, the differences)."""
    kind = text_at(wanted, "kind")
    laying = _Laying(secret=kind == "Secret")
    result = laying.mapping(normal(wanted), _without_null(live), shape_of(kind), "")
    return result, tuple(laying.changes)


def normal(wanted: JsonMap) -> dict[str, Json]:
    """A rendered object as the API server would keep it: nothing that is null, and a Secret's texts encoded."""
    result = _without_null(wanted)
    texts = result.pop("stringData", None) if text_at(result, "kind") == "Secret" else None
    if isinstance(texts, dict):
        data = result.get("data")
        encoded: dict[str, Json] = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        result["data"] = {**(data if isinstance(data, dict) else {}), **encoded}
    return result


def content(live: JsonMap) -> str:
    """Digest of what a person or a tool wrote into an object, whatever its controllers say of it."""
    metadata = dig(live, "metadata")
    kept: dict[str, Json] = {key: value for key, value in metadata.items() if key not in METADATA.filled} if isinstance(metadata, dict) else {}
    uid = text_at(live, "metadata", "uid")
    return digest({**{key: value for key, value in live.items() if key != "status"}, "metadata": {**kept, "uid": uid}})


def is_secret(path: str, *values: Json) -> bool:
    """Whether a place other than in a Secret holds one."""
    return bool(_SECRET_NAME.search(path)) or any(isinstance(value, str) and _PRIVATE in value for value in values)


class _Laying:
    """One comparison."""

    def __init__(self, secret: bool) -> None:
        self._secret = secret
        self.changes: list[Change] = []

    def mapping(self, wanted: Mapping[str, Json], live: Mapping[str, Json], shape: Shape, path: str) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for key, value in live.items():
            where = f"{path}.{key}" if path else key
            if key in wanted:
                result[key] = self._value(wanted[key], value, shape.fields.get(key, NOTHING), where)
            elif is_filled(value, shape, key, live):
                result[key] = value
            else:
                self._tell(where, value, None)
        for key, value in wanted.items():
            if key in live or value in ({}, []) or key in shape.dropped and not value:
                continue
            result[key] = value
            self._tell(f"{path}.{key}" if path else key, None, value)
        return result

    def _value(self, wanted: Json, live: Json, shape: Shape, path: str) -> Json:
        if isinstance(wanted, dict) and isinstance(live, dict):
            return self.mapping(wanted, live, shape, path)
        if isinstance(wanted, list) and isinstance(live, list):
            return self._list(wanted, live, shape, path)
        if same(wanted, live) or _QUANTITIES.search(path) and _amount(wanted) is not None and _amount(wanted) == _amount(live):
            return live
        self._tell(path, live, wanted)
        return wanted

    def _list(self, wanted: list[Json], live: list[Json], shape: Shape, path: str) -> Json:
        if not all(isinstance(entry, dict) for entry in (*wanted, *live)):
            if not same(wanted, live):
                self._tell(path, live, wanted)
            return wanted if not same(wanted, live) else live
        there, here = _named(wanted), _named(live)
        if there is None or here is None:
            there, here = dict(enumerate_texts(wanted)), dict(enumerate_texts(live))
        found: dict[str, Json] = {}
        for name, entry in here.items():
            if name in there:
                found[name] = self._value(there[name], entry, shape, f"{path}[{name}]")
            else:
                self._tell(f"{path}[{name}]", entry, None)
        for name, entry in there.items():
            if name not in here:
                found[name] = entry
                self._tell(f"{path}[{name}]", None, entry)
        return [found[name] for name in (here if here.keys() == there.keys() else there)]

    def _tell(self, path: str, before: Json, after: Json) -> None:
        secret = self._secret and path.partition(".")[0] in ("data", "stringData") or is_secret(path, before, after)
        self.changes.append(Change(path, before, after, secret))


def is_filled(value: Json, shape: Shape, key: str, around: JsonMap) -> bool:
    """Whether a value that only the live object has is what Kubernetes fills in there."""
    if value == [] or value == {} and key in _EMPTY:
        return True
    if key in shape.filled:
        default = shape.filled[key]
        if default is ANY:
            return True
        if callable(default):
            default = default(around)
        if default is not None and same(value, default):
            return True
    inner = shape.fields.get(key)
    return inner is not None and isinstance(value, dict) and bool(value) and all(is_filled(entry, inner, name, value) for name, entry in value.items())


def same(one: object, other: object) -> bool:
    """Equal as JSON: 1 is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(left, right) for left, right in zip(one, other))
    return one == other


def enumerate_texts(entries: Sequence[Json]) -> list[tuple[str, Json]]:
    return [(str(number), entry) for number, entry in enumerate(entries)]


def _named(entries: Sequence[Json]) -> dict[str, Json] | None:
    """The entries by what tells them apart; None where nothing does."""
    for key in _KEYS:
        names = [text_at(entry, key) for entry in entries if isinstance(entry, dict)]
        if all(names) and len(set(names)) == len(entries):
            return dict(zip(names, entries))
    return None


def _amount(value: Json) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    match = _QUANTITY.match(str(value))
    if match is None or match.group(2) not in _SUFFIXES:
        return None
    try:
        return Decimal(match.group(1)) * _SUFFIXES[match.group(2)]
    except InvalidOperation:
        return None


def _without_null(value: JsonMap) -> dict[str, Json]:
    return {key: _cleaned(inner) for key, inner in value.items() if inner is not None}


def _cleaned(value: Json) -> Json:
    if isinstance(value, dict):
        return _without_null(value)
    return [_cleaned(entry) for entry in value] if isinstance(value, list) else value
