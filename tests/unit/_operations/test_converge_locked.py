# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps under the lock of the cluster: control planes one after the other, reboots, leases, evidence (design sections 11 and 13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import Disruption, disruption_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import Failure, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY
from ansible_collections.ichor.talos.plugins.module_utils._operations.disruption import announce
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from ansible_collections.ichor.talos.tests.unit._operations.converging_world import Node, World, with_rule, with_sysctl


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def control_planes(world: World, number: int = 3) -> list[Node]:
    return [world.joined(f"cp{one}", one, "controlplane") for one in range(1, number + 1)]


def test_an_api_server_flag_goes_to_one_control_plane_after_the_other_each_with_its_evidence(world: World) -> None:
    control_planes(world)
    world.patch("flags", [{"cluster": {"apiServer": {"extraArgs": {"v": "4"}}}}])
    ran = world.run("cp1", "cp2", "cp3")
    assert sorted(ran.done) == [(f"cp{one}", "ApplyDrift", "NO_REBOOT") for one in (1, 2, 3)]
    assert {round.row.reason for round in ran.last.values()} == {"Converged"} and "disruption" not in world.cluster().status
    times = [at for at, what in world.times if what == "apply"]
    assert all(later - earlier >= 15 for earlier, later in zip(times, times[1:])), "two readings a follow interval apart lie between"


def test_a_control_plane_that_does_not_come_back_ready_holds_the_next(world: World) -> None:
    first, second, dummy = control_planes(world)
    world.patch("flags", [{"cluster": {"apiServer": {"extraArgs": {"v": "4"}}}}])
    world.on_apply = lambda node: setattr(node, "ready", False)
    ran = world.run("cp1", "cp2", "cp3", rounds=6)
    assert ran.done == [("cp1", "ApplyDrift", "NO_REBOOT")]
    assert [wait.target for wait in ran.last["cp2"].plan.steps[0].waits_for] == ["cp1"] and not ran.last["cp2"].settled
    assert world.cluster().status["disruption"]["machine"] == "cp1"  # type: ignore[index,call-overload]
    world.on_apply, first.ready = lambda node: None, True
    assert {name for name, dummy, dummy2 in world.run("cp1", "cp2", "cp3").done} == {"cp2", "cp3"}
    assert second.ready


@pytest.mark.parametrize("version", ["v1.12.11", "v1.13.9"])
def test_three_control_planes_restart_one_after_the_other(tmp_path: Path, version: str) -> None:
    world = World(tmp_path, version)
    nodes = control_planes(world)
    world.patch("rules", [{"machine": {"udev": {"rules": ["one"]}}}])
    ran = world.run("cp1", "cp2", "cp3")
    assert [node.boot for node in nodes] == [2, 2, 2] and {round.row.reason for round in ran.last.values()} == {"Converged"}
    assert world.most_down == 1 and "disruption" not in world.cluster().status


def test_a_control_plane_is_not_restarted_while_etcd_has_no_voter_to_spare(world: World) -> None:
    first, dummy, third = control_planes(world)
    first.active = with_rule(first.active)
    third.silent = True
    found = world.look("cp1")
    assert [refusal.reason for refusal in found.plan.refusals] == ["QuorumAtRisk"] and not found.plan.steps
    third.silent = False
    third.leader = ""
    assert [refusal.reason for refusal in world.look("cp1").plan.refusals] == ["QuorumAtRisk"]
    third.leader = "1"
    assert len(world.look("cp1").plan.steps) == 2


def test_the_only_control_plane_may_restart(world: World) -> None:
    world.change_cluster(controlPlane={"count": 1})
    node, = control_planes(world, 1)
    node.active = with_rule(node.active)
    assert world.run("cp1").done == [("cp1", "ApplyDrift", "STAGED"), ("cp1", "Reboot", "")]


def test_an_even_number_of_control_planes_holds_what_needs_the_lock_and_no_worker(world: World) -> None:
    first, dummy = control_planes(world, 2)
    worker = world.joined("w1", 11)
    first.active, worker.active = with_sysctl(first.active), with_sysctl(worker.active)
    assert [refusal.reason for refusal in world.look("cp1").plan.refusals] == ["Transitioning"]
    assert world.run("w1").done == [("w1", "ApplyDrift", "NO_REBOOT")]


def test_a_reboot_whose_answer_is_lost_is_not_sent_again_while_it_is_under_way(world: World) -> None:
    node = world.joined("w1", 1)
    node.active, node.lose = with_rule(node.active), []
    world.on_apply = lambda node: node.lose.extend([TalosError("ConnectionLost", "It went away.")]) if not node.lose else None
    ran = world.run("w1")
    assert [mode for dummy, mode, unused in world.sent] == ["STAGED", "REBOOT"] and node.boot == 2 and ran.last["w1"].row.ready


def test_a_node_that_was_told_to_reboot_and_has_not_gone_down_is_left_alone(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    world.ignore_reboot = True
    ran = world.run("w1", rounds=10)
    assert [mode for dummy, mode, unused in world.sent] == ["STAGED", "REBOOT"] and world.ready("w1") == ("False", "NodeRebooting")
    assert not ran.last["w1"].settled
    world.ignore_reboot = False
    world.clock.time += 601
    assert world.run("w1").done == [("w1", "Reboot", "")] and node.boot == 2


def test_a_lease_that_is_lost_before_the_send_sends_nothing_and_leaves_no_disruption(world: World) -> None:
    first, *dummy = control_planes(world)
    first.active = with_sysctl(first.active)
    world.lose_lease = True
    ran = world.run("cp1", rounds=2)
    assert not world.sent and [acted.refusal.reason for *unused, acted in ran.acted if acted.refusal][0] == "LockHeld"
    assert "disruption" not in world.cluster().status


def test_another_machine_that_is_disrupted_meanwhile_is_seen_under_the_lease(world: World) -> None:
    first, *dummy = control_planes(world)
    first.active = with_sysctl(first.active)
    around = world.around()
    found = world.look("cp1", around=around)
    world.disrupt({"machine": "cp2", "step": "reset", "time": moment(world.clock.now())})
    acted = world.act(found, around)
    assert not acted.done and acted.refusal is not None and acted.refusal.rule == "13/waits" and not world.sent


def test_who_announces_late_does_not_write_over_what_another_run_does_to_the_same_machine(world: World) -> None:
    """It was frozen between its last look at the lock and the announcement; the other run has told the node meanwhile."""
    world.joined("w1", 1)
    seen, mine = world.cluster(), Disruption("w1", "reboot", moment(world.clock.now()), "boot-1")
    theirs = {"machine": "w1", "step": "reboot", "time": moment(world.clock.now() + 60), "bootID": "boot-1"}
    world.disrupt(dict(theirs))
    with pytest.raises(TalosError) as caught:
        announce(world.ports(), seen, mine)
    assert caught.value.reason == "OperationInProgress" and world.cluster().status["disruption"] == theirs
    # One that was seen is written over, and so is the drain that comes before a step.
    assert "boot-1" in str(announce(world.ports(), world.cluster(), mine).status["disruption"])
    world.disrupt({**theirs, "step": "drain"})
    assert disruption_of(announce(world.ports(), seen, mine)) == mine


def test_who_lost_the_lock_writes_nothing(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    world.run("w1", allow_reboot=False)
    around = world.around()
    found = world.look("w1", around=around)
    before = world.cluster().status
    world.store.leases.renew = world._lost  # type: ignore[method-assign]
    world.store.patch_status = lambda *dummy, **unused: pytest.fail("a status is written")  # type: ignore[method-assign]
    acted = world.act(found, world.around())
    assert not acted.done and acted.refusal is not None and acted.refusal.reason == "LockHeld" and node.boot == 1
    assert world.cluster().status == before


def test_the_evidence_of_a_machine_that_is_not_in_this_run_is_looked_for_too(world: World) -> None:
    first, second, *dummy = control_planes(world)
    first.active = with_sysctl(first.active)
    disruption = {"machine": "cp2", "step": "reboot", "time": moment(world.clock.now() - 60), "bootID": "boot-0"}
    world.disrupt(disruption)
    assert world.run("cp1").done == [("cp1", "ApplyDrift", "NO_REBOOT")] and second.boot == 1


def test_one_look_in_a_follow_interval_looks_for_the_evidence_however_many_wait(world: World) -> None:
    workers = [world.joined(f"w{number}", number) for number in range(1, 9)]
    for node in workers[1:]:
        node.active = with_rule(node.active)
    workers[0].silent = True
    world.disrupt({"machine": "w1", "step": "reboot", "time": moment(world.clock.now() - 60), "bootID": "boot-0"})
    world.calls.clear()
    around = world.around()
    for node in workers[1:]:
        assert world.look(node.name, around=around).plan.steps[-1].waits_for[0].target == "w1"
    assert sum(call.startswith("authenticated 10.0.0.1:") for call in world.calls) <= 2


def test_what_another_machine_shows_at_the_address_is_no_evidence(world: World) -> None:
    first, second, *dummy = control_planes(world)
    first.active = with_sysctl(first.active)
    second.identity = w.identity(9)
    disruption = {"machine": "cp2", "step": "reboot", "time": moment(world.clock.now() - 60), "bootID": "boot-0"}
    world.disrupt(disruption)
    assert not world.run("cp1", rounds=3).done


def test_a_refused_send_leaves_what_has_not_shown_its_end_as_it_was(world: World) -> None:
    first, *dummy = control_planes(world)
    first.active, first.ready = with_sysctl(first.active), False
    before = {"machine": "cp1", "step": "apply", "time": moment(world.clock.now() - 60)}
    world.disrupt(dict(before))
    first.refuse = [TalosError("PermissionDenied", "It may not be sent.", failure=Failure(code="PERMISSION_DENIED"))]
    ran = world.run("cp1", rounds=1)
    assert [acted.done for *unused, acted in ran.acted] == [False] and world.cluster().status["disruption"] == before


def test_a_step_that_another_run_has_done_meanwhile_counts_as_done_and_is_not_repeated(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    around = world.around()
    first = world.look("w1", around=around)
    world.run("w1", allow_reboot=False)
    assert world.act(first, around).done and [mode for dummy, mode, unused in world.sent] == ["STAGED"]
    second = world.look("w1", around=around)
    world.run("w1")
    sent = len(world.sent)
    assert world.act(second, around).done and len(world.sent) == sent and node.boot == 2


def test_a_step_that_is_called_for_no_longer_is_not_done(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(node.active)
    around = world.around()
    found = world.look("w1", around=around)
    world.annotate("w1", **{HOLD_APPLY: "true"})
    acted = world.act(found, around)
    assert not acted.done and acted.refusal is not None and acted.refusal.reason == "HoldApply" and not world.sent
    world.annotate("w1", **{HOLD_APPLY: "false"})
    node.stage = "upgrading"
    acted = world.act(found, around)
    assert not acted.done and acted.refusal is not None and acted.refusal.rule == "11/changed" and not world.sent
