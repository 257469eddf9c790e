# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All objects of a kind, in pages, as records and as what cannot be read as one (design section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from ..._kube.api import Api, ApiRefused
from ..._model.records import Broken, JsonMap, Listing, Record, list_at, text_at
from ..._model.schema import SCHEMAS, validate
from .objects import path_of, record_of
from .refusals import doing

#: Objects of one answer; an API server is not asked for a thousand machines at once.
PAGE = 500
#: How often a listing whose pages grew too old is begun anew.
_TRIES = 3

Entry = Union[Record, Broken]


def read_all(api: Api, namespace: str, kind: str, page: int) -> tuple[dict[str, Entry], str]:
    """Every object by name, and the version of the whole. Raises TalosError as `store_error` says."""
    with doing(f"list {SCHEMAS[kind].plural}", api):
        for left in reversed(range(_TRIES)):
            try:
                return _pages(api, namespace, kind, page)
            except ApiRefused as refused:
                if refused.status != 410 or not left:
                    raise
    raise ValueError(f"{_TRIES} tries are none")


def _pages(api: Api, namespace: str, kind: str, page: int) -> tuple[dict[str, Entry], str]:
    entries: dict[str, Entry] = {}
    token: str | None = ""
    version = ""
    while token is not None:
        answer = api.request("GET", path_of(namespace, kind), query={"limit": str(page), **({"continue": token} if token else {})})
        for item in list_at(answer, "items"):
            if isinstance(item, dict):
                entry = entry_of(kind, item)
                entries[entry.name] = entry
        version = version or text_at(answer, "metadata", "resourceVersion")
        token = text_at(answer, "metadata", "continue") or None
    return entries, version


def entry_of(kind: str, item: JsonMap) -> Entry:
    """An object as a record, or what is wrong with it."""
    record = record_of(kind, item)
    problems = validate(record, writing=False)
    if problems:
        return Broken(kind, record.name, record.source, 0, " ".join(problem.message for problem in problems))
    return record


def listing_of(entries: Mapping[str, Entry]) -> Listing:
    """Sorted by name. Nothing vanishes here: what is gone was deleted."""
    found = [entries[name] for name in sorted(entries)]
    return Listing(tuple(entry for entry in found if isinstance(entry, Record)), tuple(entry for entry in found if isinstance(entry, Broken)))
