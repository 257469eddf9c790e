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
from .._model.outcome import Outcome
from .._model.plan import Target
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER
from .._operations import discover
from .._operations.machine_effects import Effects
from .._operations.provisioning_reads import Surroundings
from .._operations.rounds import Round
from .by_plan import Run, carried_out, planned, round_of

#: No machine has a name like this: a DNS-1123 name holds no space.
PREFIX = "discovery of "


def subject_of(cluster: str) -> str:
    return f"{PREFIX}{cluster}"


def is_discovery(name: str) -> bool:
    return name.startswith(PREFIX)


async def look(around: Surroundings, name: str, effects: Effects) -> Round:
    """Probe the cluster's registered addresses and decide. The round carries the records that a check run would have made."""
    cluster = name.removeprefix(PREFIX)
    plan, outcome = await planned(_run(around, cluster, effects, around.ports), Target(kind=CLUSTER, name=cluster), "6/pass")
    after = discovery_interval(around.memory.last_reset(cluster), around.timing, around.ports.clock.now())
    found = round_of(name, cluster, replace(plan, waits=()), after)
    return replace(found, carry=outcome.would_be if outcome is not None else ())


async def act(around: Surroundings, cluster: str, granted: frozenset[str], effects: Effects) -> tuple[str, ...]:
    """Carry out those steps that are still called for; gives their ids. Raises TalosError."""
    return (await carried_out(_run(around, cluster, effects, replace(around.ports, progress=_quietly)), granted)).executed


def _run(around: Surroundings, cluster: str, effects: Effects, ports: Ports) -> Run:
    request = discover.Request(cluster, allow_loopback=around.allow_loopback, timing=around.timing)

    async def run(gate: Gate) -> Outcome:
        outcome = await discover.run(request, ports, gate)
        effects.events.extend(outcome.events)
        effects.transitions.extend(outcome.transitions)
        return outcome

    return run


def _quietly(line: str) -> None:
    """A second probing of the same addresses is not worth a line."""
