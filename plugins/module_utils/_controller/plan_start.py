# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole plan of a run, made of the first looks of all (design section 20, "What a plan covers")."""

from __future__ import annotations

from dataclasses import replace

from .._decide.vanished import vanished_warnings
from .._model.plan import Plan, Target, Wait, Warn
from .._model.ports import Ports
from .._model.timing import Timing
from .state import State
from .world import World


def starting_plan(state: State, world: World, ports: Ports, timing: Timing) -> Plan:
    """Steps, refusals, warnings; what cannot be read is a warning, and so is what vanished."""
    plan = state.whole_plan(world.cluster)
    broken = tuple(Warn(Target(kind=entry.kind, name=entry.name), f"It cannot be read and is left alone "
                        f"({entry.source}{f', line {entry.line}' if entry.line else ''}): {entry.message}. Mend the file.", "4/broken")
                   for entry in world.broken())
    plan = replace(plan, warnings=(*broken, *vanished_warnings(world.vanished()), *plan.warnings))
    return plan if not ports.check else replace(plan, waits=(*plan.waits, *_held_locks(plan, world, timing)))


def _held_locks(plan: Plan, world: World, timing: Timing) -> tuple[Wait, ...]:
    """In check mode nothing is waited for: a lock that somebody holds now is listed with its deadline."""
    found = []
    for cluster in dict.fromkeys(step.target.cluster for step in plan.steps if step.locked):
        lease = world.store.leases.read(cluster)
        if lease is not None and lease.holder:
            found.append(Wait(f"the lock of cluster {cluster}, which {lease.holder} holds for {lease.purpose}", timing.lock_wait))
    return tuple(found)
