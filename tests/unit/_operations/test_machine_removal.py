# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removals and resets through a store and nodes in memory: what is sent, what stays, and a run that is killed at each of its boundaries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import disruption_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import condition_of
from ansible_collections.ichor.talos.plugins.module_utils._operations import etcd_member, etcd_member_info
from ansible_collections.ichor.talos.tests.unit._operations import fallen_world as fallen
from ansible_collections.ichor.talos.tests.unit._operations import removal_world as r
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def healthy() -> w.World:
    return r.planes(4)


def with_worker() -> w.World:
    return r.planes(3, worker=True)


def dead() -> w.World:
    return r.planes(3, 1)


LIVES: dict[str, tuple[Callable[[], w.World], str]] = {
    "a healthy control plane": (healthy, "cp1"), "a worker": (with_worker, "w9"), "a dead one": (dead, "cp1")}


def ended(world: w.World, name: str) -> None:
    """The machine is gone from the cluster, and whatever stays is whole."""
    assert r.record_of(world, name) is None
    assert disruption_of(world.cluster()) is None and not world.store.leases.held
    members = {member.name for node in world.nodes.values() if node.mode == "running" and node.etcd == "Running" for member in node.members}
    assert name not in members and world.accepted == []


@pytest.mark.parametrize("life", LIVES)
def test_check_is_run_and_a_second_run_changes_nothing(life: str) -> None:
    make, name = LIVES[life]
    world = make()
    gate = w.OpenGate(True)
    before = dict(world.store.records)
    planned = r.remove(world, name, check=True, gate=gate)
    assert not planned.refused and planned.executed == () and dict(world.store.records) == before and world.store.written == []
    done = r.remove(world, name)
    assert done.executed == tuple(step.id for step in gate.plans[0].steps) and done.plan.id == gate.plans[0].id and not done.refused, done.message
    ended(world, name)
    again = r.remove(world, name)
    assert again.plan.steps == () and not again.refused


@pytest.mark.parametrize("life", LIVES)
def test_killed_at_every_boundary_and_resumed(life: str) -> None:
    make, name = LIVES[life]
    whole = make()
    r.remove(whole, name)
    count = len(whole.trace)
    assert count > 20
    for at in range(1, count + 1):
        world = make()

        def kill(number: int, what: str, at: int = at) -> None:
            if number == at:
                raise w.Killed(what)

        world.hook = kill
        with pytest.raises(w.Killed):
            r.remove(world, name)
        world.hook = lambda number, what: None
        world.dead.add("run-1")
        world.store.leases.held.clear()
        for attempt in range(2):
            again = r.remove(world, name, holder=f"run-{attempt + 2}")
            assert not again.refused, (at, whole.trace[at - 1], again.message)
        ended(world, name)
        assert len(world.removed) + len(world.left) <= 2 and len(world.resets) <= 2, (at, whole.trace[at - 1])


@pytest.mark.parametrize("life", LIVES)
def test_a_store_that_becomes_read_only_hides_nothing_that_was_done(life: str) -> None:
    make, name = LIVES[life]
    whole = make()
    r.remove(whole, name)
    for write, world, done in w.read_only_from_each_write(
            whole, make, lambda world, holder: r.remove(world, name, holder=holder), lambda world: ended(world, name)):
        actions = [step.action for step in done.plan.steps if step.id in done.executed]
        sent = {"LeaveEtcd": world.left, "ResetMachine": world.resets, "RemoveEtcdMember": world.removed}
        assert {action for action in actions if action != "DeleteRecord"} == {action for action, nodes in sent.items() if nodes}, (write, actions)
        assert ("DeleteRecord" in actions) == (r.record_of(world, name) is None)


def test_the_condition_holds_the_machine_from_before_the_first_step() -> None:
    world = healthy()
    seen: list[str] = []

    def look(number: int, what: str) -> None:
        if what.startswith(("etcd_leave", "reset", "announce")) and "answered" not in what:
            found = condition_of(world.machine("cp1"), "Removal")
            seen.append(found.reason if found is not None else "")

    world.hook = look
    r.remove(world, "cp1")
    assert seen == ["Removing", "Removing"]


def test_a_dead_one_tells_an_event_and_asks_for_a_replacement() -> None:
    world = dead()
    done = r.remove(world, "cp1")
    assert [(event.type, event.reason, event.ref.name) for event in world.store.written] == [("Warning", "DeadMemberRemoved", "prod")]
    assert world.removed == ["0000000000000001"] and "Approve a replacement" in done.message and world.resets == []


def test_two_dead_of_five_go_one_after_the_other() -> None:
    world = r.planes(5, 1, 2, wanted=5)
    for name in ("cp1", "cp2"):
        assert not r.remove(world, name).refused
        ended(world, name)
    assert world.removed == ["0000000000000001", "0000000000000002"] and r.remove(world, "cp3").reason == "ControlPlaneNeeded"


def test_three_dead_of_five_stay() -> None:
    world = r.planes(5, 1, 2, 3, wanted=5)
    assert r.remove(world, "cp1").refused and world.removed == []


def test_a_dead_one_that_answers_again_under_the_lock_stays() -> None:
    world = dead()

    def wake(number: int, what: str) -> None:
        if what == "lease prod":
            other = r.node(world, 2)
            node = r.node(world, 1)
            node.mode, node.stage, node.etcd, node.members, node.leader = "running", "running", "Running", other.members, other.leader

    world.hook = wake
    done = r.remove(world, "cp1")
    assert done.refused and world.removed == [] and r.record_of(world, "cp1") is not None
    assert condition_of(world.machine("cp1"), "Removal") is None, "a removal that has done nothing is none"


def test_an_etcd_that_only_starts_is_looked_at_twice() -> None:
    """The machine answers, and its etcd does not yet."""
    world = r.planes(3)
    node = r.node(world, 1)
    node.etcd = "Preparing"

    def start(number: int, what: str) -> None:
        if world.clock.now() > w.START + 10:
            node.etcd = "Running"

    world.hook = start
    done = r.remove(world, "cp1")
    assert done.refused and "it is healthy" in done.message and world.removed == []
    world = r.planes(3)
    r.node(world, 1).etcd = "Failed"
    assert not r.remove(world, "cp1").refused and world.removed == ["0000000000000001"] and world.resets == []


def test_a_dead_machine_s_open_disruption_goes_with_it() -> None:
    world = dead()
    cluster = world.cluster()
    world.store.put(replace(cluster, status={**cluster.status, "disruption": {"machine": "cp1", "step": "reboot", "time": "2023-11-14T00:00:00Z"}}))
    assert not r.remove(world, "cp1").refused
    ended(world, "cp1")


def test_etcd_that_has_not_settled_is_asked_again() -> None:
    world = dead()
    r.node(world, 2).keep_member += [w.error("NodeRefused", detail="failed to remove member: etcdserver: unhealthy cluster")] * 2
    assert not r.remove(world, "cp1").refused and world.removed == ["0000000000000001"]


def test_a_removal_that_etcd_refuses_for_good_stays_marked() -> None:
    world = dead()
    r.node(world, 2).keep_member.append(w.error("NodeRefused", detail="re-configuration failed due to not enough started members"))
    done = r.remove(world, "cp1")
    assert done.refused and done.reason == "NodeRefused" and r.record_of(world, "cp1") is not None


def test_a_lost_answer_is_looked_after() -> None:
    world = dead()
    r.node(world, 2).lose_removal.append(w.error("ConnectionLost"))
    assert not r.remove(world, "cp1").refused and world.removed == ["0000000000000001"]


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "not heard"])
def test_a_leaving_whose_answer_is_lost_holds_the_turn_until_the_members_were_looked_at(heard: bool) -> None:
    world = healthy()

    def lose(number: int, what: str) -> None:
        if what == ("etcd_leave answered cp1" if heard else "etcd_leave cp1"):
            raise w.error("ConnectionLost")

    world.hook = lose
    done = r.remove(world, "cp1")
    assert done.refused and done.reason == "ConnectionLost" and "not known whether cp1 has left etcd" in done.message
    held = disruption_of(world.cluster())
    assert held is not None and held.machine == "cp1" and world.resets == [] and world.left == (["cp1"] if heard else [])
    found = condition_of(world.machine("cp1"), "Removal")
    assert found is not None and found.reason == "RemovalBlocked"
    world.hook = lambda number, what: None
    assert not r.remove(world, "cp1").refused and world.left == ["cp1"] and world.resets == ["cp1"]
    ended(world, "cp1")


def test_a_reset_that_fails_after_its_ok_is_told_and_the_record_stays() -> None:
    world = with_worker()
    r.node(world, 9).reset_fails = True
    done = r.remove(world, "w9")
    assert done.refused and done.reason == "ResetFailed" and "restarted and kept its data" in done.message
    found = condition_of(world.machine("w9"), "Removal")
    assert found is not None and (found.status, found.reason) == ("True", "RemovalBlocked")
    r.node(world, 9).reset_fails = False
    assert not r.remove(world, "w9").refused
    ended(world, "w9")


def test_a_removal_is_called_off_by_a_person() -> None:
    world = with_worker()
    r.node(world, 9).reset_fails = True
    r.remove(world, "w9")
    done = r.remove(world, "w9", lift=True)
    assert [step.action for step in done.plan.steps] == ["LiftRemoval"] and condition_of(world.machine("w9"), "Removal") is None
    assert r.remove(world, "w9", lift=True).plan.steps == ()


def test_a_reset_alone_keeps_the_record() -> None:
    world = healthy()
    done = r.remove(world, "cp1", record=False)
    assert not done.refused and world.left == ["cp1"] and world.resets == ["cp1"] and r.record_of(world, "cp1") is not None
    assert condition_of(world.machine("cp1"), "Removal") is None and disruption_of(world.cluster()) is None
    assert r.remove(world, "cp1", record=False).plan.steps == ()


def test_without_a_store_there_is_no_lock() -> None:
    world = with_worker()
    done = r.remove(world, "w9", store=False)
    assert done.refused and done.reason == "NoLock" and world.resets == []
    member = asyncio.run(etcd_member.run(etcd_member.Request("prod", "1"), world.ports(store=False), w.OpenGate()))
    assert member.refused and member.reason == "NoLock"


def test_a_member_by_its_id() -> None:
    world = dead()
    request = etcd_member.Request("prod", "1")
    done = asyncio.run(etcd_member.run(request, world.ports(), w.OpenGate()))
    assert not done.refused and world.removed == ["0000000000000001"] and r.record_of(world, "cp1") is not None
    again = asyncio.run(etcd_member.run(request, world.ports(), w.OpenGate()))
    assert again.plan.steps == () and not again.refused
    alive = asyncio.run(etcd_member.run(etcd_member.Request("prod", "2"), world.ports(), w.OpenGate()))
    assert alive.refused and world.removed == ["0000000000000001"]
    with pytest.raises(TalosError, match="no id of an etcd member"):
        asyncio.run(etcd_member.run(etcd_member.Request("prod", "cp1"), world.ports(), w.OpenGate()))


def test_a_route_of_ours_that_is_lost_is_no_death() -> None:
    world = r.planes(3)
    node = r.node(world, 1)
    unreached = world.nodes[next(endpoint for endpoint, one in world.nodes.items() if one is node)]

    def lose(number: int, what: str) -> None:
        if what in ("authenticated 10.0.0.1:50000", "maintenance 10.0.0.1:50000"):
            raise w.error("ConnectionRefused")

    world.hook = lose
    done = r.remove(world, "cp1")
    assert done.refused and done.reason == "MemberAnswers" and world.removed == [] and unreached.mode == "running"
    world.apart.add("cp1")
    assert not r.remove(world, "cp1").refused and world.removed == ["0000000000000001"]


def test_members_as_each_control_plane_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    world = r.planes(3, 3)
    r.node(world, 2).members = (*r.node(world, 2).members, fallen.member(7, "old"))
    shown = asyncio.run(etcd_member_info.run(etcd_member_info.Request("prod"), world.ports(), w.OpenGate()))
    assert shown.unreachable == ("cp3",) and shown.extra["agree"] is False and len(shown.extra["disagree"]) == 1  # type: ignore[arg-type]
    told = "\n".join(world.lines)
    assert "on cp1: answers and leads" in told and "on cp2: answers" in told and "cp3: its etcd does not answer (" in told
    assert "lists other members than most" in told

    async def leaderless(session: w.Session, local: bool) -> None:
        raise w.error("NodeRefused", session.endpoint)

    monkeypatch.setattr(w.Session, "etcd_members", leaderless)
    without = r.planes(3, 2, 3)
    shown = asyncio.run(etcd_member_info.run(etcd_member_info.Request("prod"), without.ports(), w.OpenGate()))
    assert "cp1: its etcd answers and sees no leader; it does not list the members" in "\n".join(without.lines)
    assert shown.message == "The members are not known; 1 of 3 control planes answer." and shown.unreachable == ("cp2", "cp3")
    with pytest.raises(TalosError, match="which control planes"):
        asyncio.run(etcd_member_info.run(etcd_member_info.Request(), world.ports(store=False), w.OpenGate()))
