# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a chart makes anew each time that it is rendered: keys, certificates, words of chance (design section 15).

It is found by rendering twice. Where the cluster has all of it, it stays as it is there; where a part is missing, all of it is made, since a
certificate is worth nothing beside another CA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Union

from .._model.container_network import Live, place_of
from .._model.observed import Present
from .._model.records import Json
from .cni_compare import normal, same

Path = tuple[Union[str, int], ...]
#: Stands for such a value where a plan is told apart from another one.
MADE = "made by the chart"


def generated(first: Sequence[dict[str, Json]], second: Sequence[dict[str, Json]]) -> tuple[tuple[Path, ...], ...] | None:
    """The paths of each object at which two renders differ; None where they have not the same objects with the same parts."""
    if [place_of(one) for one in first] != [place_of(one) for one in second]:
        return None
    found = tuple(tuple(_differing(normal(one), normal(other))) for one, other in zip(first, second))
    return None if any(() in paths for paths in found) else found


def settled(objects: Sequence[Live], paths: Sequence[tuple[Path, ...]]) -> tuple[Live, ...]:
    """The objects with the values that the cluster has already at those paths, where it has all of them."""
    plain = [replace(one, wanted=normal(one.wanted)) for one in objects]
    known = [[at(one.now.value if isinstance(one.now, Present) else {}, path) for path in found] for one, found in zip(plain, paths)]
    if any(value is None for values in known for value in values):
        return tuple(plain)
    return tuple(replace(one, wanted=_put(one.wanted, dict(zip(found, values)))) for one, found, values in zip(plain, paths, known))


def marked(wanted: dict[str, Json], paths: Sequence[Path]) -> dict[str, Json]:
    """The object with those values replaced by what stands for them: equal for two renders."""
    return _put(normal(wanted), {path: MADE for path in paths})


def at(value: object, path: Path) -> Json:
    """The value at a path, None where there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict)) else None


def _differing(one: Json, other: Json, path: Path = ()) -> Iterator[Path]:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _differing(one[key], other[key], (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other)):
            yield from _differing(left, right, (*path, number))
    elif not same(one, other):
        yield path


def _put(found: dict[str, Json], values: dict[Path, Json]) -> dict[str, Json]:
    result = found
    for path, value in values.items():
        laid = _laid(result, path, value)
        result = laid if isinstance(laid, dict) else result
    return result


def _laid(found: Json, path: Path, value: Json) -> Json:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [_laid(entry, rest, value) if number == step else entry for number, entry in enumerate(found)] if isinstance(found, list) else found
    return {key: _laid(entry, rest, value) if key == step else entry for key, entry in found.items()} if isinstance(found, dict) else found
