# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which machines an operation acts on: names, a cluster, a JMESPath expression (design section 18, "Selecting").

A narrower scope narrows what is acted on; whoever calls goes on reading everything (law 12).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.plan import plain
from .._model.records import API_VERSION, Json, Record

try:
    import jmespath
except ImportError:
    jmespath = None


def as_document(record: Record) -> dict[str, Json]:
    """The record as a person sees it: the shape that expressions are written for."""
    metadata: dict[str, Json] = {"name": record.name, "labels": dict(record.labels), "annotations": dict(record.annotations),
                                 "uid": record.uid, "generation": record.generation}
    return {"apiVersion": API_VERSION, "kind": record.kind, "metadata": metadata, "spec": plain(record.spec), "status": plain(record.status)}


def chosen(records: Sequence[Record], names: Iterable[str] = (), expression: str = "", cluster: str = "") -> tuple[str, ...]:
    """The names of the machines that are acted on, sorted where no order was named.

    Every restriction that is given has to hold. A name that is no record stays in the answer: the operation refuses it.
    Raises TalosError `InvalidInput` for an expression that is none or does not give names, `MissingLibrary` without jmespath.
    """
    named = tuple(dict.fromkeys(names))
    allowed = selected(records, expression) if expression else None
    members = {record.name for record in records if cluster_of(record) == cluster} if cluster else None
    known = {record.name for record in records}
    start = named or tuple(sorted(known if allowed is None else set(allowed)))
    return tuple(name for name in start
                 if (allowed is None or name in allowed) and (members is None or name in members or name not in known))


def selected(records: Sequence[Record], expression: str) -> tuple[str, ...]:
    """The names that a JMESPath expression over all records gives; each has to be one of them."""
    if jmespath is None:
        raise TalosError("MissingLibrary", "select needs the Python library jmespath.", "Install jmespath, or name the machines.")
    try:
        found = jmespath.search(expression, [as_document(record) for record in sorted(records, key=lambda record: record.name)])
    except (jmespath.exceptions.JMESPathError, ValueError) as error:
        told = " ".join(str(error).split())
        raise TalosError("InvalidInput", f"select is no JMESPath expression: {told[:300]}.",
                         "Write for example [?status.stage=='running'].metadata.name.") from error
    if isinstance(found, str):
        found = [found]
    if found is None:
        found = []
    names = [_name(entry) for entry in found] if isinstance(found, list) else [""]
    known = {record.name for record in records}
    if not all(name in known for name in names):
        raise TalosError("InvalidInput", "select does not give names of machines.", "End it with .metadata.name.")
    return tuple(dict.fromkeys(names))


def _name(entry: object) -> str:
    """A name, or the record that the expression left whole."""
    if isinstance(entry, dict):
        metadata = entry.get("metadata")
        entry = metadata.get("name") if isinstance(metadata, dict) else ""
    return entry if isinstance(entry, str) else ""
