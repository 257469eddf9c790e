# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sending configurations: one machine, many, with and without a store, in check mode, pins, the lock, disruptions."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, EtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record, condition_of
from ansible_collections.ichor.talos.plugins.module_utils._operations.maintenance_apply import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Job
from ansible_collections.ichor.talos.tests.unit._operations import world as w

BOOTSTRAPPED = {"bootstrappedAt": "2023-11-01T00:00:00Z"}
JOINED = {"stage": "running", "configStoredAt": "2023-11-01T00:00:00Z", "storedConfigHash": "a", "appliedConfigHash": "a"}


def job(name: str, role: str = "worker", hostname: str | None = None) -> Job:
    return Job(name, Present(bring(w.config(role, name if hostname is None else hostname))))


def apply(world: w.World, *jobs: Job, check: bool = False, holder: str = "run-1", store: bool = True, credentials: bool = True) -> Outcome:
    ports = world.ports(holder, check=check, store=store, credentials=credentials)
    return asyncio.run(run(Request(jobs, single=len(jobs) == 1), ports, w.OpenGate(check)))


def fresh(**cluster: object) -> w.World:
    world = w.World()
    world.store.put(w.cluster_record(**cluster))  # type: ignore[arg-type]
    return world


def reasons(record: Record) -> tuple[str, str]:
    """(reason of Provisioned, reason of Ready)."""
    found = (condition_of(record, "Provisioned"), condition_of(record, "Ready"))
    return found[0].reason if found[0] else "", found[1].reason if found[1] else ""


def joined_control_plane(world: w.World, name: str = "cp9", number: int = 9) -> w.Node:
    node = w.place(world, name, number, "controlplane", status=JOINED)
    node.mode, node.stage, node.ready, node.etcd, node.leader = "running", "running", True, "Running", "x"
    node.members = (EtcdMember("x", name, (f"https://10.0.0.{number}:2380",)),)
    return node


def test_a_worker_is_sent_its_configuration_once() -> None:
    world = fresh()
    w.place(world, "w1", 1)
    outcome = apply(world, job("w1"))
    assert not outcome.refused and outcome.plan.changed and len(outcome.executed) == 1
    assert [(name, fingerprint, mode) for name, dummy, fingerprint, dummy2, mode in world.received] == [("w1", "FP-one", "AUTO")]
    status = world.machine("w1").status
    assert status["configStoredAt"] and status["storedConfigHash"] and "sending" not in status
    assert reasons(world.machine("w1")) == ("ConfigStored", "ConfigStored")
    assert [event.reason for event in world.store.written] == ["ConfigApplied"]
    assert ("stage", "maintenance", "installing") in [(move.what, move.before, move.after) for move in outcome.transitions]
    assert not [what for what in world.trace if what.startswith("lease")]

    again = apply(world, job("w1"))
    assert not again.plan.changed and not again.refused and len(world.received) == 1
    assert again.machines[0].reason == "ConfigStored"


def test_sending_is_written_before_the_bytes_leave_and_the_lock_is_proven_last() -> None:
    world = fresh()
    w.place(world, "cp1", 1, "controlplane")
    apply(world, job("cp1", "controlplane"))
    apply_at = world.trace.index("apply cp1")
    assert world.trace[apply_at - 1] == "renew prod" and "status written cp1" in world.trace[apply_at - 3:apply_at]
    before = world.trace[:apply_at]
    assert before.index("lease prod") < before.index("facts cp1", before.index("lease prod"))
    assert world.trace[-1] == "release prod" or "release prod" in world.trace


def test_check_mode_shows_the_plan_and_touches_nothing() -> None:
    world = fresh()
    w.place(world, "w1", 1)
    planned = apply(world, job("w1"), check=True)
    assert planned.plan.changed and not planned.executed and not world.received and not world.store.writes
    assert [record.status["configStoredAt"] for record in planned.would_be]
    real = apply(world, job("w1"))
    assert real.plan.id == planned.plan.id and [step.id for step in planned.plan.steps] == list(real.executed)


def test_check_mode_lists_a_lock_that_is_held_and_does_not_wait_for_it() -> None:
    world = fresh()
    w.place(world, "cp1", 1, "controlplane")
    world.store.leases.acquire("prod", "run-9", "a removal", 60)
    planned = apply(world, job("cp1", "controlplane"), check=True)
    assert "run-9 holds for a removal" in planned.plan.waits[0].what and planned.plan.waits[0].deadline == 300.0
    assert planned.machines[0].changed and world.clock.time == w.START


def test_a_machine_without_a_pin_is_pinned_first_and_sent_to_by_a_later_run() -> None:
    world = fresh()
    w.place(world, "w1", 1, status={"stage": "maintenance"})
    first = apply(world, job("w1"))
    assert [step.action for step in first.plan.steps] == ["RecordPin", "ApplyConfig"] and list(first.executed) == [first.plan.steps[0].id]
    assert not world.received and world.machine("w1").status["maintenanceFingerprint"] == "FP-one"
    assert [event.reason for event in world.store.written] == ["MaintenanceIdentityRefreshed"] and first.waiting_for
    second = apply(world, job("w1"))
    assert world.accepted == ["w1"] and second.plan.steps[0].id == first.plan.steps[1].id


def test_a_refusal_is_written_as_a_condition_and_fails_the_one_named_machine() -> None:
    world = fresh()
    w.place(world, "w1", 1).certificate = w.certificate("two")
    outcome = apply(world, job("w1"))
    assert outcome.refused and outcome.reason == "MaintenanceIdentityChanged" and outcome.blocked == ("w1",)
    assert reasons(world.machine("w1")) == ("MaintenanceIdentityChanged", "MaintenanceIdentityChanged")
    writes = world.store.writes
    apply(world, job("w1"))
    assert world.store.writes == writes


def test_of_many_the_others_go_on_and_the_dead_one_is_listed() -> None:
    world = fresh()
    for number in range(1, 6):
        w.place(world, f"w{number}", number)
    del world.nodes[Endpoint("10.0.0.2")]
    world.nodes[Endpoint("10.0.0.3")].certificate = w.certificate("two")
    outcome = apply(world, *(job(f"w{number}") for number in range(1, 6)))
    assert not outcome.refused and outcome.unreachable == ("w2",) and outcome.blocked == ("w3",)
    assert sorted(world.accepted) == ["w1", "w4", "w5"] and len(outcome.executed) == 3
    assert reasons(world.machine("w2"))[1] == "CurrentConfigUnavailable"


def test_a_name_that_is_none_fails_before_anything_is_sent() -> None:
    world = fresh()
    w.place(world, "w1", 1)
    with pytest.raises(TalosError) as caught:
        apply(world, job("w1"), job("nobody"))
    assert caught.value.reason == "RecordNotFound" and "nobody" in caught.value.message and not world.received


def test_one_configuration_for_many_is_refused_where_it_names_a_host() -> None:
    world = fresh()
    for number in (1, 2):
        w.place(world, f"w{number}", number, hostname=None)
    outcome = apply(world, job("w1", hostname="same"), job("w2", hostname="same"))
    assert {row.reason for row in outcome.machines} == {"HostnameConflict"} and not world.received
    assert not apply(world, job("w1", hostname=""), job("w2", hostname="")).blocked and len(world.accepted) == 2


def test_before_the_bootstrap_all_control_planes_may_go_at_once() -> None:
    world = fresh()
    for number in (1, 2, 3):
        w.place(world, f"cp{number}", number, "controlplane")
    apply(world, *(job(f"cp{number}", "controlplane") for number in (1, 2, 3)))
    assert sorted(world.accepted) == ["cp1", "cp2", "cp3"] and "disruption" not in world.cluster().status


def test_after_it_one_joins_after_the_other_on_evidence() -> None:
    world = fresh(status=BOOTSTRAPPED)
    joined_control_plane(world)
    for number in (1, 2):
        w.place(world, f"cp{number}", number, "controlplane")
    jobs = (job("cp1", "controlplane"), job("cp2", "controlplane"))
    first = apply(world, *jobs)
    assert world.accepted == ["cp1"] and len(first.plan.steps) == 2 and "cp1" in first.waiting_for[0]
    disruption = world.cluster().status["disruption"]
    assert isinstance(disruption, dict) and (disruption["machine"], disruption["step"]) == ("cp1", "join")
    apply(world, *jobs)
    assert world.accepted == ["cp1"]
    joined = world.nodes[Endpoint("10.0.0.1")]
    joined.mode, joined.stage, joined.ready, joined.etcd, joined.leader = "running", "running", True, "Running", "x"
    world.clock.time += 60
    apply(world, *jobs)
    assert world.accepted == ["cp1", "cp2"]
    after = world.cluster().status["disruption"]
    assert isinstance(after, dict) and after["machine"] == "cp2"


@pytest.mark.parametrize("reason", ["ConfigRejected", "FailedPrecondition", "PermissionDenied"])
def test_a_join_that_the_node_refused_is_no_disruption(reason: str) -> None:
    world = fresh(status=BOOTSTRAPPED)
    joined_control_plane(world)
    w.place(world, "cp1", 1, "controlplane").refuse = [w.error(reason)]
    apply(world, job("cp1", "controlplane"))
    assert not world.accepted and "disruption" not in world.cluster().status


@pytest.mark.parametrize("reason", ["FailedPrecondition", "ConnectionRefused", "PermissionDenied"])
def test_a_second_attempt_that_the_node_did_not_take_leaves_the_first_unconfirmed(reason: str) -> None:
    world = fresh()
    node = w.place(world, "w1", 1)
    before = {"hash": hashlib.sha256(w.config("worker", "w1")).hexdigest(), "fingerprint": "FP-one", "time": "2023-11-14T00:00:00Z", "attempt": 1,
              "by": "run-0"}
    record = world.machine("w1")
    world.store.put(replace(record, status={**record.status, "sending": before}))
    node.refuse = [w.error(reason)]
    outcome = apply(world, job("w1"))
    assert outcome.reason == reason and not world.accepted
    assert world.machine("w1").status["sending"] == before


def test_two_records_of_one_machine_are_both_sent_nothing() -> None:
    world = fresh()
    w.place(world, "w1", 1)
    world.store.put(w.machine_record("dup", 1, hostname="dup"))
    outcome = apply(world, job("w1"), job("dup"))
    assert not world.received and set(outcome.blocked) == {"w1", "dup"} and {row.reason for row in outcome.machines} == {"TwinIdentity"}
    assert "dup" in outcome.machines[0].message and not world.trace[0].startswith("maintenance")


def test_two_machines_of_one_task_at_one_address_are_both_sent_nothing() -> None:
    world = fresh()
    w.place(world, "w1", 1)
    world.store.put(w.machine_record("w2", 2, endpoint="10.0.0.1"))
    outcome = apply(world, job("w1"), job("w2"))
    assert not world.received and {row.reason for row in outcome.machines} == {"EndpointRefused"}
    assert apply(world, job("w1")).executed and world.accepted == ["w1"]


def test_a_member_of_the_same_name_holds_a_control_plane() -> None:
    world = fresh(status=BOOTSTRAPPED)
    node = joined_control_plane(world)
    node.members = (*node.members, EtcdMember("y", "cp1", ("https://10.0.0.77:2380",)))
    w.place(world, "cp1", 1, "controlplane")
    assert apply(world, job("cp1", "controlplane")).reason == "HostnameConflict" and not world.received


def test_the_lock_is_got_for_control_planes_or_nothing_is_sent() -> None:
    world = fresh()
    w.place(world, "cp1", 1, "controlplane")
    world.store.leases.acquire("prod", "run-9", "a removal", 60)
    outcome = apply(world, job("cp1", "controlplane"))
    assert outcome.reason == "LockHeld" and "run-9" in outcome.message and not world.received
    assert reasons(world.machine("cp1"))[0] == "LockHeld"
    world.store.leases.held.clear()
    world.store.leases.refuse = "NoLock"
    assert apply(world, job("cp1", "controlplane")).reason == "NoLock"


def test_a_lock_that_is_lost_before_the_send_withdraws_everything() -> None:
    world = fresh(status=BOOTSTRAPPED)
    joined_control_plane(world)
    w.place(world, "cp1", 1, "controlplane")

    def lose(count: int, what: str) -> None:
        if what == "status written cp1":
            world.store.leases.held.clear()

    world.hook = lose
    outcome = apply(world, job("cp1", "controlplane"))
    assert outcome.reason == "LockHeld" and not world.received
    assert "sending" not in world.machine("cp1").status and "disruption" not in world.cluster().status


def test_the_node_s_refusal_is_told_without_the_secrets_that_it_quotes() -> None:
    world = fresh()
    node = w.place(world, "w1", 1)
    node.refuse = [w.error("ConfigRejected", detail="unknown key beside token: abcdef.0123456789abcdef")]
    outcome = apply(world, job("w1"))
    text = repr((outcome, world.machine("w1").status, world.store.written))
    assert outcome.reason == "ConfigRejected" and "unknown key" in outcome.message and "0123456789abcdef" not in text


def test_a_person_who_edits_the_record_between_plan_and_send_is_heard() -> None:
    world = fresh()
    w.place(world, "w1", 1)

    def edit(count: int, what: str) -> None:
        if what == "facts w1" and world.trace.count("facts w1") == 2:
            world.store.put(w.replace(world.machine("w1"), resource_version="2", annotations={"ichor.maesh.dev/hold-apply": "true"}))

    world.hook = edit
    outcome = apply(world, job("w1"))
    assert outcome.reason == "HoldApply" and not world.received and "sending" not in world.machine("w1").status


def storeless(fingerprint: str = "FP-one", number: int = 1, role: str = "worker") -> Job:
    return Job(config=Present(bring(w.config(role, "m1"))), endpoint=Endpoint("10.0.0.1"), identity=w.Identity(w.uuid(number)), fingerprint=fingerprint)


@pytest.mark.parametrize("credentials", [True, False])
@pytest.mark.parametrize("role", ["worker", "controlplane"])
def test_without_a_store(credentials: bool, role: str) -> None:
    world = w.World()
    w.place(world, "m1", 1, role, record=False)
    outcome = apply(world, storeless(role=role), store=False, credentials=credentials)
    assert world.accepted == ["m1"] and not world.unpinned and outcome.executed
    assert "no memory" in outcome.plan.warnings[0].message


@pytest.mark.parametrize("wrong, reason", [
    (storeless("FP-two"), "MaintenanceIdentityChanged"), (storeless(number=2), "IdentityMismatch"),
], ids=["certificate", "uuid"])
def test_without_a_store_nothing_goes_to_a_stranger(wrong: Job, reason: str) -> None:
    world = w.World()
    w.place(world, "m1", 1, record=False)
    outcome = apply(world, wrong, store=False)
    assert outcome.refused and outcome.reason == reason and not world.received


def test_without_a_store_a_lost_answer_is_told_and_not_repeated() -> None:
    world = w.World()
    node = w.place(world, "m1", 1, record=False)
    node.lose = [w.error("TimedOut")]
    outcome = apply(world, storeless(), store=False)
    assert outcome.reason == "SendingUnconfirmed" and len(world.received) == 1


def test_without_a_store_the_same_bytes_again_are_no_change() -> None:
    world = w.World()
    node = w.place(world, "m1", 1, record=False)
    apply(world, storeless(), store=False)
    node.mode, node.stage = "running", "running"
    again = apply(world, storeless(), store=False)
    assert not again.refused and not again.plan.changed and len(world.received) == 1
    assert apply(world, storeless(), store=False, credentials=False).reason == "AlreadyConfigured"


def test_loopback_is_refused_before_anything_is_dialled() -> None:
    world = fresh()
    w.place(world, "w1", 1, endpoint="127.0.0.1:50000")
    outcome = apply(world, job("w1"))
    assert outcome.reason == "EndpointRefused" and not [what for what in world.trace if "127.0.0.1" in what]
