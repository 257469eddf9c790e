# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for every record and status before it is written (design sections 3, 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .._model.errors import TalosError
from .._model.records import Json, Record
from .._model.schema import validate
from .._model.schema_rules import RULES, Context, Immutable

_IMMUTABLE = frozenset(rule.id for rule in RULES if isinstance(rule, Immutable))


def checked(record: Record, before: Record | None, context: Context) -> None:
    """Refuse a record that the schema does not allow. Raises TalosError: `Immutable` where a change is what is wrong,
    else `RecordInvalid`, with every problem in the message."""
    problems = validate(record, before, context)
    if not problems:
        return
    what = f"{record.kind} {record.name}"
    if all(problem.rule in _IMMUTABLE for problem in problems):
        raise TalosError("Immutable", f"{what} cannot be changed so: {' '.join(problem.message for problem in problems)}",
                         "Leave it as it is, or make a new record.")
    raise TalosError("RecordInvalid", f"{what} is not valid: {' '.join(problem.message for problem in problems)}", "Correct these values.")


def as_status(status: Mapping[str, object], uid: str) -> dict[str, Json]:
    """A status as it is kept: plain data, with the uid of its record. Raises TypeError for what JSON does not know."""
    plain: dict[str, Json] = json.loads(json.dumps(dict(status), allow_nan=False))
    plain["recordUID"] = uid
    return plain
