# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Discovery as a subject of the controller: the registered addresses of one cluster, every five minutes and more often after a reset by this
product (design sections 6 and 18).

A look writes what is no step (an observed address, an event) and no pending machine; carrying out steps looks again, with all others
withheld.
"""

from __future__ import annotations

from dataclasses import replace

from .._decide.discovery_interval import discovery_interval
from .._model.errors import TalosError
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Target
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, Record
from .._operations import discover
from .._operations.machine_effects import Effects
from .._operations.provisioning_reads import Surroundings
from .._operations.rounds import Round

#: No machine has a name like this: a DNS-1123 name holds no space.
PREFIX = "discovery of "


def subject_of(cluster: str) -> str:
    return f"{PREFIX}{cluster}"


def is_discovery(name: str) -> bool:
    return name.startswith(PREFIX)


async def look(around: Surroundings, name: str, effects: Effects) -> Round:
    """Probe the cluster's registered addresses and decide. The round carries the records that a check run would have made."""
    cluster = name.removeprefix(PREFIX)
    plans: list[Plan] = []

    def withhold(plan: Plan) -> Plan:
        plans.append(plan)
        return replace(plan, steps=())

    would_be: tuple[Record, ...] = ()
    try:
        would_be = (await _run(around, cluster, withhold, effects, around.ports)).would_be
        plan = replace(plans[-1], waits=()) if plans else Plan()
    except TalosError as error:
        plan = Plan(refusals=(Refusal(Target(kind=CLUSTER, name=cluster), error.reason, error.message, error.hint, "6/pass"),))
    row = MachineRow(name, cluster)
    after = discovery_interval(around.memory.last_reset(cluster), around.timing, around.ports.clock.now())
    return Round(name, cluster, plan, row, after, not plan.steps, held=bool(plan.refusals), carry=would_be)


async def act(around: Surroundings, cluster: str, granted: frozenset[str], effects: Effects) -> tuple[str, ...]:
    """Carry out those steps that are still called for; gives their ids. Raises TalosError."""
    def only(plan: Plan) -> Plan:
        return replace(plan, steps=tuple(step for step in plan.steps if step.id in granted))

    return (await _run(around, cluster, only, effects, replace(around.ports, progress=_quietly))).executed


async def _run(around: Surroundings, cluster: str, gate: Gate, effects: Effects, ports: Ports) -> Outcome:
    request = discover.Request(cluster, allow_loopback=around.allow_loopback, timing=around.timing)
    outcome = await discover.run(request, ports, gate)
    effects.events.extend(outcome.events)
    effects.transitions.extend(outcome.transitions)
    return outcome


def _quietly(line: str) -> None:
    """A second probing of the same addresses is not worth a line."""
