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


def test_a_machine_that_is_wiped_again_before_it_converged_is_followed_and_never_sent() -> None:
    world, node = f.worker()
    f.Life(world, "w9").run()
    node.mode, node.certificate = "maintenance", w.certificate("three")
    world.clock.time += 100_000
    for holder in ("run-2", "run-3"):
        found = asyncio.run(f.Life(world, "w9", holder=holder).look())
        assert found is None
    assert len(world.received) == 1


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


def test_a_machine_whose_name_a_patch_gives_to_another_is_not_sent_a_configuration() -> None:
    world, dummy = f.worker()
    world.store.put(w.machine_record("w8", 8, hostname=None, status=f.JOINED))
    renderer = f.Renderer()
    renderer.beside = (("w8", "W9"),)
    f.Life(world, "w9", renderer=renderer).run()
    assert not world.accepted and reason(world, "w9") == "HostnameConflict"
    renderer.beside = (("w8", "w8"),)
    f.Life(world, "w9", renderer=renderer).run()
    assert world.accepted == ["w9"]
