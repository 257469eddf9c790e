# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of one record's status with the events that go with it: an effect, not a step (design section 20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .._model.outcome import Transition
from .._model.records import Condition, Event, Json, Ref
from .conditions import Status, with_condition, without_conditions


@dataclass(frozen=True)
class StatusChange:
    """What to write into the status of `ref`, if it is still the record `uid`.

    `values` are set, and taken away where the value is None. A change whose result equals what is there is not written.
    """

    ref: Ref
    uid: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    without: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    transitions: tuple[Transition, ...] = ()

    def applied(self, status: Status, now: float) -> Status:
        """The status after the change; the same one where nothing differs."""
        changed: Status = {**status, **{key: value for key, value in self.values.items() if value is not None}}
        for key, value in self.values.items():
            if value is None:
                changed.pop(key, None)
        for condition in self.conditions:
            changed = with_condition(changed, condition, now)
        changed = without_conditions(changed, self.without)
        return status if changed == status else changed
