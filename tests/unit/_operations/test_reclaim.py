# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reclaims through a store and nodes in memory: what is sent, to whom, under which leases, and a run that is killed at each boundary."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import disruption_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import LeaseView
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Broken, text_at
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.reclaim import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.reclaim_reads import Entry, Terms
from ansible_collections.ichor.talos.tests.unit._operations import reclaim_world as r
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def living() -> r.World:
    return r.foreign(r.empty())


def silent() -> r.World:
    """A control plane alone, whose etcd is stopped."""
    world = r.foreign(r.empty(), planes=1, workers=0)
    node = r.node(world, 1)
    node.etcd, node.leader = "Finished", ""
    return world


def ours() -> r.World:
    """A machine of prod itself that nobody has recorded."""
    world = living()
    world.store.put(w.cluster_record(secretsRef={"name": "prod"}, discovery={"ranges": ["10.0.0.0/24"]}))
    world.bundles["prod"] = r.bundle("prod")
    r.node(world, 4).config = r.config("prod", "worker")
    return world


LIVES: dict[str, tuple[Callable[[], r.World], Entry, bool]] = {
    "a worker": (living, r.entry(4), True), "a control plane": (living, r.entry(1), True), "a silent one by force": (silent, r.entry(1, force=True), False),
    "a machine of our own": (ours, r.entry(4), True)}


def ended(world: r.World, entry: Entry) -> None:
    """It waits as pending with the certificate that it shows, and whatever stays is whole."""
    number = int(entry.wish.address.rpartition(".")[2])
    node = r.node(world, number)
    names = r.pending(world)
    assert len(names) == 1 and node.mode == "maintenance"
    record = world.machine(names[0])
    assert text_at(record.status, "maintenanceFingerprint") == node.certificate.fingerprint and text_at(record.spec, "identity", "uuid") == w.uuid(number)
    assert not world.store.leases.held and disruption_of(world.cluster()) is None and world.accepted == []
    alive = [one for one in world.nodes.values() if one.etcd == "Running" and one.mode == "running"]
    for one in alive:
        voters = len(one.members)
        assert len(alive) > voters // 2 and all(member.id != node.member_id for member in one.members if node.member_id)


@pytest.mark.parametrize("life", LIVES)
def test_check_is_run_and_a_second_run_is_none(life: str) -> None:
    make, entry, graceful = LIVES[life]
    world = make()
    gate, before = w.OpenGate(True), dict(world.store.records)
    planned = r.reclaim(world, entry, check=True, gate=gate)
    assert not planned.refused and planned.executed == () and world.store.records == before and not world.store.written and planned.waiting_for
    done = r.reclaim(world, entry)
    assert done.executed == tuple(step.id for step in gate.plans[0].steps) and done.plan.id == gate.plans[0].id and not done.refused, done.message
    ended(world, entry)
    assert world.graceful == [(r.node(world, int(entry.wish.address.rpartition(".")[2])).name, graceful)]
    assert done.extra["registered"] and "talos_machine_approval" in done.message
    discovery = world.cluster().spec["discovery"]
    again = r.reclaim(world, entry)
    assert again.plan.steps == () and not again.refused and len(world.resets) == 1 and world.cluster().spec["discovery"] == discovery


@pytest.mark.parametrize("life", LIVES)
def test_killed_at_every_boundary_and_run_again(life: str) -> None:
    make, entry, dummy = LIVES[life]
    whole = make()
    r.reclaim(whole, entry)
    count = len(whole.trace)
    assert count > 20
    for at in range(1, count + 1):
        world = make()

        def kill(number: int, what: str, at: int = at) -> None:
            if number == at:
                raise w.Killed(what)

        world.hook = kill
        with contextlib.suppress(w.Killed):
            # Calls that go side by side come in any order, so that the last boundary may be one less.
            r.reclaim(world, entry)
        world.hook = lambda number, what: None
        world.dead.add("run-1")
        world.store.leases.held.clear()
        for attempt in range(2):
            again = r.reclaim(world, entry, holder=f"run-{attempt + 2}")
            assert not again.refused, (at, whole.trace[at - 1], again.message)
        ended(world, entry)
        assert len(world.resets) == 1, (at, whole.trace[at - 1])


@pytest.mark.parametrize("life", LIVES)
def test_a_store_that_becomes_read_only_hides_nothing_that_was_done(life: str) -> None:
    make, entry, dummy = LIVES[life]
    whole = make()
    r.reclaim(whole, entry)
    for write, world, done in w.read_only_from_each_write(
            whole, make, lambda world, holder: r.reclaim(world, entry, holder=holder), lambda world: ended(world, entry)):
        actions = [step.action for step in done.plan.steps if step.id in done.executed]
        assert ("ReclaimMachine" in actions) == bool(world.resets) and ("RegisterMachine" in actions) == bool(r.pending(world)), write


HANGING = {"identity": "16/identity-unread", "machine_config": "16/config-unread", "partitions": "16/volumes-unread", "etcd_status": "16/etcd-problem",
           "etcd_members": "16/etcd-problem", "stage": "", "hostname": "", "version": "", "boot_id": "", "disks": "", "services": ""}


@pytest.mark.parametrize("call", HANGING)
def test_each_call_that_hangs_costs_its_deadline_alone(call: str) -> None:
    world = living()
    world.hanging.add((call, "cp1"))
    done = r.reclaim(world, r.entry(1), check=True)
    assert world.clock.monotonic() <= 20.0 + 20.0
    rules = [refusal.rule for refusal in done.plan.refusals]
    assert rules == ([HANGING[call]] if HANGING[call] else []), done.message
    assert any("did not answer within 20 s" in line for line in world.lines)
    shown = done.extra["inspections"][0]  # type: ignore[index]
    assert any("did not answer within 20 s" in text for text in shown["unchecked"])  # type: ignore[index, union-attr, call-overload]
    assert not world.resets


def test_another_member_that_hangs_counts_as_silent() -> None:
    world = living()
    world.hanging.add(("etcd_status", "cp2"))
    world.apart.add("cp2")
    done = r.reclaim(world, r.entry(1), check=True)
    assert done.reason == "QuorumAtRisk" and world.clock.monotonic() <= 40.0


def test_a_reset_that_is_answered_ok_and_fails_is_told() -> None:
    world = living()
    r.node(world, 4).reset_fails = True
    done = r.reclaim(world, r.entry(4))
    assert done.refused and done.reason == "ResetFailed" and "restarted and kept its data" in done.message and r.pending(world) == ()
    r.node(world, 4).reset_fails = False
    assert not r.reclaim(world, r.entry(4)).refused
    ended(world, r.entry(4))


def test_a_reset_whose_answer_is_lost_is_looked_after() -> None:
    world = living()

    def lose(number: int, what: str) -> None:
        if what == "reset answered w4":
            raise w.error("ConnectionLost")

    world.hook = lose
    done = r.reclaim(world, r.entry(4))
    assert not done.refused and len(world.resets) == 1
    ended(world, r.entry(4))


def test_a_node_that_never_comes_back_is_told_after_its_time() -> None:
    world = living()

    def vanish(number: int, what: str) -> None:
        if what == "reset answered w4":
            r.node(world, 4).mode = "closed"

    world.hook = vanish
    done = r.reclaim(world, r.entry(4))
    assert done.reason == "ResetFailed" and "1200 s" in done.message and world.clock.monotonic() >= 1200 and not world.store.leases.held
    assert sum("waiting for maintenance mode" in line for line in world.lines) >= 3


@pytest.mark.parametrize("moment", ["lease id-of-old", "lease prod"])
def test_one_that_was_going_down_is_waited_for_when_it_is_down(moment: str) -> None:
    """Another run has reset it: it is seen on its way down before the leases are had, and nobody answers under them."""
    world = living()
    node = r.node(world, 4)
    node.stage = "resetting"

    def restart(number: int, what: str) -> None:
        if what == moment:
            node.mode = "closed"
        if node.mode == "closed" and world.clock.monotonic() > 60:
            node.mode = "maintenance"

    world.hook = restart
    done = r.reclaim(world, r.entry(4))
    assert not done.refused and [step.action for step in done.plan.steps] == ["RegisterMachine"] and world.resets == [], done.message
    ended(world, r.entry(4))
    world = living()
    r.node(world, 4).mode = "closed"
    assert r.reclaim(world, r.entry(4)).reason == "NodeUnreachable"


def test_a_machine_with_another_address_is_followed() -> None:
    for ranges in ((), ("10.0.0.70-80",)):
        world = living()
        world.moves["w4"] = "10.0.0.77"
        done = r.reclaim(world, r.entry(4), terms=Terms(ranges, Timing(settle=0.0)))
        assert not done.refused, done.message
        record = world.machine(r.pending(world)[0])
        assert record.spec["endpoint"] == "10.0.0.77"
    world = living()
    world.moves["w4"] = "10.0.0.77"
    assert r.reclaim(world, r.entry(4), terms=Terms(("10.0.0.90-95",), Timing(settle=0.0))).reason == "ResetFailed"


def _swapped(number: int, what: str, world: r.World) -> None:
    """Another machine comes up where the one that was reset was."""
    if what == "reset answered w4":
        next(node for node in world.nodes.values() if node.name == "w4").identity = w.identity(9)


def test_another_machine_that_comes_back_instead_is_told_and_left_alone() -> None:
    for moves in ({}, {"w4": "10.0.0.77"}):
        world = living()
        world.moves.update(moves)
        world.hook = lambda number, what, world=world: _swapped(number, what, world)  # type: ignore[misc]
        done = r.reclaim(world, r.entry(4))
        assert done.reason == "ResetFailed" and r.pending(world) == () and world.resets == ["w4"] and not world.store.leases.held
        assert moves or f"another machine waits there now: UUID {w.uuid(9)} instead of {w.uuid(4)}" in done.message, done.message


def test_the_machine_is_followed_although_another_has_its_address_now() -> None:
    world = living()
    world.moves["w4"] = "10.0.0.77"

    def move_in(number: int, what: str) -> None:
        if what == "reset answered w4":
            new = w.place(world, "new", 9, "worker", record=False)
            world.nodes[w.Endpoint("10.0.0.4")] = new
            new.mode = "maintenance"

    world.hook = move_in
    done = r.reclaim(world, r.entry(4))
    assert not done.refused, done.message
    record = world.machine(r.pending(world)[0])
    assert record.spec["endpoint"] == "10.0.0.77" and text_at(record.spec, "identity", "uuid") == w.uuid(4) and len(r.pending(world)) == 1


@pytest.mark.parametrize("ranges", [("10.0.0.9-10.0.0.1",), ("10.0.0.0/33",), ("10.0.0.0/8",), ("{{ ranges }}",)])
def test_ranges_that_are_none_are_told_before_anything_is_sent(ranges: tuple[str, ...]) -> None:
    world = living()
    with pytest.raises(TalosError) as told:
        r.reclaim(world, r.entry(4), terms=Terms(ranges, Timing(settle=0.0)))
    assert told.value.reason in ("InvalidAddress", "RangeTooLarge") and not world.resets and world.trace == []


def test_a_cluster_whose_own_ranges_are_broken_has_nowhere_else_to_look() -> None:
    world = living()
    world.store.put(w.cluster_record(discovery={"ranges": ["10.0.0.0/2"]}))
    world.moves["w4"] = "10.0.0.77"
    done = r.reclaim(world, r.entry(4))
    assert done.reason == "ResetFailed" and any("looked for nowhere else" in line for line in world.lines), done.message


def test_a_neighbour_at_a_peers_address_does_not_answer_for_the_member() -> None:
    world = living()
    r.node(world, 2).member_id = f"{9:016x}"
    done = r.reclaim(world, r.entry(1), check=True)
    assert done.reason == "QuorumAtRisk", done.message


def test_two_runs_at_once_reset_it_once_and_both_say_what_it_is() -> None:
    world = living()
    request = Request((r.entry(4),), "", Terms(timing=Timing(settle=0.0)))

    async def both() -> list[Outcome]:
        return list(await asyncio.gather(*(run(request, world.ports(holder), w.OpenGate(False)) for holder in ("run-1", "run-2"))))

    first, second = asyncio.run(both())
    assert world.resets == ["w4"] and not first.refused and not second.refused and not world.store.leases.held
    assert first.extra["registered"] == second.extra["registered"] != [] and {first.found_done, second.found_done} == {False, True}


def test_both_leases_are_taken_in_the_order_of_their_names() -> None:
    world = living()
    r.reclaim(world, r.entry(4))
    taken = [what for what in world.trace if what.startswith("lease ")]
    assert taken == ["lease id-of-old", "lease prod"] and world.trace.index("reset w4") > world.trace.index("lease prod")
    assert world.trace.index("release prod") > world.trace.index(f"created {r.pending(world)[0]}")
    world = ours()
    r.reclaim(world, r.entry(4))
    assert [what for what in world.trace if what.startswith("lease ")] == ["lease prod"]


@pytest.mark.parametrize("name", ["prod", "id-of-old"])
def test_a_lease_that_another_run_holds_is_waited_for(name: str) -> None:
    world = living()
    now = world.clock.now()
    world.store.leases.held[name] = LeaseView(name, "somebody", "a rolling reboot", now, now, 60.0, "1")

    def give(number: int, what: str) -> None:
        if world.clock.now() > now + 30:
            world.store.leases.held.pop(name, None) if world.store.leases.held.get(name, LeaseView("", "", "", 0, 0, 0, "")).holder == "somebody" else None

    world.hook = give
    assert not r.reclaim(world, r.entry(4)).refused and world.clock.now() > now + 30
    world = living()
    world.store.leases.held[name] = LeaseView(name, "somebody", "a rolling reboot", now, now, 60.0, "1")
    done = r.reclaim(world, r.entry(4))
    assert done.reason == "LockHeld" and not world.resets


def test_a_machine_of_our_own_cluster_waits_for_the_end_of_its_disruption() -> None:
    world = ours()
    cluster = world.cluster()
    world.store.patch_status(cluster.ref, cluster.uid, lambda status: {**status, "disruption": {"machine": "cp-2", "step": "reboot", "time": "x"}})

    def end(number: int, what: str) -> None:
        if world.clock.monotonic() > 60 and disruption_of(world.cluster()) is not None:
            world.store.put(w.cluster_record(secretsRef={"name": "prod"}, discovery={"ranges": ["10.0.0.0/24"]}))

    world.hook = end
    done = r.reclaim(world, r.entry(4))
    assert not done.refused and world.clock.monotonic() > 60, done.message
    ended(world, r.entry(4))


def test_what_changes_before_the_leases_are_had_is_not_wiped() -> None:
    world = living()

    def change(number: int, what: str) -> None:
        if what == "lease prod":
            r.node(world, 2).mode = "closed"
            world.apart.add("cp2")

    world.hook = change
    done = r.reclaim(world, r.entry(1))
    assert done.refused and done.reason == "QuorumAtRisk" and not world.resets
    world = living()

    def grow(number: int, what: str) -> None:
        if what == "lease prod":
            r.node(world, 4).partitions = r.volumes("CRI")

    world.hook = grow
    done = r.reclaim(world, r.entry(4))
    assert done.refused and done.reason == "RecordChanged" and not world.resets


def test_ten_machines_of_three_clusters_go_one_at_a_time() -> None:
    world = r.empty()
    for cluster, start in (("lab", 1), ("old", 11), ("stage", 21)):
        r.foreign(world, cluster, planes=3, workers=2, start=start)
    numbers = (1, 2, 4, 5, 11, 12, 14, 21, 24, 25)
    entries = [r.entry(number) for number in numbers]
    gate = w.OpenGate(True)
    planned = r.reclaim(world, *entries, check=True, gate=gate)
    assert not planned.refused and len(planned.plan.steps) == 20
    waits = {step.target.address: [wait.what for wait in step.waits_for] for step in planned.plan.steps if step.action == "ReclaimMachine"}
    assert waits["10.0.0.4:50000"] == [] and waits["10.0.0.5:50000"] == ["10.0.0.4:50000 in maintenance mode: of one cluster one machine at a time"]
    most: list[int] = []

    def look(number: int, what: str) -> None:
        if what.startswith("reset "):
            foreign = [name for name in world.store.leases.held if name.startswith("id-of-")]
            most.append(len(foreign))

    world.hook = look
    done = r.reclaim(world, *entries)
    assert not done.refused, done.message
    assert done.executed == tuple(step.id for step in gate.plans[0].steps) and len(world.resets) == 10 and len(r.pending(world)) == 10 and set(most) == {1}
    assert world.resets == ["w4", "w5", "cp2", "cp1", "w14", "cp12", "cp11", "w24", "w25", "cp21"]
    for number in (3, 13, 23):
        node = r.node(world, number)
        assert len(node.members) >= 1 and all(one.mode == "running" for one in world.nodes.values() if one.member_id in {m.id for m in node.members})


def test_what_is_refused_is_left_out_and_the_others_go_on() -> None:
    world = living()
    done = r.reclaim(world, r.entry(4), r.entry(1, w.uuid(9)), r.entry(7))
    assert done.refused and world.resets == ["w4"] and done.blocked == ("10.0.0.1:50000",) and done.unreachable == ("10.0.0.7:50000",)


def test_of_several_each_is_told_in_a_check_run() -> None:
    """A message that names a machine says something of it."""
    done = r.reclaim(living(), r.entry(4), r.entry(1, w.uuid(9)), check=True)
    assert "10.0.0.4:50000: It is ready to be done. 10.0.0.1:50000: The machine that answers has UUID" in done.message


def test_after_one_that_does_not_come_back_the_next_of_its_cluster_is_left_alone() -> None:
    world = r.foreign(r.empty(), workers=2)
    r.node(world, 4).reset_fails = True
    done = r.reclaim(world, r.entry(4), r.entry(5))
    assert [refusal.rule for refusal in done.plan.refusals] == ["16/restarted-unwiped", "16/one-before"] and world.resets == ["w4"]


def test_one_machine_at_two_addresses_is_wiped_by_neither() -> None:
    world = living()
    twin = r.node(world, 4)
    world.nodes[w.Endpoint("10.0.0.5")] = twin
    done = r.reclaim(world, r.entry(4), r.entry(5, w.uuid(4)))
    assert {refusal.rule for refusal in done.plan.refusals} == {"16/twin"} and not world.resets
    with pytest.raises(TalosError, match="named twice"):
        r.reclaim(world, r.entry(4), r.entry(4))
    with pytest.raises(TalosError, match="not said which machine"):
        r.reclaim(world)


def test_another_machine_that_answers_when_the_reset_goes_out_gets_none() -> None:
    world = living()

    def swap(number: int, what: str) -> None:
        if what == "renew prod":
            return
        if what == "authenticated 10.0.0.4:50000" and world.trace.count(what) == 3:
            r.node(world, 4).identity = w.identity(9)

    world.hook = swap
    done = r.reclaim(world, r.entry(4))
    assert done.refused and done.reason == "EndpointIdentityMismatch" and not world.resets


def test_a_lease_that_is_lost_before_the_reset_sends_nothing() -> None:
    world = living()

    def lose(number: int, what: str) -> None:
        if what == "renew id-of-old":
            world.store.leases.held.pop("id-of-old", None)

    world.hook = lose
    done = r.reclaim(world, r.entry(4))
    assert done.refused and done.reason == "LockHeld" and not world.resets


def test_without_a_store_there_is_no_lock_and_broken_records_refuse() -> None:
    assert r.reclaim(living(), r.entry(4), store=False).reason == "NoLock"
    world = living()
    world.broken = (Broken(MACHINE, "m", "machines/m.yaml", 1, "it is broken"),)
    assert r.reclaim(world, r.entry(4)).reason == "RecordBroken"
