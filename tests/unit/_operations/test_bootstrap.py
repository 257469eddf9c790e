# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bootstrap as it runs: once, under the lock, remembered before and after."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._operations.bootstrap import Request, run
from ansible_collections.ichor.talos.tests.unit._operations import world as w

SENT = {"stage": "booting", "configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a"}


def waiting(count: int = 1) -> w.World:
    world = w.World()
    world.store.put(w.cluster_record())
    for number in range(1, count + 1):
        w.place(world, f"m{number}", number, "controlplane", status=SENT).mode = "running"
    return world


def node_of(world: w.World, name: str) -> w.Node:
    return next(node for node in world.nodes.values() if node.name == name)


def bootstrap(world: w.World, name: str = "m1", check: bool = False, store: bool = True, cluster: str = "prod", **options: object) -> Outcome:
    request = Request(cluster, name, **options)  # type: ignore[arg-type]
    return asyncio.run(run(request, world.ports(check=check, store=store), w.OpenGate(check)))


def test_once() -> None:
    world = waiting(3)
    outcome = bootstrap(world)
    assert world.bootstraps == ["m1"] and outcome.executed and not outcome.refused
    assert world.cluster().status["bootstrappedAt"] and "bootstrapping" not in world.cluster().status and not world.store.leases.held
    call = world.trace.index("bootstrap m1")
    assert world.trace[call - 1] == "renew prod" and world.trace[call - 2] == "status written prod"
    again = bootstrap(world, "m2")
    assert not again.plan.changed and not again.refused and world.bootstraps == ["m1"]


def test_a_bootstrap_that_another_run_did_meanwhile_is_no_change_of_this_one() -> None:
    world = waiting()

    def other(count: int, what: str) -> None:
        if what.startswith("acquire") or what.startswith("lease"):
            record = world.cluster()
            world.hook = lambda count, what: None
            world.store.put(replace(record, status={**record.status, "bootstrappedAt": "2023-11-14T00:00:00Z"}))

    world.hook = other
    outcome = bootstrap(world)
    assert not world.bootstraps and not outcome.executed and not outcome.refused and outcome.found_done and not outcome.machines[0].changed
    assert "bootstrapped" in outcome.message and world.cluster().status["bootstrappedAt"] == "2023-11-14T00:00:00Z"


def test_the_cluster_is_the_one_of_the_record() -> None:
    world = waiting()
    assert bootstrap(world, cluster="").executed
    assert waiting() and _raises(waiting(), cluster="other") == "RecordNotFound" and _raises(waiting(), name="m9", cluster="") == "RecordNotFound"


def _raises(world: w.World, **options: object) -> str:
    with pytest.raises(w.TalosError) as caught:
        bootstrap(world, **options)  # type: ignore[arg-type]
    return caught.value.reason


def test_check_mode_plans_what_the_run_does() -> None:
    world = waiting()
    planned = bootstrap(world, check=True)
    assert planned.plan.changed and not world.bootstraps and not world.store.writes and planned.would_be[0].status["bootstrappedAt"]
    assert list(bootstrap(world).executed) == [step.id for step in planned.plan.steps]


def test_a_check_run_that_would_send_the_configuration_plans_the_bootstrap_as_a_step_that_waits() -> None:
    world = waiting()
    node_of(world, "m1").mode = "maintenance"
    unsent = w.machine_record("m1", 1, "controlplane", status={"stage": "maintenance"})
    ports = replace(world.ports(check=True), recorded=lambda kind, name: unsent)
    outcome = asyncio.run(run(Request("prod", "m1", wait=60.0), ports, w.OpenGate(True)))
    (step,) = outcome.plan.steps
    assert not outcome.refused and not step.reversible and [(wait.target, wait.deadline) for wait in step.waits_for] == [("m1", 60.0)]
    assert outcome.waiting_for and outcome.would_be[0].status["bootstrappedAt"]
    assert not world.trace and not world.store.writes, "a machine that is only sent its configuration in a plan is not asked whether it is up"
    node_of(world, "m1").mode = "running"
    assert bootstrap(world).executed == (step.id,), "a saved plan holds the very step that the run does"


def test_a_worker_that_is_sent_its_configuration_in_the_same_plan_is_not_waited_for() -> None:
    world = waiting()
    world.store.put(w.machine_record("w9", 9, "worker", status={"stage": "maintenance", "configStoredAt": "2026-01-01T00:00:00Z"}))
    unsent = w.machine_record("m1", 1, "controlplane", status={"stage": "maintenance"})
    ports = replace(world.ports(check=True), recorded=lambda kind, name: unsent)
    (step,) = asyncio.run(run(Request("prod", "m1", wait=60.0), ports, w.OpenGate(True))).plan.steps
    assert [wait.target for wait in step.waits_for] == ["m1"]


def test_a_machine_that_was_really_sent_its_configuration_and_is_silent_is_no_step_of_a_plan() -> None:
    world = waiting()
    node_of(world, "m1").mode = "closed"
    ports = replace(world.ports(check=True), recorded=world.store.get)
    outcome = asyncio.run(run(Request("prod", "m1"), ports, w.OpenGate(True)))
    assert outcome.refused and outcome.reason == "ControlPlaneUnreachable" and not outcome.plan.steps


def test_a_machine_that_answers_and_still_installs_is_planned_and_waited_for() -> None:
    world = waiting()
    node_of(world, "m1").stage = "installing"
    planned = bootstrap(world, check=True)
    assert not planned.refused and [wait.target for step in planned.plan.steps for wait in step.waits_for] == ["m1"]
    world.hook = lambda count, what: setattr(node_of(world, "m1"), "stage", "booting") if world.clock.time - w.START > 100 else None
    assert list(bootstrap(world).executed) == [step.id for step in planned.plan.steps]


def test_without_a_store_there_is_no_lock() -> None:
    world = waiting()
    outcome = bootstrap(world, store=False)
    assert outcome.refused and outcome.reason == "NoLock" and not world.trace


def test_what_passes_by_itself_is_waited_for_and_the_rest_is_not() -> None:
    world = waiting()
    node = node_of(world, "m1")
    node.mode = "closed"
    world.hook = lambda count, what: setattr(node, "mode", "running") if world.clock.time - w.START > 100 else None
    assert bootstrap(world).executed and world.clock.time - w.START > 100
    other = waiting()
    other.store.put(w.machine_record("m1", 1, "controlplane", status=SENT, approvalState="pending"))
    assert bootstrap(other).reason == "NotApproved" and other.clock.time == w.START


def test_too_early_is_tried_again_and_remembered_by_nobody() -> None:
    world = waiting()
    node_of(world, "m1").bootstrap_errors = [w.error("BootstrapNotAvailable"), w.error("FailedPrecondition")]
    assert bootstrap(world).executed and world.bootstraps == ["m1"] * 3


def test_too_early_for_too_long_is_a_refusal_that_leaves_nothing() -> None:
    world = waiting()
    node_of(world, "m1").bootstrap_errors = [w.error("BootstrapNotAvailable")] * 99
    outcome = bootstrap(world, wait=60.0)
    assert outcome.reason == "BootstrapNotAvailable" and "bootstrapping" not in world.cluster().status and not world.store.leases.held


@pytest.mark.parametrize("reason", ["TimedOut", "ConnectionLost", "AlreadyExists"])
def test_a_lost_answer_is_success_where_the_node_became_a_member(reason: str) -> None:
    world = waiting()
    node_of(world, "m1").lose = [w.error(reason)]
    assert bootstrap(world).executed and world.cluster().status["bootstrappedAt"] and world.bootstraps == ["m1"]


def test_a_lost_request_leaves_the_word_that_only_this_machine_may_be_bootstrapped() -> None:
    world = waiting(3)
    node_of(world, "m1").bootstrap_errors = [w.error("TimedOut")]
    outcome = bootstrap(world)
    assert outcome.reason == "TimedOut" and world.cluster().status["bootstrapping"]
    assert bootstrap(world, "m2").reason == "BootstrapInProgress"
    assert bootstrap(world).executed and world.bootstraps == ["m1", "m1"]


def test_a_run_killed_after_the_call_is_found_done_although_the_machine_was_followed_since() -> None:
    world = waiting()
    assert bootstrap(world).executed
    world.store.put(replace(world.cluster(), status={"bootstrapping": {"machine": "m1", "time": "2023-11-14T00:00:00Z"}}))
    joined = world.machine("m1")
    world.store.put(replace(joined, status={**joined.status, "stage": "running", "appliedConfigHash": "a"}))
    planned = bootstrap(world, check=True)
    assert not planned.plan.changed and not planned.refused and "bootstrappedAt" not in world.cluster().status
    outcome = bootstrap(world)
    assert not outcome.refused and not outcome.executed and world.bootstraps == ["m1"]
    assert world.cluster().status["bootstrappedAt"] and "bootstrapping" not in world.cluster().status


def test_data_without_a_member_is_no_success() -> None:
    world = waiting()
    node_of(world, "m1").bootstrap_errors = [w.error("AlreadyExists")]
    outcome = bootstrap(world)
    assert outcome.reason == "AlreadyExists" and "bootstrappedAt" not in world.cluster().status and "bootstrapping" not in world.cluster().status


def test_the_machine_is_looked_at_again_on_the_connection_of_the_call() -> None:
    world = waiting()

    def swap(count: int, what: str) -> None:
        if what == "lease prod":
            node_of(world, "m1").identity = w.identity(99)

    world.hook = swap
    assert bootstrap(world).reason == "EndpointIdentityMismatch" and not world.bootstraps


def test_etcd_is_never_asked_before_the_bootstrap_since_it_would_hang() -> None:
    world = waiting()
    bootstrap(world)
    before = world.trace[:world.trace.index("bootstrap m1")]
    assert not [what for what in before if what.startswith("etcd_")] and [what for what in before if what.startswith("services")]
