# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Approvals from observation to the store (design section 7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.approval_words import Wanted
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_approval import Request, run
from tests.unit.machine_world import NOW, Clock, Gate, Node, Nodes, Store, cluster, facts, fingerprint, identity, machine, ports


def approval(given: Ports, *names: str, **wanted: object) -> Outcome:
    said: dict[str, object] = {"role": "worker", "install": {"disk": "/dev/nvme0n1"}, **wanted}
    return asyncio.run(run(Request(names or ("prod-1",), Wanted("", **said)), given, Gate(given.check)))  # type: ignore[arg-type]


def node(number: int = 1, key: str = "one", **more: object) -> Node:
    return Node(facts(f"10.0.0.{number}", identity(number), key), **more)  # type: ignore[arg-type]


def test_an_approval_is_written_with_everything_and_a_status() -> None:
    store = Store(cluster(), machine(1))
    outcome = approval(ports(Nodes(node()), store), hostname="w-1", labels={"rack": "a"})
    record = store.get(MACHINE, "prod-1")
    assert record is not None and outcome.plan.changed
    expected = {"approvalState": "approved", "approvedBy": "ann", "approvedVia": "login", "approvedAt": moment(NOW), "role": "worker", "hostname": "w-1",
                "labels": {"rack": "a"}, "acceptedFingerprint": fingerprint("one"),
                "approvedDisk": {"wwid": "eui.01", "serial": "D1", "model": "Fast 500", "size": 500_000_000_000}}
    assert {key: record.spec[key] for key in expected} == expected
    assert record.status["maintenanceFingerprintAt"] == moment(NOW)
    assert outcome.extra["fingerprint"] == fingerprint("one")


def test_a_second_approval_with_equal_values_changes_nothing_and_asks_nobody() -> None:
    store, nodes = Store(cluster(), machine(1)), Nodes(node())
    approval(ports(nodes, store))
    nodes.calls.clear()
    store.writes.clear()
    outcome = approval(ports(nodes, store))
    assert not outcome.plan.changed and store.writes == [] and nodes.calls == []


def test_an_old_equal_pin_needs_no_second_reading_and_a_new_one_does() -> None:
    clock = Clock()
    approval(ports(Nodes(node()), Store(cluster(), machine(1)), clock=clock))
    assert clock.slept == []
    approval(ports(Nodes(node(key="two")), Store(cluster(), machine(1)), clock=clock))
    assert clock.slept == [5.0]


def test_a_certificate_that_changes_between_the_readings_is_not_accepted() -> None:
    store = Store(cluster(), machine(1))
    outcome = approval(ports(Nodes(node(keys=["two", "three"])), store))
    assert (outcome.refused, outcome.reason) == (True, "MaintenanceIdentityChanged")
    assert store.writes == []


def test_one_refusal_holds_all_of_them() -> None:
    store = Store(cluster(), machine(1), machine(2, "approved", status={"configStoredAt": "2026-01-01T00:00:00Z"}))
    outcome = approval(ports(Nodes(node(), node(2)), store), "prod-1", "prod-2", state="rejected", role="", install=None)
    assert outcome.refused and outcome.reason == "AlreadySent" and store.writes == [] and outcome.blocked == ("prod-2",)


def test_machines_of_one_run_count_for_each_other() -> None:
    store = Store(cluster(controlPlane={"count": 1}), *(machine(number) for number in (1, 2, 3)))
    outcome = approval(ports(Nodes(*(node(number) for number in (1, 2, 3))), store), "prod-1", "prod-2", "prod-3", role="controlplane")
    assert outcome.refused and outcome.reason == "TooManyControlPlanes" and outcome.blocked == ("prod-3",)


def test_a_record_that_changed_since_it_was_read_is_refused() -> None:
    store = Store(cluster(), machine(1))

    def somebody_else() -> None:
        record = store.records[(MACHINE, "prod-1")]
        store.records[(MACHINE, "prod-1")] = replace(record, resource_version="9")

    store.before_update = somebody_else
    with pytest.raises(TalosError) as caught:
        approval(ports(Nodes(node()), store))
    assert caught.value.reason == "RecordChanged"


def test_check_mode_has_the_same_plan_and_writes_nothing() -> None:
    store, nodes = Store(cluster(), machine(1)), Nodes(node(key="two"))
    clock = Clock()
    seen = approval(ports(nodes, store, check=True, clock=clock))
    assert store.writes == [] and clock.slept == [] and seen.waiting_for
    (record,) = seen.would_be
    assert record.spec["approvalState"] == "approved" and record.status["maintenanceFingerprint"] == fingerprint("two")
    assert approval(ports(nodes, store)).plan.id == seen.plan.id


def test_a_schedule_approves_nothing_and_asks_nobody() -> None:
    nodes = Nodes(node())
    outcome = approval(ports(nodes, Store(cluster(), machine(1)), actor=Actor("ann", "awx", schedule=True)))
    assert outcome.reason == "ScheduleCannotApprove" and nodes.calls == []


def test_a_redirected_machine_is_held_against_the_node_at_its_own_address() -> None:
    moved = machine(1, status={"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1", "maintenanceFingerprint": fingerprint("two")})
    twin = Node(facts("10.0.0.7", identity(1), "two"))
    outcome = approval(ports(Nodes(node(), twin), Store(cluster(), moved)))
    assert outcome.reason == "TwinIdentity"


def test_a_refused_address_is_not_dialled() -> None:
    nodes = Nodes()
    outcome = approval(ports(nodes, Store(cluster(), machine(1, address="10.244.0.9"))))
    assert outcome.reason == "EndpointRefused" and nodes.calls == []


@pytest.mark.parametrize("option", [{"hostname": "w-1"}, {"network": {"dhcp": True}}, {"fingerprint": fingerprint("one")}])
def test_what_belongs_to_one_machine_is_not_taken_for_two(option: dict[str, object]) -> None:
    with pytest.raises(TalosError) as caught:
        approval(ports(Nodes(), Store(cluster(), machine(1), machine(2))), "prod-1", "prod-2", **option)
    assert caught.value.reason == "InvalidInput"


def test_a_rejection_asks_nobody() -> None:
    store, nodes = Store(cluster(), machine(1)), Nodes(node())
    outcome = approval(ports(nodes, store), state="rejected", role="", install=None)
    record = store.get(MACHINE, "prod-1")
    assert record is not None and record.spec["approvalState"] == "rejected" and nodes.calls == []
    assert [row.reason for row in outcome.machines] == ["Rejected"]
