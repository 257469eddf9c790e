# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Putting a machine back while it is disturbed: kills, lost answers, other runs, changes at any moment (design section 12)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY
from ansible_collections.ichor.talos.plugins.module_utils._operations.rounds import Acted
from ansible_collections.ichor.talos.tests.unit._operations import fallen_world as f
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def test_a_hold_between_plan_and_step_is_heard() -> None:
    for step in (0, 1):
        world = f.planes()
        life = f.Life(world, "cp1")

        async def run(life: f.Life = life, world: w.World = world, step: int = step) -> Acted | None:
            await life.look()
            await world.clock.sleep(15)
            found = await life.look()
            if step and found is not None:
                await life.act(found)
                found = await life.look()
            f.with_annotation(world, "cp1", HOLD_APPLY, "true")
            return await life.act(found) if found is not None else None

        acted = asyncio.run(run())
        assert acted is not None and not acted.done and acted.refusal is not None and acted.refusal.rule == "12/hold-apply"
        assert len(world.removed) == step and not world.received


@pytest.mark.parametrize("lost", ["TimedOut", "ConnectionLost"])
def test_the_lost_answer_of_a_removal_is_looked_after(lost: str) -> None:
    for done in (True, False):
        world = f.planes()
        node = f.node_of(world, 2)
        (node.lose_removal if done else node.keep_member).append(w.error(lost))
        life = f.Life(world, "cp1").run()
        assert world.removed == [f"{1:016x}"] and world.accepted == ["cp1"] and len(life.done) == 2


def test_a_removal_that_etcd_refuses_is_told_and_nothing_is_sent() -> None:
    world = f.planes()
    f.node_of(world, 2).keep_member = [w.error("NodeRefused") for unused in range(9)]
    life = f.Life(world, "cp1")

    async def run() -> Acted | None:
        await life.look()
        await world.clock.sleep(15)
        found = await life.look()
        return await life.act(found) if found is not None else None

    acted = asyncio.run(run())
    assert acted is not None and not acted.done and acted.refusal is not None
    assert acted.refusal.reason == "StaleEtcdMember" and "talos_machine_removal" in acted.refusal.hint
    assert not world.received and "disruption" not in world.cluster().status and not world.store.leases.held


def test_a_member_that_another_run_removed_counts_as_done() -> None:
    world = f.planes()

    def other_run(number: int, what: str) -> None:
        if what == "lease prod" and not world.removed:
            for node in world.nodes.values():
                node.members = tuple(one for one in node.members if one.id != f"{1:016x}")

    world.hook = other_run
    life = f.Life(world, "cp1").run()
    assert not world.removed and world.accepted == ["cp1"] and len(life.done) == 2


def test_killed_anywhere_and_started_again_nothing_is_done_twice() -> None:
    reference = f.planes()
    f.Life(reference, "cp1").run()
    for number in range(1, len(reference.trace) + 1):
        world = f.planes()

        def kill(count: int, what: str, number: int = number) -> None:
            if count == number:
                raise w.Killed

        world.hook = kill
        try:
            f.Life(world, "cp1").run()
        except w.Killed:
            world.dead.add("run-1")
        world.hook = lambda count, what: None
        world.clock.time += 200
        f.Life(world, "cp1", holder="run-2").run(8)
        applies = [entry for entry in world.received if entry[0] == "cp1"]
        assert world.accepted == ["cp1"] and len(applies) == 1, reference.trace[number - 1]
        assert world.removed == [f"{1:016x}"], reference.trace[number - 1]
        status = world.machine("cp1").status
        assert status["configStoredAt"] and "appliedConfigHash" not in status and "sending" not in status, reference.trace[number - 1]


@pytest.mark.parametrize("then", ["closed", "running"])
def test_a_lost_answer_of_the_send_counts_as_stored_and_is_told_as_a_reinstall(then: str) -> None:
    world, node = f.worker()
    node.lose, node.after_apply = [w.error("TimedOut")], then
    f.Life(world, "w9").run()
    status = world.machine("w9").status
    assert world.accepted == ["w9"] and len(world.received) == 1 and "appliedConfigHash" not in status
    assert [event.reason for event in world.store.written] == ["NodeReinstalled"]


def test_a_left_over_send_and_silence_count_as_stored() -> None:
    world, node = f.worker()
    record = world.machine("w9")
    sending = {"hash": "f" * 64, "fingerprint": "FP-two", "time": "2023-11-14T00:00:00Z", "attempt": 1, "by": "run-0"}
    world.store.put(replace(record, status={**record.status, "sending": sending}))
    node.mode = "closed"
    found = asyncio.run(f.Life(world, "w9").look())
    status = world.machine("w9").status
    assert found is not None and found.row.reason == "ConfigStored" and found.requeue_after == 0
    assert status["storedConfigHash"] == "f" * 64 and "appliedConfigHash" not in status and not world.received


def test_without_a_lock_nothing_is_removed() -> None:
    world = f.planes()
    world.store.leases.refuse = "NoLock"
    life = f.Life(world, "cp1")

    async def run() -> Acted | None:
        await life.look()
        await world.clock.sleep(15)
        found = await life.look()
        return await life.act(found) if found is not None else None

    acted = asyncio.run(run())
    assert acted is not None and acted.refusal is not None and acted.refusal.reason == "NoLock" and not world.removed and not world.received


def test_a_lease_lost_before_the_removal_removes_nothing() -> None:
    world = f.planes()
    life = f.Life(world, "cp1")

    def lose(number: int, what: str) -> None:
        if what == "status written prod":
            world.store.leases.held["prod"] = replace(world.store.leases.held["prod"], holder="somebody")

    async def run() -> Acted | None:
        await life.look()
        await world.clock.sleep(15)
        found = await life.look()
        world.hook = lose
        return await life.act(found) if found is not None else None

    acted = asyncio.run(run())
    assert acted is not None and acted.refusal is not None and acted.refusal.reason == "LockHeld"
    assert not world.removed and "disruption" not in world.cluster().status


def test_two_runs_at_once_remove_once_and_send_once() -> None:
    reference = f.planes()
    f.Life(reference, "cp1").run()
    for late in range(0, len(reference.trace), 3):
        world = f.planes()

        async def both(world: w.World = world, late: int = late) -> None:
            async def second() -> None:
                while len(world.trace) < late:
                    await asyncio.sleep(0)
                await f.Life(world, "cp1", holder="run-2").live(8)

            other = asyncio.ensure_future(second())
            await asyncio.gather(f.Life(world, "cp1").live(8), asyncio.wait_for(other, 30))

        asyncio.run(both())
        assert world.removed == [f"{1:016x}"] and world.accepted == ["cp1"] and len(world.received) == 1, late


@pytest.mark.parametrize("name", ["w9", "cp1"])
@pytest.mark.parametrize("change", ["leaf", "machine", "state"])
def test_whatever_changes_at_any_moment_nothing_goes_to_another_one(name: str, change: str) -> None:
    def fresh() -> tuple[w.World, w.Node, Endpoint]:
        world = f.worker()[0] if name == "w9" else f.planes()
        endpoint = Endpoint("10.0.0.9" if name == "w9" else "10.0.0.1")
        return world, world.nodes[endpoint], endpoint

    reference = fresh()[0]
    f.Life(reference, name).run()
    last = max(number for number, what in enumerate(reference.trace, 1) if what == f"facts {name}")
    for number in range(1, len(reference.trace) + 1):
        world, node, endpoint = fresh()

        def disturb(count: int, what: str, number: int = number, node: w.Node = node, world: w.World = world, endpoint: Endpoint = endpoint) -> None:
            if count != number:
                return
            if change == "leaf":
                node.certificate = w.certificate("new")
            elif change == "state":
                node.partitions = f.NOT_WIPED
            else:
                world.nodes[endpoint] = w.Node("stranger", w.identity(77), certificate=node.certificate, etcd=node.etcd)

        world.hook = disturb
        f.Life(world, name).run(8)
        assert not world.unpinned and "stranger" not in [entry[0] for entry in world.received], reference.trace[number - 1]
        assert len(world.received) <= 1 and len(world.accepted) <= 1, reference.trace[number - 1]
        if change == "state" and number <= last:
            assert not world.received, reference.trace[number - 1]


def test_a_send_that_another_run_has_done_counts_and_one_that_has_to_wait_says_for_whom() -> None:
    for other_run in (True, False):
        world = f.planes()
        f.node_of(world, 1).certificate = w.certificate("boot-1")
        for node in world.nodes.values():
            node.members = tuple(one for one in node.members if one.id != f"{1:016x}")
        life = f.Life(world, "cp1")

        async def run(life: f.Life = life, world: w.World = world, other_run: bool = other_run) -> Acted | None:
            await life.look()
            await world.clock.sleep(15)
            found = await life.look()
            if other_run:
                await f.Life(world, "cp1", holder="run-2").live()
            else:
                cluster = world.cluster()
                world.store.put(replace(cluster, status={**cluster.status, "disruption": {"machine": "cp2", "step": "reboot", "time": "2023-11-14T00:00:00Z"}}))
            return await life.act(found) if found is not None else None

        acted = asyncio.run(run())
        assert acted is not None and acted.done == other_run and len(world.received) == int(other_run)
        if not other_run:
            assert acted.refusal is not None and acted.refusal.rule == "13/waits" and "cp2" in acted.refusal.message
