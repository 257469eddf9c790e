# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 5 for machines that run: one restarts at a time and never one that costs etcd its quorum, whoever runs beside whom."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._operations import converge
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_effects import Effects
from ansible_collections.ichor.talos.plugins.module_utils._operations.rounds import Round
from ansible_collections.ichor.talos.tests.unit._operations.converging_world import Node, World, with_rule

CONTROL_PLANES, WORKERS = ("cp1", "cp2", "cp3"), ("w1", "w2")
#: A bound for the looks of one machine in one run; nothing waits for it when all goes well.
LOOKS = 400


def cluster(folder: Path) -> tuple[World, list[Node]]:
    """Five machines, each of which has to restart."""
    world = World(folder)
    nodes = [world.joined(name, number, "controlplane") for number, name in enumerate(CONTROL_PLANES, 1)]
    nodes += [world.joined(name, number) for number, name in enumerate(WORKERS, 11)]
    for node in nodes:
        node.active = with_rule(node.active)
    return world, nodes


class Watch:
    """Looks at the whole world at every call to a node: how many are down, and how many of etcd's voters answer."""

    def __init__(self, world: World, nodes: list[Node]) -> None:
        self.most_down = 0
        self.fewest_voters = len(CONTROL_PLANES)

        def hook(count: int, what: str) -> None:
            self.most_down = max(self.most_down, sum(node.silent for node in nodes))
            voters = sum(node.control_plane and not node.silent and bool(node.leader) for node in nodes)
            self.fewest_voters = min(self.fewest_voters, voters)
        world.hook = hook


async def run(world: World, holder: str, names: tuple[str, ...], chance: random.Random) -> dict[str, Round]:
    """One run over these machines, all at once; what is under the lock goes one after the other, as a controller does it."""
    around = world.around(holder=holder)
    effects, lock, last = Effects(around.ports), asyncio.Lock(), {}

    async def machine(name: str) -> None:
        await world.clock.sleep(chance.uniform(0, 20))
        for unused in range(LOOKS):
            found = last[name] = await converge.look(around, name, effects)
            step = next((step for step in found.plan.steps if not step.waits_for), None)
            if step is None:
                if found.settled:
                    return
                await world.clock.sleep(found.requeue_after)
            elif step.locked:
                async with lock:
                    await converge.act(around, found, step, effects)
            else:
                await converge.act(around, found, step, effects)

    await asyncio.gather(*(machine(name) for name in names))
    return last


@pytest.mark.parametrize("seed", range(3))
def test_two_runs_beside_each_other_restart_one_machine_at_a_time_and_each_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world, nodes = cluster(tmp_path)
    world.down_for = lambda: chance.uniform(5, 300)
    watch = Watch(world, nodes)

    async def both() -> tuple[dict[str, Round], dict[str, Round]]:
        everybody = CONTROL_PLANES + WORKERS
        return await asyncio.gather(run(world, "run-1", everybody, chance), run(world, "run-2", tuple(reversed(everybody)), chance))

    first, second = asyncio.run(both())
    assert [node.boot for node in nodes] == [2] * 5 and watch.most_down == 1 and watch.fewest_voters == 2
    assert {found.row.reason for found in (*first.values(), *second.values())} == {"Converged"}
    assert "disruption" not in world.cluster().status


@pytest.mark.parametrize("seed", range(3))
def test_a_control_plane_whose_etcd_is_not_back_holds_every_other_restart(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world, nodes = cluster(tmp_path)
    world.on_boot = lambda node: setattr(node, "leader", "" if node.control_plane else node.leader)
    watch = Watch(world, nodes)
    end = world.clock.now() + 3600

    async def for_an_hour() -> None:
        task = asyncio.ensure_future(run(world, "run-1", CONTROL_PLANES + WORKERS, chance))
        while world.clock.now() < end and not task.done():
            await world.clock.sleep(30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(for_an_hour())
    stuck = [node for node in nodes if node.control_plane and node.boot == 2]
    assert len(stuck) == 1 and watch.fewest_voters == 2 and watch.most_down == 1
    disruption = world.cluster().status["disruption"]
    assert isinstance(disruption, dict) and disruption["machine"] == stuck[0].name


def test_a_narrower_run_sees_what_a_machine_outside_of_it_is_going_through(tmp_path: Path) -> None:
    world, nodes = cluster(tmp_path)
    nodes[1].silent = True
    found = world.look("cp1")
    assert [refusal.reason for refusal in found.plan.refusals] == ["QuorumAtRisk"] and not found.plan.steps
