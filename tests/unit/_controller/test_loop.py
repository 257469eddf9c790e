# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of the controller over a world in memory, with a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import BACKUP, MACHINE, RECLAIM, Broken
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._controller.fleet import Fleet
from tests.unit._controller.test_granted import SavedGate


def actions(outcome: Outcome) -> list[tuple[str, str]]:
    return [(step.action, step.target.name) for step in outcome.plan.steps]


def reasons(outcome: Outcome) -> dict[str, str]:
    return {row.name: row.reason for row in outcome.machines}


def new(count: int = 2, **cluster: object) -> Fleet:
    """A cluster of one control plane and workers, none of which was sent anything."""
    fleet = Fleet(**cluster)  # type: ignore[arg-type]
    fleet.waits("cp-1", 1, "controlplane")
    for number in range(2, count + 1):
        fleet.waits(f"w-{number}", number)
    return fleet


def test_check_mode_is_one_look_at_all_and_the_whole_plan() -> None:
    fleet = new()
    planned = fleet.reconcile(check=True)
    assert actions(planned) == [("ApplyConfig", "cp-1"), ("ApplyConfig", "w-2")] and not planned.executed
    assert not fleet.store.writes and not fleet.received and not fleet.store.written and fleet.clock.time == w.START
    assert {record.name for record in planned.would_be} == {"cp-1", "w-2"} and planned.extra["ended"] == "planned"
    real = fleet.reconcile(passes=1)
    assert real.plan.id == planned.plan.id and sorted(real.executed) == sorted(step.id for step in planned.plan.steps)


def test_one_pass_looks_once_and_does_what_may_go_now() -> None:
    fleet = new()
    outcome = fleet.reconcile(passes=1)
    assert sorted(fleet.accepted) == ["cp-1", "w-2"] and reasons(outcome) == {"cp-1": "ConfigStored", "w-2": "ConfigStored"}
    assert outcome.extra["ended"] == "passes" and fleet.clock.time == w.START and all(row.changed for row in outcome.machines)


def test_machines_are_followed_until_they_are_settled() -> None:
    fleet = new()

    def life(count: int, what: str) -> None:
        passed = fleet.clock.time - w.START
        for name, node in ((node.name, node) for node in fleet.nodes.values()):
            if name in fleet.accepted and passed > 40:
                node.mode, node.stage = "running", "booting" if name == "cp-1" else "running"

    fleet.hook = life
    outcome = fleet.reconcile(until_settled=True)
    assert outcome.extra["ended"] == "settled" and 40 < fleet.clock.time - w.START <= 60
    assert {row.name: row.stage for row in outcome.machines} == {"cp-1": "booting", "w-2": "running"}
    assert any("waits for the bootstrap of etcd" in line for line in fleet.lines)
    again = fleet.reconcile(until_settled=True)
    assert not again.plan.changed and again.extra["ended"] == "settled" and fleet.accepted.count("cp-1") == 1


def test_it_ends_when_its_time_is_over_and_says_something_every_minute() -> None:
    fleet = new()
    outcome = fleet.reconcile(until_settled=True, max_runtime=300.0)
    assert outcome.extra["ended"] == "time" and 300 <= fleet.clock.time - w.START < 301
    assert len([line for line in fleet.lines if line.startswith("waiting for cp-1 (NodeRebooting), w-2")]) >= 4
    assert sum(1 for what in fleet.trace if what.startswith("authenticated")) <= 2 * 2 * (300 / 15 + 2)


def test_pending_and_rejected_machines_are_not_dialled() -> None:
    fleet = Fleet()
    fleet.waits("new", 1, approvalState="pending", approvedBy=None)
    fleet.waits("bad", 2, approvalState="rejected")
    outcome = fleet.reconcile(until_settled=True)
    assert reasons(outcome) == {"new": "PendingApproval", "bad": "Rejected"} and outcome.extra["ended"] == "settled"
    assert not [what for what in fleet.trace if "10.0.0" in what] and not fleet.store.writes and not outcome.blocked


def test_a_machine_in_trouble_stops_no_other() -> None:
    fleet = new(4)
    fleet.nodes[Endpoint("10.0.0.2")].certificate = w.certificate("another")
    del fleet.nodes[Endpoint("10.0.0.3")]

    def broken(count: int, what: str) -> None:
        if what == "maintenance 10.0.0.4:50000":
            raise ZeroDivisionError("a fault of ours")

    fleet.hook = broken
    outcome = fleet.reconcile(passes=1)
    assert fleet.accepted == ["cp-1"] and outcome.blocked == ("w-2", "w-4") and outcome.unreachable == ("w-3",)
    assert reasons(outcome) == {"cp-1": "ConfigStored", "w-2": "MaintenanceIdentityChanged", "w-3": "CurrentConfigUnavailable", "w-4": "InternalError"}


def test_a_broken_file_is_listed_and_a_wrong_name_is_one_sentence() -> None:
    fleet = new()
    fleet.store.broken = (Broken(MACHINE, "torn", "machines/torn.yaml", 3, "it is cut off"),)
    outcome = fleet.reconcile(passes=1)
    assert len(fleet.accepted) == 2 and outcome.blocked == ("torn",) and outcome.extra["broken"][0]["line"] == 3
    assert any("machines/torn.yaml, line 3" in warning.message for warning in outcome.plan.warnings)
    for scope in ({"machines": ("nobody",)}, {"clusters": ("nowhere",)}):
        with pytest.raises(TalosError, match="RecordNotFound"):
            asyncio.run(run(Request(**scope), fleet.ports(), w.OpenGate()))  # type: ignore[arg-type]


def test_a_broken_file_of_another_machine_is_told_and_blocks_nobody_in_a_narrower_scope() -> None:
    fleet = new()
    fleet.store.broken = (Broken(MACHINE, "torn", "machines/torn.yaml", 3, "it is cut off"),)
    outcome = fleet.reconcile("w-2", passes=1)
    assert outcome.blocked == () and outcome.extra["broken"][0]["name"] == "torn"


@pytest.mark.parametrize("kind", [BACKUP, RECLAIM])
def test_a_broken_backup_or_order_is_told_where_they_are_looked_after(kind: str) -> None:
    fleet = new()
    fleet.store.broken = (Broken(kind, "torn", "torn.yaml", 3, "it is cut off"),)
    outcome = fleet.reconcile(passes=1)
    assert outcome.blocked == () and [(one["kind"], one["name"]) for one in outcome.extra["broken"]] == [(kind, "torn")]
    assert any(warning.target.kind == kind and "torn.yaml, line 3" in warning.message for warning in outcome.plan.warnings)
    assert new().reconcile(passes=1).extra["broken"] == [] and fleet.reconcile("w-2", passes=1).extra["broken"] == []


def test_a_run_without_time_for_a_look_is_not_settled_and_says_whom_it_did_not_see() -> None:
    outcome = new().reconcile(max_runtime=0.0, until_settled=True)
    assert outcome.extra["settled"] is False and not outcome.executed and "2 not looked at" in outcome.message
    assert outcome.waiting_for == ("cp-1: its first look", "w-2: its first look")


@pytest.mark.parametrize(("machine", "name", "says"), [
    ("cp-1", "Prod", "the cluster of machine cp-1 is prod"), ("cp-1", "nope", "the cluster of machine cp-1 is prod"),
    ("w-2", "prod", "machine w-2 is no control plane")])
def test_an_etcd_is_given_up_by_the_name_of_its_own_cluster(machine: str, name: str, says: str) -> None:
    with pytest.raises(TalosError, match="InvalidInput") as caught:
        new().reconcile(machine, discard_etcd=name, passes=1)
    assert says in caught.value.message


def test_an_empty_name_among_the_clusters_is_told_as_that() -> None:
    with pytest.raises(TalosError, match="InvalidInput") as caught:
        new().reconcile(clusters=("prod", ""), passes=1)
    assert caught.value.message == "A name in clusters is empty."


def test_a_narrower_scope_acts_on_less_and_reads_all() -> None:
    fleet = Fleet(count=1)
    for number in (1, 2, 3):
        fleet.waits(f"cp-{number}", number, "controlplane")
    fleet.waits("w-4", 4)
    outcome = fleet.reconcile("cp-1", passes=1)
    assert reasons(outcome) == {"cp-1": "ControlPlaneCapExceeded"} and not fleet.received
    assert fleet.reconcile(select="[?spec.role=='worker'].metadata.name", passes=1).executed and fleet.accepted == ["w-4"]
    assert [row.name for row in fleet.reconcile(clusters=("prod",), passes=1).machines] == ["cp-1", "cp-2", "cp-3", "w-4"]


def test_control_planes_join_a_running_cluster_one_after_the_other() -> None:
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    for number in (2, 3):
        fleet.waits(f"cp-{number}", number, "controlplane")
    planned = fleet.reconcile(check=True)
    joins = {step.target.name: [wait.what for wait in step.waits_for] for step in planned.plan.steps if step.action == "ApplyConfig"}
    assert joins == {"cp-2": [], "cp-3": ["cp-2 is Ready"]}

    def life(count: int, what: str) -> None:
        for node in fleet.nodes.values():
            if node.name in fleet.accepted and node.mode == "closed":
                node.mode, node.stage, node.ready, node.etcd, node.leader = "running", "running", True, "Running", "x"

    fleet.hook = life
    outcome = fleet.reconcile(until_settled=True, max_runtime=900.0)
    assert fleet.accepted[:2] == ["cp-2", "cp-3"] and outcome.plan.id == planned.plan.id
    sent = [number for number, what in enumerate(fleet.trace) if what.startswith("apply answered")]
    between = fleet.trace[sent[0]:sent[1]]
    assert "event NodeJoined" in between, "the second is sent to only when the first has joined"
    assert "disruption" not in fleet.cluster().status


def test_a_saved_plan_bounds_the_run_and_what_arises_later_is_listed() -> None:
    fleet = new()
    gate = SavedGate()
    planned = fleet.reconcile(check=True)
    gate._saved = {step.id for step in planned.plan.steps}

    def late(count: int, what: str) -> None:
        if what == "apply answered w-2":
            fleet.waits("w-9", 9)

    fleet.hook = late
    outcome = fleet.reconcile(until_settled=True, max_runtime=120.0, gate=gate, bounded=True)
    assert sorted(fleet.accepted) == ["cp-1", "w-2"] and [plan["plan"][0]["target"] for plan in outcome.extra["later_plans"]] == ["w-9"]
    assert any("w-9: ApplyConfig is not in the saved plan" in line for line in outcome.waiting_for)
    free = fleet.reconcile(passes=1)
    assert fleet.accepted[-1] == "w-9" and free.executed


def test_a_new_record_joins_the_run_and_one_that_is_gone_leaves_it() -> None:
    fleet = new()

    def later(count: int, what: str) -> None:
        if fleet.clock.time - w.START > 60 and fleet.store.get(MACHINE, "w-2") is not None:
            fleet.store.records.pop(fleet.machine("w-2").ref)
            fleet.waits("w-7", 7)

    fleet.hook = later
    outcome = fleet.reconcile(max_runtime=240.0)
    assert [row.name for row in outcome.machines] == ["cp-1", "w-7"] and fleet.accepted[-1] == "w-7"


def test_each_kind_is_listed_once_a_pass() -> None:
    fleet = new(60)
    fleet.reconcile(passes=1)
    assert len(fleet.accepted) == 60 and fleet.store.listed[MACHINE] <= 3


def test_a_hanging_node_costs_the_others_nothing() -> None:
    fleet = new(6)

    class Nodes(w.Nodes):
        """One connection says nothing until the deadline of the call is over."""

        @asynccontextmanager
        async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[w.Session]:
            if endpoint.host == "10.0.0.3":
                await fleet.clock.sleep(Timing().call)
                raise w.error("TimedOut", endpoint)
            async with super().maintenance(endpoint, pin) as session:
                yield session

    outcome = asyncio.run(run(Request(passes=1), replace(fleet.ports(), nodes=Nodes(fleet)), w.OpenGate()))
    assert len(fleet.accepted) == 5 and outcome.unreachable == ("w-3",) and 20 <= fleet.clock.time - w.START < 21


@pytest.mark.parametrize("at", ["facts cp-1", "apply cp-1", "lease prod"])
def test_told_to_stop_it_ends_with_every_record_consistent(at: str) -> None:
    fleet = new()

    async def stopped() -> Outcome:
        task = asyncio.current_task()
        assert task is not None

        def stop(count: int, what: str) -> None:
            if what == at:
                task.cancel()

        fleet.hook = stop
        return await run(Request(until_settled=True), fleet.ports(), w.OpenGate())

    outcome = asyncio.run(stopped())
    assert outcome.interrupted and outcome.extra["ended"] == "interrupted" and not fleet.store.leases.held
    fleet.hook = lambda count, what: None
    fleet.reconcile(passes=1, holder="run-1")
    fleet.clock.time += 200
    fleet.reconcile(passes=3)
    assert sorted(fleet.accepted) == ["cp-1", "w-2"], "each was accepted once, whatever was under way"


@pytest.mark.parametrize("at", ["lease prod", "apply cp-1", "apply answered cp-1", "apply w-2", "apply answered w-2"])
def test_a_stop_while_a_node_answers_counts_the_step_as_done_and_begins_no_other(at: str) -> None:
    fleet = new()

    async def stopped() -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        fleet.hook = lambda count, what: task.cancel() and None if what == at else None
        return await run(Request(until_settled=True), fleet.ports(), w.OpenGate())

    outcome = asyncio.run(stopped())
    done = [step.target.name for step in outcome.plan.steps if step.id in outcome.executed]
    assert outcome.interrupted and sorted(done) == sorted(fleet.accepted)
    assert at == "lease prod" or at.rpartition(" ")[2] in done


def test_a_control_plane_that_never_joins_holds_the_next_and_a_run_ends_all_the_same() -> None:
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    for number in (2, 3):
        fleet.waits(f"cp-{number}", number, "controlplane")

    def dies(count: int, what: str) -> None:
        fleet.nodes[Endpoint("10.0.0.2")].mode = "closed" if "cp-2" in fleet.accepted else "maintenance"

    fleet.hook = dies
    outcome = fleet.reconcile(until_settled=True, max_runtime=2000.0)
    assert fleet.accepted == ["cp-2"] and outcome.extra["ended"] == "time"
    assert any(line.startswith("cp-3: cp-2") for line in outcome.waiting_for), outcome.waiting_for
    assert any("It may be stuck" in line for line in outcome.waiting_for)


def test_who_waits_for_a_dead_one_waits_for_a_person() -> None:
    fleet = Fleet(bootstrapped=True)
    for number in (1, 2):
        fleet.runs(f"cp-{number}", number, "controlplane")
    fleet.waits("cp-3", 3, "controlplane")
    fleet.nodes[Endpoint("10.0.0.2")].mode = "closed"
    open_one = {"machine": "cp-2", "step": "reboot", "time": "2023-11-14T22:00:00Z", "bootID": "boot-1"}
    fleet.store.put(replace(fleet.cluster(), status={**fleet.cluster().status, "disruption": open_one}))
    outcome = fleet.reconcile(until_settled=True, max_runtime=3000.0)
    assert outcome.extra["ended"] == "settled" and fleet.clock.time - w.START < 600 and not fleet.received
    assert outcome.unreachable == ("cp-2",) and [line for line in outcome.waiting_for if line.startswith("cp-3: ") and "cp-2" in line]


@pytest.mark.parametrize("back", range(10, 100, 10))
def test_a_look_that_began_before_the_machine_ahead_was_done_is_no_sign_that_nothing_happens_any_more(back: int) -> None:
    fleet = Fleet(bootstrapped=True)
    for number in (1, 2):
        fleet.runs(f"cp-{number}", number, "controlplane")
    fleet.waits("cp-3", 3, "controlplane")
    booting = fleet.nodes[Endpoint("10.0.0.2")]
    booting.mode = "closed"
    open_one = {"machine": "cp-2", "step": "reboot", "time": "2023-11-14T22:13:00Z", "bootID": "boot-1"}
    fleet.store.put(replace(fleet.cluster(), status={**fleet.cluster().status, "disruption": open_one}))

    def life(count: int, what: str) -> None:
        if fleet.clock.time - w.START > back and booting.mode == "closed":
            booting.mode, booting.boot = "running", "boot-2"
        node = fleet.nodes[Endpoint("10.0.0.3")]
        if "cp-3" in fleet.accepted and node.mode == "closed":
            node.mode, node.stage, node.ready, node.etcd, node.leader = "running", "running", True, "Running", "x"

    class Nodes(w.Nodes):
        """One node takes its time before it greets."""

        @asynccontextmanager
        async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[w.Session]:
            if endpoint.host == "10.0.0.3":
                await fleet.clock.sleep(30)
            async with super().maintenance(endpoint, pin) as session:
                yield session

    fleet.hook = life
    outcome = asyncio.run(run(Request(until_settled=True, max_runtime=3000.0), replace(fleet.ports(), nodes=Nodes(fleet)), w.OpenGate()))
    assert outcome.extra["ended"] == "settled" and fleet.accepted == ["cp-3"], (fleet.lines, outcome.waiting_for)


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "is gone"])
def test_who_waits_for_a_machine_that_another_run_reclaims_waits_for_that_run(ends: bool) -> None:
    """Nobody has to do anything but that run; when it is gone, a person has to."""
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    fleet.waits("cp-2", 2, "controlplane")
    began = {"machine": "prod-9", "step": "reset", "time": "2023-11-14T22:13:00Z", "bootID": "boot-1"}
    fleet.store.put(replace(fleet.cluster(), status={**fleet.cluster().status, "disruption": began}))

    def life(count: int, what: str) -> None:
        status = dict(fleet.cluster().status)
        if ends and fleet.clock.time - w.START > 100 and status.get("disruption") == began:
            del status["disruption"]
            fleet.store.put(replace(fleet.cluster(), status=status))
        node = fleet.nodes[Endpoint("10.0.0.2")]
        if "cp-2" in fleet.accepted and node.mode == "closed":
            node.mode, node.stage, node.ready, node.etcd, node.leader = "running", "running", True, "Running", "x"

    fleet.hook = life
    outcome = fleet.reconcile(until_settled=True, max_runtime=3000.0)
    assert outcome.extra["ended"] == "settled"
    if ends:
        assert fleet.accepted == ["cp-2"] and 100 < fleet.clock.time - w.START < 300
    else:
        assert not fleet.received and 600 <= fleet.clock.time - w.START < 900


def test_a_later_task_of_a_check_run_does_not_look_at_what_would_have_been_sent() -> None:
    fleet = new()
    before = dict(fleet.store.records)
    planned = fleet.reconcile(check=True)
    for record in planned.would_be:
        fleet.store.put(record)
    ports = replace(fleet.ports(check=True), recorded=lambda kind, name: next(one for ref, one in before.items() if (ref.kind, ref.name) == (kind, name)))
    count = len(fleet.trace)
    later = asyncio.run(run(Request(passes=1), ports, w.OpenGate(check=True)))
    assert not later.plan.steps and set(reasons(later).values()) == {"ConfigStored"} and len(fleet.trace) == count


def test_what_a_saved_plan_does_not_hold_waits_for_a_person() -> None:
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    installing = fleet.waits("w-7", 7, status={"stage": "installing", "configStoredAt": "2023-11-14T22:13:00Z", "storedConfigHash": "a"})
    installing.mode = "closed"

    def later(count: int, what: str) -> None:
        passed = fleet.clock.time - w.START
        if passed > 20 and fleet.store.get(MACHINE, "w-9") is None:
            fleet.waits("w-9", 9)
        if passed > 60:
            installing.mode, installing.stage, installing.ready = "running", "running", True

    fleet.hook = later
    outcome = fleet.reconcile(until_settled=True, max_runtime=3000.0, gate=SavedGate(), bounded=True)
    assert outcome.extra["ended"] == "settled" and not fleet.received and 60 < fleet.clock.time - w.START < 600
    assert any("w-9: ApplyConfig is not in the saved plan" in line for line in outcome.waiting_for)


def test_a_store_that_cannot_be_locked_waits_for_a_person() -> None:
    fleet = new()
    fleet.store.leases.refuse = "NoLock"

    def runs(count: int, what: str) -> None:
        for node in fleet.nodes.values():
            if node.name in fleet.accepted:
                node.mode, node.stage = "running", "running"

    fleet.hook = runs
    outcome = fleet.reconcile(until_settled=True, max_runtime=900.0)
    assert fleet.accepted == ["w-2"] and outcome.extra["ended"] == "settled" and fleet.clock.time - w.START < 120
    assert reasons(outcome)["cp-1"] == "NoLock" and "cp-1" in outcome.blocked


def test_a_worker_whose_disk_was_wiped_is_put_back_by_a_later_plan() -> None:
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    node = fleet.runs("w-2", 2)

    def wiped(count: int, what: str) -> None:
        if not fleet.accepted and fleet.clock.time - w.START > 100 and node.mode == "running":
            node.mode, node.certificate, node.config = "maintenance", w.certificate("two"), b""
        elif fleet.accepted and node.mode == "closed":
            node.mode, node.stage, node.ready = "running", "running", True

    fleet.hook = wiped
    outcome = fleet.reconcile(max_runtime=600.0)
    assert fleet.accepted == ["w-2"] and not outcome.plan.steps[1:] and outcome.executed
    assert [step["action"] for plan in outcome.extra["later_plans"] for step in plan["plan"]] == ["Reinstall"]
    assert reasons(outcome) == {"cp-1": "Converged", "w-2": "Converged"}
    assert "NodeReinstalled" in [event.reason for event in fleet.store.written]
