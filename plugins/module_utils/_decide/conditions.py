# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conditions of a record's status, as Kubernetes has them (design section 3)."""

from __future__ import annotations

from collections.abc import Iterable

from .._model.errors import LOCK_REASONS, PROVISIONED_REASONS, READY_REASONS
from .._model.moments import moment
from .._model.records import Condition

#: A status under change: plain data, made anew by each change.
Status = dict[str, object]


def with_condition(status: Status, condition: Condition, now: float) -> Status:
    """The status with this condition in place of the one of its type.

    The same status, where nothing but the time would differ: a second run writes nothing. The transition time moves only
    with the condition's status.
    """
    entries = list(list_at_status(status))
    for place, entry in enumerate(entries):
        if entry.get("type") != condition.type:
            continue
        if (entry.get("status"), entry.get("reason"), entry.get("message")) == (condition.status, condition.reason, condition.message):
            return status
        since = str(entry.get("lastTransitionTime") or "") if entry.get("status") == condition.status else ""
        entries[place] = _entry(condition, since or moment(now))
        return {**status, "conditions": entries}
    return {**status, "conditions": [*entries, _entry(condition, moment(now))]}


def without_conditions(status: Status, types: Iterable[str]) -> Status:
    """The status without conditions of these types; the same status where there is none."""
    unwanted = set(types)
    entries = list(list_at_status(status))
    kept = [entry for entry in entries if entry.get("type") not in unwanted]
    return status if len(kept) == len(entries) else {**status, "conditions": kept}


def list_at_status(status: Status) -> tuple[dict[str, object], ...]:
    """The condition entries of a status."""
    found = status.get("conditions")
    return tuple(dict(entry) for entry in found if isinstance(entry, dict)) if isinstance(found, list) else ()


def _entry(condition: Condition, since: str) -> dict[str, object]:
    return {"type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message,
            "observedGeneration": condition.observed_generation, "lastTransitionTime": since}


#: Reasons of a configuration that cannot be used, which a condition calls RenderFailed (the list of section 3 is closed).
_RENDER = frozenset({"ConfigInvalid", "TemplateUnexpanded", "InvalidInput"})


def refusal_conditions(reason: str, message: str, generation: int) -> tuple[Condition, ...]:
    """The conditions of an approved machine that say why nothing is sent to it; () where the closed list has no word for it."""
    reason = "RenderFailed" if reason in _RENDER else reason
    ready = Condition("Ready", "False", reason, message, generation)
    if reason in PROVISIONED_REASONS or reason in LOCK_REASONS:
        return (Condition("Provisioned", "False", reason, message, generation), ready)
    return (ready,) if reason in READY_REASONS else ()
