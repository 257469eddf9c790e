# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run writes down about a machine: status, conditions, events. Effects, not steps (design section 20)."""

from __future__ import annotations

from collections.abc import Callable

from .._decide.approved import has_converged, is_stored
from .._decide.conditions import Status, refusal_conditions, with_condition
from .._model.moments import moment
from .._model.outcome import Transition
from .._model.plan import Refusal
from .._model.ports import Ports
from .._model.records import Event, Record, condition_of, text_at

#: Reasons that leave no trace: a status written here would stand for the one that was lost, or nobody approved the machine.
_SILENT = frozenset({"StatusMissing", "NotApproved"})


class Effects:
    """Writes for one run, and remembers them for the result. In check mode nothing is written."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.transitions: list[Transition] = []
        self.events: list[Event] = []

    def now(self) -> float:
        """The time of what is written."""
        return self._ports.clock.now()

    def status(self, machine: Record, change: Callable[[Status], Status], *, expect: bool = False) -> Record:
        """Write a machine's status. With `expect` only over the very record that was read (`RecordChanged`)."""
        if self._ports.store is None or self._ports.check:
            return machine
        if not expect and change(dict(machine.status)) == dict(machine.status):
            return machine
        after = self._ports.store.patch_status(machine.ref, machine.uid, change, expect=machine if expect else None)
        self._moves(machine, after)
        return after

    def event(self, machine: Record, kind: str, reason: str, message: str) -> None:
        """Write one event on a machine."""
        if self._ports.store is None or self._ports.check:
            return
        event = Event(machine.ref, kind, reason, message, moment(self._ports.clock.now()))
        self._ports.store.record_event(event)
        self.events.append(event)

    def refused(self, machine: Record | None, refusal: Refusal) -> None:
        """The conditions of a refusal, where the closed list has a word for it; only of a machine that was never sent a
        configuration, since the state of another one is what following and its own reads say."""
        if machine is None or refusal.reason in _SILENT or self._ports.store is None:
            return
        machine = self._ports.store.get(machine.kind, machine.name) or machine
        if is_stored(machine) or has_converged(machine):
            return
        now = self._ports.clock.now()
        conditions = refusal_conditions(refusal.reason, f"{refusal.message} {refusal.hint}".strip(), machine.generation)

        def change(status: Status) -> Status:
            for condition in conditions:
                status = with_condition(status, condition, now)
            return status

        if conditions:
            self.status(machine, change)

    def _moves(self, before: Record, after: Record) -> None:
        stages = text_at(before.status, "stage"), text_at(after.status, "stage")
        if stages[0] != stages[1]:
            self.transitions.append(Transition(before.name, "stage", *stages))
        for name in ("Provisioned", "Ready"):
            old, new = condition_of(before, name), condition_of(after, name)
            told = tuple(f"{entry.status}/{entry.reason}" if entry else "" for entry in (old, new))
            if told[0] != told[1]:
                self.transitions.append(Transition(before.name, name, told[0], told[1]))
