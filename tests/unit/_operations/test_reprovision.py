# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A converged machine that fell back to maintenance mode, in memory: looks, steps, what is written, what is sent (design section 12)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, Partition
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY, condition_of
from ansible_collections.ichor.talos.plugins.module_utils._operations import provision_round
from ansible_collections.ichor.talos.plugins.module_utils._operations.rounds import Acted
from ansible_collections.ichor.talos.tests.unit._operations import fallen_world as f
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def reason(world: w.World, name: str) -> str:
    found = condition_of(world.machine(name), "Provisioned")
    return found.reason if found is not None else ""


ENCRYPTED = Present((Partition("/dev/sda3", "/dev/sda", "STATE", "luks"),))


@pytest.mark.parametrize("left", [Absent(), f.LEFT_OVER, f.KEPT, Present(()), ENCRYPTED], ids=["blank", "efi", "state-only", "none", "unclear"])
def test_a_wiped_worker_is_sent_its_configuration_once_and_followed(left: object) -> None:
    world, node = f.worker()
    node.partitions = left  # type: ignore[assignment]
    planned = f.checked(world, "w9")
    life = f.Life(world, "w9").run()
    assert planned is not None and life.done == [step.id for step in planned.plan.steps] and len(life.done) == 1
    assert world.accepted == ["w9"] and not world.unpinned and world.removed == []
    status = world.machine("w9").status
    assert "appliedConfigHash" not in status and "observedInputsHash" not in status and "sending" not in status
    assert status["configStoredAt"] != f.JOINED["configStoredAt"] and status["storedConfigHash"] == world.received[0][3]
    assert status["maintenanceFingerprint"] == "FP-two" and reason(world, "w9") == "ConfigStored"
    event = [event for event in world.store.written if event.reason == "NodeReinstalled"]
    assert [one.type for one in event] == ["Warning"] and "Ichor re-installed this node" in event[0].message
    assert str(status["storedConfigHash"])[:12] in event[0].message and not world.store.leases.held


def test_a_machine_that_does_not_answer_in_maintenance_mode_is_not_this_file_s() -> None:
    world, node = f.worker()
    for mode in ("closed", "running"):
        node.mode = mode
        assert f.checked(world, "w9") is None
    assert "maintenance 10.0.0.9:50000" not in world.trace


def test_a_wiped_control_plane_of_three_two_readings_removal_send() -> None:
    world = f.planes()
    planned = f.checked(world, "cp1")
    assert planned is not None and [step.action for step in planned.plan.steps] == ["RemoveEtcdMember", "Reinstall"]
    assert all(step.locked and step.waits_for for step in planned.plan.steps)
    life = f.Life(world, "cp1").run()
    assert life.done == [step.id for step in planned.plan.steps]
    assert world.removed == [f"{1:016x}"] and world.accepted == ["cp1"] and not world.unpinned
    waited = [found for found in life.rounds if found is not None and found.plan.steps and found.plan.steps[0].waits_for]
    assert len(waited) == 1, "two readings, no third"
    assert world.trace.index("etcd_remove_member cp2") < world.trace.index("apply cp1")
    assert world.cluster().status["disruption"]["machine"] == "cp1"  # type: ignore[index,call-overload]
    status = world.machine("cp1").status
    assert "wipeSeen" not in status and "appliedConfigHash" not in status and reason(world, "cp1") == "ConfigStored"
    reasons = [event.reason for event in world.store.written]
    assert reasons == ["StaleEtcdMemberRemoved", "NodeReinstalled"] and not world.store.leases.held
    again = f.Life(world, "cp1", holder="run-2").run()
    assert not again.done and len(world.received) == 1


def test_the_lease_is_not_held_between_the_readings_and_is_confirmed_before_the_removal() -> None:
    world = f.planes()
    life = f.Life(world, "cp1")
    asyncio.run(life.look())
    assert "lease prod" not in world.trace and world.machine("cp1").status["wipeSeen"]
    asyncio.run(life.live())
    removal = world.trace.index("etcd_remove_member cp2")
    assert world.trace[removal - 1] == "renew prod" and "lease prod" in world.trace[:removal]


def test_runs_of_one_pass_pair_across_runs_and_a_first_reading_of_long_ago_does_not() -> None:
    for pause, steps in ((600, 1), (8000, 0)):
        world = f.planes()
        asyncio.run(f.Life(world, "cp1").look())
        world.clock.time += pause
        life = f.Life(world, "cp1", holder="run-2")
        found = asyncio.run(life.look())
        assert found is not None and sum(1 for step in found.plan.steps if not step.waits_for) == steps


@pytest.mark.parametrize("other", ["silent", "running", "state", "boot", "stranger"])
def test_any_other_observation_clears_the_first_reading(other: str) -> None:
    world = f.planes()
    asyncio.run(f.Life(world, "cp1").look())
    node, seen = f.node_of(world, 1), world.machine("cp1").status["wipeSeen"]
    if other in ("silent", "running"):
        node.mode = "closed" if other == "silent" else "running"
    elif other == "state":
        node.partitions = f.NOT_WIPED
    elif other == "boot":
        node.certificate = w.certificate("another-boot")
    else:
        node.identity = w.identity(77)
    world.clock.time += 20
    asyncio.run(f.Life(world, "cp1").look())
    assert world.machine("cp1").status.get("wipeSeen") != seen
    assert ("wipeSeen" in world.machine("cp1").status) == (other == "boot") and not world.removed and not world.received


def test_state_only_wiped_keeps_the_member_and_needs_no_second_reading() -> None:
    world = f.planes()
    f.node_of(world, 1).partitions = f.KEPT
    life = f.Life(world, "cp1").run()
    assert len(life.done) == 1 and world.accepted == ["cp1"] and not world.removed
    assert "disruption" not in world.cluster().status, "nobody has to wait for a member that only comes back"
    assert "etcd_members cp2" not in world.trace


def test_all_state_wiped_comes_back_although_etcd_has_no_quorum() -> None:
    world = f.planes(3, (1, 2, 3))
    for number in (1, 2, 3):
        f.node_of(world, number).partitions = f.KEPT
        f.Life(world, f"cp{number}").run()
    assert world.accepted == ["cp1", "cp2", "cp3"] and not world.removed


def test_state_that_was_not_found_is_one_warning_and_nothing_is_sent() -> None:
    world = f.planes()
    f.node_of(world, 1).partitions = f.NOT_WIPED
    life = f.Life(world, "cp1").run()
    assert not life.done and len(life.last.plan.warnings) == 1 and reason(world, "cp1") == "StateNotFound"
    assert life.last.requeue_after == 15 and world.machine("cp1").status["appliedConfigHash"]
    writes = world.store.writes
    f.Life(world, "cp1").run()
    assert world.store.writes == writes, "the second look writes nothing"


def test_a_twin_at_another_address_gets_nothing() -> None:
    world = f.planes()
    twin = world.nodes.pop(Endpoint("10.0.0.1"))
    world.nodes[Endpoint("10.0.0.50")] = twin
    assert f.checked(world, "cp1") is None
    life = f.Life(world, "cp1").run()
    assert life.rounds == [None] and not world.received and not world.removed
    assert not any("10.0.0.50" in what for what in world.trace)


def test_two_that_answer_as_the_machine_get_nothing() -> None:
    world, node = f.worker()
    record = world.machine("w9")
    status = {**record.status, "observedEndpoint": "10.0.0.60:50000", "observedEndpointFor": record.spec["endpoint"]}
    world.store.put(w.machine_record("w9", 9, status=status))
    world.nodes[Endpoint("10.0.0.60")] = w.Node("twin", node.identity, certificate=w.certificate("twin"), etcd="")
    life = f.Life(world, "w9").run()
    assert life.last.plan.refusals[0].rule == "12/two-answer" and not world.received and reason(world, "w9") == "ReprovisionBlocked"


@pytest.mark.parametrize("at", ["10.0.0.9", "10.0.0.60"])
def test_a_machine_is_found_at_its_endpoint_and_where_it_was_read(at: str) -> None:
    world, node = f.worker()
    record = world.machine("w9")
    status = {**record.status, "observedEndpoint": "10.0.0.60:50000", "observedEndpointFor": record.spec["endpoint"]}
    world.store.put(w.machine_record("w9", 9, status=status))
    world.nodes = {Endpoint(at): node}
    assert f.Life(world, "w9").run().done and world.accepted == ["w9"] and not world.unpinned


def test_the_only_control_plane_is_blocked_and_given_up_only_by_its_cluster_s_name() -> None:
    for discard, sent in (("", 0), ("test", 0), ("prod", 1)):
        world = f.planes(1, (1,))
        life = f.Life(world, "cp1", discard=discard).run()
        assert len(world.accepted) == sent and not world.removed and not world.bootstraps
        if not sent:
            assert reason(world, "cp1") == "ReprovisionBlocked" and "Restore etcd" in life.last.row.message and life.last.settled


def test_etcd_is_given_up_only_for_the_machine_that_was_named() -> None:
    world = f.planes(3, (1, 2, 3))
    life = f.Life(world, "cp1", discard="prod")
    life.around = replace(life.around, names=("cp1", "cp2"))
    life.run()
    assert not world.accepted and reason(world, "cp1") == "ReprovisionBlocked"


def test_all_control_planes_wiped_are_never_sent_and_never_bootstrapped() -> None:
    world = f.planes(3, (1, 2, 3))
    for number in (1, 2, 3):
        f.Life(world, f"cp{number}").run()
        assert reason(world, f"cp{number}") == "ReprovisionBlocked"
    assert not world.received and not world.removed and not world.bootstraps


def test_hold_apply_is_the_opt_out() -> None:
    world, dummy = f.worker()
    f.with_annotation(world, "w9", HOLD_APPLY, "true")
    life = f.Life(world, "w9").run()
    assert not world.received and reason(world, "w9") == "ReprovisionBlocked" and life.last.held
    f.with_annotation(world, "w9", HOLD_APPLY, "false")
    assert f.Life(world, "w9").run().done and world.accepted == ["w9"]


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


def test_a_machine_that_is_wiped_again_before_it_converged_is_followed_and_never_sent() -> None:
    world, node = f.worker()
    f.Life(world, "w9").run()
    node.mode, node.certificate = "maintenance", w.certificate("three")
    world.clock.time += 100_000
    for holder in ("run-2", "run-3"):
        found = asyncio.run(f.Life(world, "w9", holder=holder).look())
        assert found is None
    assert len(world.received) == 1


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


def test_two_of_five_wiped_at_once_both_come_back() -> None:
    world = f.planes(5, (1, 2))
    f.Life(world, "cp1").run()
    assert world.removed == [f"{1:016x}"] and world.accepted == ["cp1"]
    life = f.Life(world, "cp2").run()
    assert world.removed == [f"{1:016x}", f"{2:016x}"], "etcd takes no new member while a voter is dead, so that removal waits for nobody"
    assert world.accepted == ["cp1"] and [wait.target for wait in life.last.plan.steps[0].waits_for] == ["cp1"]
    cluster = world.cluster()
    world.store.put(replace(cluster, status={key: value for key, value in cluster.status.items() if key != "disruption"}))
    f.Life(world, "cp2").run()
    assert world.accepted == ["cp1", "cp2"]


def test_a_member_that_lives_elsewhere_under_the_machine_s_address_is_left_alone() -> None:
    """The peer address is one of the machine's, its own node answers at another one: who is there?"""
    world = f.planes()
    record = world.machine("cp1")
    status = {**record.status, "observedEndpoint": "10.0.0.60:50000", "observedEndpointFor": record.spec["endpoint"]}
    world.store.put(replace(record, status=status))
    node = world.nodes.pop(Endpoint("10.0.0.1"))
    world.nodes[Endpoint("10.0.0.60")] = node
    world.nodes[Endpoint("10.0.0.1")] = replace(f.node_of(world, 2), name="other", identity=w.identity(44), member_id=f"{1:016x}")
    life = f.Life(world, "cp1").run()
    assert life.last.plan.refusals[0].rule == "12/member-answers" and not world.removed and not world.received


def test_control_planes_that_list_different_members_block() -> None:
    world = f.planes()
    f.node_of(world, 3).members = (f.member(2), f.member(3))
    life = f.Life(world, "cp1").run()
    assert life.last.plan.refusals[0].rule == "12/etcd-unreadable" and not world.removed


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


def test_a_control_plane_that_trust_armed_again_has_its_stale_member_removed_before_the_send() -> None:
    world = f.planes()
    armed = {"stage": "maintenance", "maintenanceFingerprint": "FP-boot-1", "maintenanceFingerprintAt": "2023-11-14T00:00:00Z"}
    world.store.put(w.machine_record("cp1", 1, "controlplane", status=armed, acceptedFingerprint="FP-boot-1"))
    life = f.Life(world, "cp1")

    async def run() -> list[tuple[str, ...]]:
        plans = []
        for unused in range(4):
            found = await provision_round.look(life.around, "cp1", life.effects)
            plans.append(tuple(step.action for step in found.plan.steps))
            now = next((step for step in found.plan.steps if not step.waits_for), None)
            if now is None:
                await world.clock.sleep(15)
                continue
            acted = await provision_round.act(life.around, found, now, life.effects)
            assert acted.done, acted.refusal
            if now.action == "ApplyConfig":
                break
        return plans

    both = ("RemoveEtcdMember", "ApplyConfig")
    assert asyncio.run(run()) == [both, both, ("ApplyConfig",)]
    assert world.removed == [f"{1:016x}"] and world.accepted == ["cp1"] and not world.unpinned
    assert world.trace.index("etcd_remove_member cp2") < world.trace.index("apply cp1")
    assert [event.reason for event in world.store.written] == ["StaleEtcdMemberRemoved", "ConfigApplied"]


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
