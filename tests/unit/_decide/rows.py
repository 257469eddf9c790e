# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One row of a table test: a world, and what the decision has to say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan

from tests.unit.machine_world import rules_in


@dataclass(frozen=True)
class Seen:
    """What a decision came to. `writes` are the status keys it changes, by machine; `told` every text that a person reads."""

    rules: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    actions: tuple[str, ...] = ()
    writes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    told: str = ""


@dataclass(frozen=True)
class Row:
    """`id` is a name of its own. `rules` and `reasons` have to be among what is seen, `absent` not; actions, writes and events
    have to be exactly these; every text of `says` has to be told."""

    id: str
    look: Callable[[], Seen]
    rules: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    writes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    says: tuple[str, ...] = ()

    def faults(self) -> list[str]:
        """What is not as the row wants it; [] is a pass."""
        seen = self.look()
        found = [f"rule {rule} is missing in {sorted(seen.rules)}" for rule in self.rules if rule not in seen.rules]
        found += [f"rule {rule} is there" for rule in self.absent if rule in seen.rules]
        found += [f"reason {reason} is missing in {sorted(seen.reasons)}" for reason in self.reasons if reason not in seen.reasons]
        found += [f"{text!r} is not told: {seen.told}" for text in self.says if text not in seen.told]
        for name, wanted, got in (("actions", self.actions, seen.actions), ("writes", dict(self.writes), dict(seen.writes)),
                                  ("events", self.events, seen.events)):
            if wanted != got:
                found.append(f"{name} are {got}, not {wanted}")
        return found


def texts(plan: Plan) -> str:
    """Everything that a plan tells a person."""
    parts = [step.why for step in plan.steps] + [warning.message for warning in plan.warnings]
    parts += [f"{refusal.message} {refusal.hint}" for refusal in plan.refusals]
    return "\n".join(parts)


def of_plan(plan: Plan) -> Seen:
    """What a plan alone shows."""
    return Seen(frozenset(rules_in(plan)), frozenset(refusal.reason for refusal in plan.refusals),
                tuple(step.action for step in plan.steps), told=texts(plan))
