# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 8: a crash at any point loses nothing and repeats nothing harmful; a stop releases the lock (section 13)."""

from __future__ import annotations

import asyncio

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations import bootstrap
from ansible_collections.ichor.talos.tests.laws.sending import ROLES, apply, boundaries, run_once, world_with
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def kill_at(world: w.World, number: int, holder: str) -> None:
    """From this boundary on the process of `holder` is dead: it neither calls nor writes, nor releases its lock."""
    def hook(count: int, what: str) -> None:
        if count >= number:
            world.dead.add(holder)
            raise w.Killed(what)
    world.hook = hook


def survive(world: w.World) -> None:
    world.hook = lambda count, what: None


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("later", [5.0, 200.0], ids=["at-once", "later"])
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next_without_a_second_accepted_apply(role: str, later: float) -> None:
    moments = boundaries(role)
    assert len(moments) > 10
    for number in range(1, len(moments) + 1):
        world, dummy = world_with(role)
        kill_at(world, number, "run-1")
        with pytest.raises(w.Killed):
            run_once(world, role)
        survive(world)
        for attempt in range(2, 6):
            world.clock.time += later
            run_once(world, role, f"run-{attempt}")
        world.clock.time += 100
        run_once(world, role, "run-9")
        assert world.accepted == ["m1"], moments[number - 1]
        status = world.machine("m1").status
        assert status["configStoredAt"] and "sending" not in status, moments[number - 1]
        assert {view.holder for view in world.store.leases.held.values()} <= world.dead, moments[number - 1]


@pytest.mark.parametrize("role", ROLES)
def test_a_run_that_is_stopped_anywhere_leaves_no_lock_and_a_state_to_go_on_from(role: str) -> None:
    moments = boundaries(role)
    for number in range(1, len(moments) + 1):
        world, dummy = world_with(role)

        async def stopped(world: w.World = world, number: int = number) -> None:
            task = asyncio.ensure_future(apply(world, role))
            world.hook = lambda count, what: task.cancel() if count == number else None
            await asyncio.wait([task])
            after = len(world.trace)
            await asyncio.sleep(0)
            assert [what for what in world.trace[after:] if not what.startswith("release")] == []

        asyncio.run(stopped())
        assert not world.store.leases.held, moments[number - 1]
        survive(world)
        world.clock.time += 100
        run_once(world, role, "run-2")
        assert world.accepted == ["m1"] and world.machine("m1").status["configStoredAt"], moments[number - 1]


def control_plane() -> w.World:
    world, node = world_with("controlplane")
    status = {"stage": "booting", "configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a", "maintenanceFingerprint": "FP-one"}
    world.store.put(w.machine_record("m1", 1, "controlplane", status=status))
    node.mode = "running"
    return world


def run_bootstrap(world: w.World, holder: str = "run-1") -> object:
    return asyncio.run(bootstrap.run(bootstrap.Request("prod", "m1"), world.ports(holder), w.OpenGate()))


def test_a_bootstrap_that_is_killed_anywhere_happens_once() -> None:
    world = control_plane()
    run_bootstrap(world)
    moments = world.trace
    assert len(moments) > 10 and world.bootstraps == ["m1"]
    for number in range(1, len(moments) + 1):
        world = control_plane()
        kill_at(world, number, "run-1")
        with pytest.raises(w.Killed):
            run_bootstrap(world)
        survive(world)
        run_bootstrap(world, "run-2")
        assert world.bootstraps == ["m1"], moments[number - 1]
        assert world.cluster().status["bootstrappedAt"] and "bootstrapping" not in world.cluster().status, moments[number - 1]
        run_bootstrap(world, "run-3")
        assert world.bootstraps == ["m1"], moments[number - 1]


def test_two_bootstraps_at_once_on_two_machines_give_one_cluster() -> None:
    for lead in range(0, 20, 2):
        world = control_plane()
        second = w.place(world, "m2", 2, "controlplane")
        third = w.place(world, "m3", 3, "controlplane")
        second.mode = third.mode = "running"
        for name, number in (("m2", 2), ("m3", 3)):
            world.store.put(w.machine_record(name, number, "controlplane", status=dict(world.machine("m1").status)))

        async def both(world: w.World = world, lead: int = lead) -> None:
            async def one(name: str, holder: str, after: int) -> None:
                while len(world.trace) < after:
                    await asyncio.sleep(0)
                await bootstrap.run(bootstrap.Request("prod", name), world.ports(holder), w.OpenGate())

            await asyncio.gather(one("m1", "run-1", 0), one("m2", "run-2", lead))

        asyncio.run(both())
        assert len(world.bootstraps) == 1 and not world.store.leases.held, lead


def test_a_lost_status_is_no_licence_to_send() -> None:
    world, dummy = world_with("worker")
    world.store.records[Ref(MACHINE, "m1")] = w.machine_record("m1", 1, status={})
    outcome = run_once(world, "worker")
    assert outcome.reason == "StatusMissing" and not world.trace and not world.machine("m1").status
