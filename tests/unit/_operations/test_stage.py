# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looking at machines and following them, with and without records."""

from __future__ import annotations

import asyncio

import pytest
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import MachineRow, Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import no_credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations import follow_round
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_effects import Effects
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Surroundings
from ansible_collections.ichor.talos.plugins.module_utils._operations.stage import Request, run
from ansible_collections.ichor.talos.tests.unit._operations import world as w

STORED = {"stage": "installing", "configStoredAt": "2023-11-14T22:13:00Z", "storedConfigHash": "a", "maintenanceFingerprint": "FP-one"}


def look(world: w.World, *names: str, check: bool = False, **options: object) -> Outcome:
    request = Request(names, single=len(names) == 1, **options)  # type: ignore[arg-type]
    return asyncio.run(run(request, world.ports(check=check), w.OpenGate(check)))


def stored(role: str = "worker", *, bootstrapped: bool = True, **spec: object) -> tuple[w.World, w.Node]:
    world = w.World()
    world.store.put(w.cluster_record(status={"bootstrappedAt": "2023-11-01T00:00:00Z"} if bootstrapped else {}))
    node = w.place(world, "m1", 1, role, status=STORED, **spec)
    node.mode = "closed"
    return world, node


def script(world: w.World, *moments: tuple[float, object]) -> None:
    """Do things when the clock has come so far; looked at whenever something is called."""
    left = list(moments)

    def hook(count: int, what: str) -> None:
        while left and world.clock.time - w.START >= left[0][0]:
            do = left.pop(0)[1]
            assert callable(do)
            do()

    world.hook = hook


def runs(node: w.Node, stage: str = "running", ready: bool = True) -> None:
    node.mode, node.stage, node.ready = "running", stage, ready


def test_a_worker_is_followed_to_running() -> None:
    world, node = stored()
    script(world, (60, lambda: runs(node, "booting", False)), (120, lambda: runs(node)))
    outcome = look(world, "m1", follow=True)
    assert not outcome.refused and outcome.machines[0].reason == "NodeJoined" and not outcome.plan.changed
    assert world.machine("m1").status["appliedConfigHash"] == "a"
    assert [event.reason for event in world.store.written] == ["NodeJoined"]
    assert [move.after for move in outcome.transitions if move.what == "stage"] == ["rebooting", "booting", "running"]
    assert [line.split(":")[1].split()[0] for line in world.lines] == ["rebooting", "booting", "running"]


def test_it_looks_every_fifteen_seconds_and_stops_when_the_time_is_over() -> None:
    world, dummy = stored()
    outcome = look(world, "m1", follow=True, timeout=100.0)
    assert outcome.refused and outcome.reason == "TimedOut" and outcome.unreachable == ("m1",) and outcome.waiting_for
    assert [what for what in world.trace if what.startswith("authenticated")] == ["authenticated 10.0.0.1:50000"] * 8
    assert world.clock.time - w.START == 100


def test_several_that_are_late_are_listed_and_the_task_goes_through() -> None:
    world, node = stored()
    runs(node)
    other = w.place(world, "m2", 2, status=STORED)
    other.mode = "closed"
    outcome = look(world, "m1", "m2", follow=True, timeout=50.0)
    assert not outcome.refused and outcome.unreachable == ("m2",) and outcome.extra["settled"] is False


def test_many_are_looked_at_at_once() -> None:
    world, node = stored()
    runs(node)
    names = ["m1"]
    for number in range(2, 101):
        runs(w.place(world, f"m{number}", number, status=STORED))
        names.append(f"m{number}")
    outcome = look(world, *names, follow=True)
    assert {row.reason for row in outcome.machines} == {"NodeJoined"} and world.clock.time == w.START


def test_a_control_plane_is_settled_when_it_waits_for_the_bootstrap() -> None:
    world, node = stored("controlplane", bootstrapped=False)
    script(world, (20, lambda: runs(node, "installing", False)), (40, lambda: runs(node, "booting", False)))
    outcome = look(world, "m1", follow=True)
    assert not outcome.refused and outcome.machines[0].reason == "NodeStarting" and "talos_bootstrap" in outcome.machines[0].message
    assert "appliedConfigHash" not in world.machine("m1").status
    assert look(world, "m1", follow=True, until_running=True, timeout=30.0).reason == "TimedOut"


def test_a_control_plane_that_runs_is_joined_only_as_a_member_with_a_leader() -> None:
    world, node = stored("controlplane")
    runs(node)
    script(world, (20, lambda: setattr(node, "etcd", "Running")), (50, lambda: setattr(node, "leader", "x")))
    outcome = look(world, "m1", follow=True)
    assert outcome.machines[0].reason == "NodeJoined" and world.clock.time - w.START >= 50


def test_its_own_disruption_ends_after_two_good_readings() -> None:
    world, node = stored("controlplane")
    runs(node)
    node.etcd, node.leader = "Running", "x"
    status = {"bootstrappedAt": "2023-11-01T00:00:00Z", "disruption": {"machine": "m1", "step": "join", "time": "2023-11-14T22:00:00Z"}}
    world.store.put(w.cluster_record(status=status))
    look(world, "m1")
    assert "disruption" in world.cluster().status
    world.store.put(w.machine_record("m1", 1, "controlplane", status=STORED))
    outcome = look(world, "m1", follow=True)
    assert outcome.extra["settled"] is True and "disruption" not in world.cluster().status


def test_the_machine_is_found_again_at_its_static_address() -> None:
    world, node = stored(network={"primary": {"interface": "eth0", "addresses": ["10.0.0.50/24"], "gateway": "10.0.0.254"}})
    world.nodes = {Endpoint("10.0.0.50"): node}
    runs(node)
    assert look(world, "m1").machines[0].reason == "NodeJoined"
    status = world.machine("m1").status
    assert (status["observedEndpoint"], status["observedEndpointFor"]) == ("10.0.0.50:50000", "10.0.0.1:50000")
    assert "maintenance 10.0.0.50:50000" not in world.trace
    look(world, "m1")
    assert world.trace[-3].endswith("10.0.0.50:50000") or "authenticated 10.0.0.50:50000" in world.trace[-4:]


def moved_in_the_install(place: NodePlace, bootstrapped: bool = True) -> tuple[w.World, MachineRow]:
    """A machine whose lease changed while it was installed, and one look of the controller at it."""
    world, node = stored()
    world.nodes = {Endpoint("10.0.0.77"): node}
    runs(node)
    world.store.put(w.cluster_record(status={"bootstrappedAt": "2023-11-01T00:00:00Z"} if bootstrapped else {}))
    ports = replace(world.ports(), whereabouts=lambda cluster, names, uuid: Present(place))
    return world, asyncio.run(follow_round.look(Surroundings(ports, Timing()), "m1", Effects(ports))).row


def test_a_lease_that_changed_during_the_install_is_followed_to_where_its_node_is() -> None:
    world, row = moved_in_the_install(NodePlace("m1", ("10.0.0.77",), w.uuid(1).upper()))
    assert row.reason == "NodeJoined" and world.machine("m1").status["observedEndpoint"] == "10.0.0.77:50000"
    assert "maintenance 10.0.0.77:50000" not in world.trace


@pytest.mark.parametrize(("place", "bootstrapped"), [
    (NodePlace("other", ("10.0.0.77",)), True), (NodePlace("m1", ("10.0.0.77",), w.uuid(9)), True), (NodePlace("m1", ("10.0.0.77",)), False)],
    ids=["another-name", "another-board", "no-cluster-yet"])
def test_a_node_that_is_not_its_own_is_not_followed(place: NodePlace, bootstrapped: bool) -> None:
    world, row = moved_in_the_install(place, bootstrapped)
    assert row.reason == "NodeRebooting" and not any("10.0.0.77" in what for what in world.trace)


def test_a_left_over_sending_becomes_stored_by_a_good_read_and_not_otherwise() -> None:
    world, node = stored()
    sending = {"hash": "b", "fingerprint": "FP-one", "time": "2023-11-14T22:00:00Z", "attempt": 1, "by": "run-0"}
    world.store.put(w.machine_record("m1", 1, status={"stage": "maintenance", "sending": sending}))
    assert look(world, "m1").machines[0].reason == "SendingUnconfirmed" and "configStoredAt" not in world.machine("m1").status
    runs(node, "booting", False)
    look(world, "m1")
    status = world.machine("m1").status
    assert (status["configStoredAt"], status["storedConfigHash"]) == ("2023-11-14T22:00:00Z", "b") and "sending" not in status


def test_a_machine_that_was_never_sent_is_told_and_not_written() -> None:
    world, node = stored()
    node.mode = "maintenance"
    world.store.put(w.machine_record("m1", 1))
    outcome = look(world, "m1")
    assert outcome.machines[0].stage == "maintenance" and not outcome.refused and not world.store.writes
    assert look(world, "m1", follow=True).refused and world.clock.time == w.START


def test_check_mode_looks_once_and_lists_the_wait() -> None:
    world, dummy = stored()
    outcome = look(world, "m1", follow=True, check=True)
    assert not outcome.refused and not world.store.writes and world.clock.time == w.START
    assert outcome.plan.waits[0].deadline == 1800.0


def test_without_records() -> None:
    world, node = stored()
    runs(node)
    world.nodes[Endpoint("10.0.0.2")] = w.Node("n2", w.identity(2))
    request = Request(endpoints=(Endpoint("10.0.0.1"), Endpoint("10.0.0.2"), Endpoint("10.0.0.3")), single=False)
    outcome = asyncio.run(run(request, world.ports(store=False), w.OpenGate()))
    assert [(row.stage, row.reason) for row in outcome.machines] == [
        ("running", "NodeJoined"), ("maintenance", "AwaitingInstall"), ("unknown", "NodeUnreachable")]
    assert outcome.unreachable == ("10.0.0.3:50000",)


def test_a_machine_named_wrongly_is_one_sentence() -> None:
    world, dummy = stored()
    with pytest.raises(TalosError) as caught:
        look(world, "m7")
    assert caught.value.reason == "RecordNotFound" and "m7" in caught.value.message


def test_without_credentials_a_machine_that_runs_is_not_called_dead() -> None:
    world, node = stored()
    runs(node)
    joined = {**STORED, "stage": "running", "appliedConfigHash": "a"}
    for status in (STORED, joined):
        world.store.put(w.machine_record("m1", 1, status=status))
        given = replace(world.ports(), credentials=no_credentials)
        outcome = asyncio.run(run(Request(("m1",), follow=True), given, w.OpenGate()))
        assert outcome.refused and outcome.reason == "SecretsUnavailable" and "talosconfig" in outcome.message
        assert outcome.unreachable == () and outcome.blocked == ("m1",) and not world.store.writes and world.clock.time == w.START


def test_a_talosconfig_of_another_cluster_is_said_to_be_that() -> None:
    world, node = stored()
    node.mode = "maintenance"  # shows a certificate of its own, as every other authority does
    world.store.put(w.machine_record("m1", 1, status={**STORED, "stage": "running", "appliedConfigHash": "a"}))
    outcome = look(world, "m1")
    assert outcome.refused and outcome.reason == "UnknownAuthority" and "another cluster" in outcome.message and outcome.unreachable == ()


def test_select_names_machines() -> None:
    world, node = stored()
    runs(node)
    outcome = look(world, select="[?spec.role=='worker'].metadata.name")
    assert [row.name for row in outcome.machines] == ["m1"]


@pytest.mark.parametrize("state", ["pending", "rejected"])
@pytest.mark.parametrize("follow", [False, True])
def test_a_machine_that_is_not_approved_is_not_dialled(state: str, follow: bool) -> None:
    world = w.World()
    world.store.put(w.cluster_record())
    w.place(world, "m1", 1, status={"stage": "maintenance"}, approvalState=state, network={"primary": {"addresses": ["10.0.0.7/24"]}})
    outcome = look(world, "m1", follow=follow, until_running=follow)
    assert not world.trace and world.clock.time == w.START
    assert outcome.machines[0].reason == {"pending": "PendingApproval", "rejected": "Rejected"}[state] and "not asked" in outcome.machines[0].message
