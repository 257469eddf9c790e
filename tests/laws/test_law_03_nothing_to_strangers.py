# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 3: nothing is ever sent to a machine that is not approved, not itself, not pinned, or not where it is known."""

from __future__ import annotations

import asyncio

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.tests.laws.sending import ROLES, apply, at, boundaries, run_once, sent_to, world_with
from ansible_collections.ichor.talos.tests.unit._operations import world as w

HERE = Endpoint("10.0.0.1")


@pytest.mark.parametrize("role", ROLES)
def test_a_leaf_that_is_reissued_at_any_moment_gets_nothing_unless_the_connection_was_pinned_before(role: str) -> None:
    moments = boundaries(role)
    for number in range(1, len(moments) + 1):
        world, node = world_with(role)

        def reissue(node: w.Node = node) -> None:
            node.certificate = w.certificate("two")

        world.hook = at(number, reissue)
        outcome = run_once(world, role)
        assert set(sent_to(world)) <= {("m1", "FP-one")} and not world.unpinned, moments[number - 1]
        if not world.received:
            assert outcome.refused and outcome.reason in ("MaintenanceIdentityChanged", "CurrentConfigUnavailable"), moments[number - 1]
            assert "sending" not in world.machine("m1").status and "configStoredAt" not in world.machine("m1").status


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("leaf", ["one", "other"], ids=["with-the-same-certificate", "with-its-own-certificate"])
def test_a_machine_that_is_swapped_for_another_at_any_moment_gets_nothing(role: str, leaf: str) -> None:
    moments = boundaries(role)
    for number in range(1, len(moments) + 1):
        world, dummy = world_with(role)
        stranger = w.Node("stranger", w.identity(99), certificate=w.certificate(leaf), etcd="" if role == "worker" else "Preparing")

        def swap(world: w.World = world, stranger: w.Node = stranger) -> None:
            world.nodes[HERE] = stranger

        world.hook = at(number, swap)
        run_once(world, role)
        assert "stranger" not in [name for name, dummy2 in sent_to(world)], moments[number - 1]


@pytest.mark.parametrize("field", ["serial", "macs"])
def test_a_twin_of_the_uuid_gets_nothing(field: str) -> None:
    world, node = world_with("worker")
    other = w.identity(2)
    node.identity = w.Identity(node.identity.uuid, **{"serial": node.identity.serial, "macs": node.identity.macs, field: getattr(other, field)})
    outcome = run_once(world, "worker")
    assert outcome.reason == "IdentityMismatch" and not world.received


@pytest.mark.parametrize("spec", [
    {"approvalState": "pending"}, {"approvalState": "rejected"}, {"approvedBy": None}, {"approvedAt": None}, {"approvalState": None},
], ids=["pending", "rejected", "by-nobody", "at-no-time", "nothing"])
def test_what_nobody_approved_gets_nothing_and_is_not_asked(spec: dict[str, object]) -> None:
    world, dummy = world_with("worker")
    world.store.put(w.machine_record("m1", 1, **spec))  # type: ignore[arg-type]
    outcome = run_once(world, "worker")
    assert outcome.reason == "NotApproved" and not world.trace


def test_an_edited_endpoint_wins_over_the_observed_one_and_the_rest_is_never_dialled() -> None:
    world, node = world_with("worker")
    record = w.machine_record("m1", 1, status={
        "stage": "maintenance", "maintenanceFingerprint": "FP-one", "observedEndpoint": "10.0.0.7:50000", "observedEndpointFor": "10.0.0.9:50000"})
    world.store.put(record)
    world.nodes[Endpoint("10.0.0.7")] = w.Node("twin", w.identity(1))
    run_once(world, "worker")
    assert sent_to(world) == [("m1", "FP-one")] and not [what for what in world.trace if "10.0.0.7" in what]


def test_no_other_stream_is_open_while_the_configuration_goes_out() -> None:
    world, dummy = world_with("worker")
    outcome = asyncio.run(apply(world, "worker"))
    assert outcome.executed and world.most_open[HERE] == 1
