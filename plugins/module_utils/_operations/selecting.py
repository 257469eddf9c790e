# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choosing machines by a JMESPath expression over their records (design section 18, "Selecting")."""

from __future__ import annotations

from .._model.errors import TalosError
from .._model.plan import plain
from .._model.ports import Store
from .._model.records import MACHINE, Json, Record

try:
    import jmespath
except ImportError:
    jmespath = None


def selected(store: Store, expression: str) -> tuple[str, ...]:
    """The names that the expression gives. Raises TalosError `MissingLibrary` or `InvalidInput`."""
    if jmespath is None:
        raise TalosError("MissingLibrary", "select needs the Python library jmespath.", "Install jmespath, or name the machines.")
    records = store.list(MACHINE).records
    try:
        found: Json = jmespath.search(expression, [record_data(record) for record in records])
    except jmespath.exceptions.JMESPathError as error:
        raise TalosError("InvalidInput", f"select is no JMESPath expression that works here: {' '.join(str(error).split())[:200]}.",
                         "Write for example [?status.stage=='running'].metadata.name.") from error
    names = found if isinstance(found, list) else [found]
    known = {record.name for record in records}
    if found is not None and not all(isinstance(name, str) and name in known for name in names):
        raise TalosError("InvalidInput", "select gives something else than names of machines.", "End the expression with .metadata.name.")
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def record_data(record: Record) -> Json:
    """A record as the expression sees it."""
    return {"metadata": {"name": record.name, "labels": plain(record.labels), "annotations": plain(record.annotations)},
            "spec": plain(record.spec), "status": plain(record.status)}
