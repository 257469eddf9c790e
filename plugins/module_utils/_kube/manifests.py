# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects in what a chart renders (design section 15). It is read with an administrator's eyes later, so whatever could make the reader fall over,
or be something else than it says, is refused."""

from __future__ import annotations

import json
import re

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]

from .._model.container_network import Chart, Place, place_of
from .._model.errors import TalosError
from .._model.records import Json, JsonMap, text_at

#: Levels of mappings and lists: a definition of a custom resource has about 40, and libyaml falls over at some thousands.
_DEEPEST = 200
#: These become parts of a URL.
_VERSION = re.compile(r"(?:[a-z0-9][a-z0-9.-]*/)?[a-z0-9]+\Z")
_KIND = re.compile(r"[A-Za-z0-9]+\Z")
_NAMESPACE = re.compile(r"[a-z0-9-]*\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*\Z")
_LOOK = "Look at the chart and at the values."


def objects_of(text: str, chart: Chart) -> tuple[dict[str, Json], ...]:
    """The objects of a stream of YAML; lists are taken apart. Raises TalosError `ChartInvalid`."""
    found: dict[Place, dict[str, Json]] = {}
    for document in _documents(text, chart):
        entries = document.get("items") if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") else [document]
        for entry in entries if isinstance(entries, list) else []:
            if entry is None:
                continue
            plain = _plain(entry)
            if plain is None or not _is_object(plain):
                raise TalosError("ChartInvalid", f"{chart} renders something that is no object of Kubernetes.", _LOOK)
            place = place_of(plain)
            if place in found:
                raise TalosError("ChartInvalid", f"{chart} renders {place} twice.", _LOOK)
            found[place] = plain
    if not found:
        raise TalosError("ChartInvalid", f"{chart} renders nothing with these values.", _LOOK)
    return tuple(found.values())


def _documents(text: str, chart: Chart) -> list[object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                # A few of them write out to more than any memory holds.
                raise TalosError("ChartInvalid", f"What helm renders of {chart} has aliases of YAML in it, which are not taken.",
                                 "Have the chart write out what it repeats.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise TalosError("ChartInvalid", f"What helm renders of {chart} has more than {_DEEPEST} levels.", _LOOK)
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TalosError("ChartInvalid", f"What helm renders of {chart} is no YAML: {' '.join(str(error).split())[:200]}.", _LOOK) from None


def _plain(entry: object) -> dict[str, Json] | None:
    """As JSON has it, None where JSON does not."""
    try:
        found = json.loads(json.dumps(entry, default=str, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_object(plain: JsonMap) -> bool:
    return bool(_VERSION.match(text_at(plain, "apiVersion")) and _KIND.match(text_at(plain, "kind")) and _NAME.match(text_at(plain, "metadata", "name"))
                and _NAMESPACE.match(text_at(plain, "metadata", "namespace")))
