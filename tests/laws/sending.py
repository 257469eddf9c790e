# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the laws about sending have in common: a world with one approved machine, runs on it, and what must hold after each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._operations.maintenance_apply import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Job
from ansible_collections.ichor.talos.tests.unit._operations import world as w

ROLES = ("worker", "controlplane")


def world_with(role: str, **cluster: object) -> tuple[w.World, w.Node]:
    world = w.World()
    world.store.put(w.cluster_record(**cluster))  # type: ignore[arg-type]
    return world, w.place(world, "m1", 1, role)


def job(role: str, name: str = "m1", hostname: str = "m1") -> Job:
    return Job(name, Present(bring(w.config(role, hostname))))


async def apply(world: w.World, role: str, holder: str = "run-1", *jobs: Job) -> Outcome:
    wanted = jobs or (job(role),)
    return await run(Request(wanted, single=len(wanted) == 1), world.ports(holder), w.OpenGate())


def run_once(world: w.World, role: str, holder: str = "run-1") -> Outcome:
    return asyncio.run(apply(world, role, holder))


def boundaries(role: str, prepare: Callable[[w.World, w.Node], None] = lambda world, node: None) -> list[str]:
    """Every call to a node and every write of an undisturbed run."""
    world, node = world_with(role)
    prepare(world, node)
    run_once(world, role)
    return world.trace


def at(number: int, do: Callable[[], None]) -> Callable[[int, str], None]:
    """A hook that acts once, at one boundary."""
    def hook(count: int, what: str) -> None:
        if count == number:
            do()
    return hook


def sent_to(world: w.World) -> list[tuple[str, str]]:
    """(machine, certificate of the connection) of each configuration that a node was sent."""
    return [(name, fingerprint) for name, dummy, fingerprint, dummy2, dummy3 in world.received]
