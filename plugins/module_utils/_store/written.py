# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for every record and status before it is written (design sections 3, 4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from .._model.approval import status_missing, tracked_by
from .._model.errors import TalosError
from .._model.records import MACHINE, Json, JsonMap, Listing, Record, text_at
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


def refuse_tracked(record: Record, override: bool) -> None:
    """Raises `RecordTracked` where a tool keeps the record in step with git and nobody overrides that."""
    tool = tracked_by(record)
    if tool and not override:
        raise TalosError("RecordTracked", f"{record.kind} {record.name} is kept in step with git by {tool}, which would undo a change made here.",
                         "Change it in git, or set override: true.")


def refuse_lost_status(record: Record, status: Mapping[str, object], kept: str) -> None:
    """Raises `StatusMissing` for a status of an approved machine that has none, unless it carries `recordUID`, which only a person's
    trust sets (design section 4). `kept`: what a person would bring back, for the hint."""
    if status_missing(record) and not status.get("recordUID"):
        raise TalosError("StatusMissing", f"The status of the approved machine {record.name} is missing, and with it what was sent to it.",
                         f"Bring {kept} back, or trust the machine again with talos_machine (trust: true).")


def context_of(before: Record, spec: JsonMap, listed: Callable[[str], Listing]) -> Context:
    """What the rules have to know of other records; `listed` is asked only when a rule may ask."""
    if before.spec.get("secretsRef") == spec.get("secretsRef"):
        return Context()
    machines = listed(MACHINE)
    return Context(bool(machines.broken) or any(text_at(machine.spec, "clusterRef") == before.name for machine in machines.records))


def record_changed(record: Record) -> TalosError:
    """The refusal of a write over an outdated read."""
    return TalosError("RecordChanged", f"{record.kind} {record.name} was changed since it was read ({record.source}).",
                      "Run again, so that the change is seen.")
