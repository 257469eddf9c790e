# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run knows: the last look at each subject, and what follows from all of them together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from .._decide.turns import Turn, in_turn, plan_order
from .._model.outcome import Difference, MachineRow, Transition
from .._model.plan import Plan, Refusal, Step
from .._model.records import Event, Record
from .._operations.machine_effects import Effects
from .._operations.reconcile import Looked
from .beside import is_beside

#: So many transitions and events of a long run are kept for the result, the last ones.
KEPT = 2000


class State:
    """`looked`, `rows` and `refusals` by name; `unsettled` are the subjects on which something still happens."""

    def __init__(self) -> None:
        self.looked: dict[str, Looked] = {}
        self.rows: dict[str, MachineRow] = {}
        self.refusals: dict[str, Refusal] = {}
        #: What machines ran differently from the records when they were last seen to, also where this run put it back since.
        self.differences: dict[str, tuple[Difference, ...]] = {}
        self.unsettled: set[str] = set()
        self.transitions: deque[Transition] = deque(maxlen=KEPT)
        self.events: deque[Event] = deque(maxlen=KEPT)
        self._wanting: dict[str, set[str]] = {}
        self._joining: dict[str, set[str]] = {}

    def take(self, name: str, looked: Looked) -> bool:
        """A look came back. Whether it may have changed whose turn it is in its cluster: somebody has to be waiting for that."""
        found = looked.round
        if not found.plan.steps and not is_beside(name):
            # What only `act` needs is let go; of a thousand machines that would be much.
            looked = replace(looked, round=replace(found, carry=None))
        self.looked[name] = looked
        self.refusals.pop(name, None)
        if found.differences:
            self.differences[name] = found.differences
        if found.plan.refusals:
            self.refusals[name] = found.plan.refusals[0]
        if not is_beside(name):
            self.rows[name] = found.row
        (self.unsettled.discard if found.settled else self.unsettled.add)(name)
        wants = any(step.locked for step in found.plan.steps)
        joins = looked.joining and looked.control_plane
        wanting, joining = self._wanting.setdefault(found.cluster, set()), self._joining.setdefault(found.cluster, set())
        moved = wants or bool(wanting)
        (wanting.add if wants else wanting.discard)(name)
        (joining.add if joins else joining.discard)(name)
        return moved

    def forget(self, name: str) -> None:
        """Its record is gone."""
        for known in (self.looked, self.rows, self.refusals, self.differences):
            known.pop(name, None)
        for names in (self.unsettled, *self._wanting.values(), *self._joining.values()):
            names.discard(name)

    def keep(self, effects: Effects) -> None:
        """What was written down, for the result."""
        self.transitions.extend(effects.transitions)
        self.events.extend(effects.events)

    def wanting(self, cluster: str) -> tuple[str, ...]:
        """Machines of the cluster that have steps under its lock."""
        return tuple(sorted(self._wanting.get(cluster, ())))

    def steps(self, cluster: str, record: Record | None, counts: Callable[[Step], bool]) -> dict[str, tuple[Step, ...]]:
        """The steps under the lock of one cluster, each machine's with what they wait for. Machines whose locked steps do not count hold
        nobody up."""
        turns = [Turn(name, self.looked[name].control_plane, self.looked[name].round.plan.steps) for name in self.wanting(cluster)]
        counted = [turn for turn in turns if any(step.locked and counts(step) for step in turn.steps)]
        return in_turn(counted, record, self._joining.get(cluster, ()))

    def whole_plan(self, cluster_of: Callable[[str], Record | None]) -> Plan:
        """Every step that the present looks call for, in a stable order, each with what it waits for (section 20)."""
        def place(name: str) -> tuple[bool, tuple[str, bool, str]]:
            looked = self.looked[name]
            return not is_beside(name), plan_order(name, looked.round.cluster, looked.control_plane)

        names = sorted(self.looked, key=place)
        turns: dict[str, tuple[Step, ...]] = {}
        for cluster in sorted(self._wanting):
            if self._wanting[cluster]:
                turns.update(self.steps(cluster, cluster_of(cluster), lambda step: True))
        plan = Plan()
        steps: list[Step] = []
        refusals: list[Refusal] = []
        for name in names:
            own = self.looked[name].round.plan
            steps.extend(turns.get(name, own.steps))
            refusals.extend(own.refusals)
            plan = plan if not (own.warnings or own.waits) else plan + replace(own, steps=(), refusals=())
        return replace(plan, steps=tuple(steps), refusals=tuple(refusals))
