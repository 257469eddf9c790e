# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits as words: what a value was and what it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._model.records import Json, JsonMap

#: A value is shown up to so many letters.
_LONG = 80
#: Below these nobody reads the values one by one, and a person may have put anything there.
_OPAQUE = ("cni.cilium.values",)


def changes(before: JsonMap, after: JsonMap, prefix: str = "") -> Iterator[str]:
    """`controlPlane.count 1 → 3` for each value that differs, mappings key by key, in order of the keys."""
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        name = f"{prefix}{key}"
        if old == new:
            continue
        if name in _OPAQUE:
            yield f"{name} (other values)"
        elif _mapping(old) and _mapping(new) and (old or new):
            yield from changes(_as_mapping(old), _as_mapping(new), f"{name}.")
        else:
            yield f"{name} {shown(old)} → {shown(new)}"


def shown(value: Json) -> str:
    """One value on one line."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None or value in ("", [], {}):
        return "nothing"
    elif isinstance(value, Mapping):
        text = " ".join(f"{key}={shown(inner)}" for key, inner in sorted(value.items()))
    elif isinstance(value, list):
        text = ", ".join(shown(inner) for inner in value)
    else:
        text = str(value)
    return text if len(text) <= _LONG else text[:_LONG - 3] + "..."


def _mapping(value: Json) -> bool:
    return value is None or isinstance(value, dict)


def _as_mapping(value: Json) -> JsonMap:
    return value if isinstance(value, dict) else {}
