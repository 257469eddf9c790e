# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of converged machines: read, shown, brought back (design sections 10, 11 and 13)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import Failure, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY, MACHINE
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from ansible_collections.ichor.talos.tests.unit._operations.converging_world import (
    NEW_TOKEN, World, accepting, other_kubernetes_ca, other_token, with_rule, with_sysctl,
)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_machine_that_runs_what_the_records_say_is_converged(world: World) -> None:
    node = world.joined("w1", 1)
    found = world.look("w1")
    assert (found.row.ready, found.row.reason, found.plan.steps, found.settled, found.requeue_after) == (True, "Converged", (), True, 120.0)
    assert world.ready("w1") == ("True", "Converged") and not world.sent
    assert world.machine("w1").status["stage"] == "running"
    writes = world.machine("w1").status_version
    world.look("w1")
    assert world.machine("w1").status_version == writes, "a second look at the same writes nothing"
    assert node.boot == 1


def test_drift_of_a_worker_by_hand_is_sent_at_once_without_the_lock(world: World) -> None:
    node = world.joined("w1", 1)
    wanted = node.active
    node.active = with_sysctl(wanted)
    check = world.look("w1", check=True)
    assert [(step.action, step.mode, step.locked, step.waits_for) for step in check.plan.steps] == [("ApplyDrift", "NO_REBOOT", False, ())]
    assert "somaxconn" in str(check.differences[0].before) and not world.sent
    ran = world.run("w1")
    assert ran.done == [("w1", "ApplyDrift", "NO_REBOOT")] and ran.ids == [step.id for step in check.plan.steps]
    assert node.active == wanted and ran.last["w1"].row.reason == "Converged"
    assert world.machine("w1").status["appliedConfigHash"] != "a" and world.machine("w1").status["observedInputsHash"]
    assert not world.look("w1", check=True).plan.steps


@pytest.mark.parametrize("version", ["v1.12.11", "v1.13.9"])
def test_a_change_that_needs_a_reboot_is_staged_and_followed_by_the_reboot(tmp_path: Path, version: str) -> None:
    world = World(tmp_path, version)
    node = world.joined("w1", 1)
    wanted = node.active
    node.active = with_rule(wanted)
    plan = world.look("w1", check=True).plan
    assert [(step.action, step.locked, [wait.what for wait in step.waits_for]) for step in plan.steps] == [
        ("ApplyDrift", False, []), ("Reboot", True, ["the configuration to be staged"])]
    ran = world.run("w1")
    assert ran.done == [("w1", "ApplyDrift", "STAGED"), ("w1", "Reboot", "")] and ran.ids == [step.id for step in plan.steps]
    assert (node.active, node.boot) == (wanted, 2) and ran.last["w1"].row.reason == "Converged"
    assert "disruption" not in world.cluster().status and not world.look("w1", check=True).plan.steps


def test_the_same_change_is_taken_at_once_by_the_newest_talos(tmp_path: Path) -> None:
    world = World(tmp_path, "v1.14.0")
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    assert world.run("w1").done == [("w1", "ApplyDrift", "NO_REBOOT")] and node.boot == 1


@pytest.mark.parametrize("version", ["v1.13.9", "v1.14.0"])
def test_a_changed_host_name_is_staged_and_needs_the_reboot_on_every_version(tmp_path: Path, version: str) -> None:
    world = World(tmp_path, version)
    node = world.joined("w1", 1)
    world.change("w1", hostname="other")
    assert world.run("w1").done == [("w1", "ApplyDrift", "STAGED"), ("w1", "Reboot", "")]
    assert b"hostname: other" in node.active and node.boot == 2


def test_a_changed_host_name_that_another_machine_has_is_refused(world: World) -> None:
    world.joined("w1", 1)
    world.joined("w2", 2)
    world.change("w1", hostname="w2")
    found = world.look("w1")
    assert (found.plan.refusals[0].reason, found.plan.steps, found.held) == ("HostnameConflict", (), True) and not world.sent
    assert world.ready("w1") == ("False", "HostnameConflict")


def test_a_host_name_that_a_patch_copies_to_two_machines_is_refused_for_both(world: World) -> None:
    world.joined("w1", 1, hostname=None)
    world.joined("w2", 2, hostname=None)
    world.joined("w3", 3)
    world.patch("names", [{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "same"}])
    ran = world.run("w1", "w2", "w3")
    assert not world.sent and {name: found.row.reason for name, found in ran.last.items()} == {
        "w1": "HostnameConflict", "w2": "HostnameConflict", "w3": "Converged"}


def test_a_policy_of_report_only_shows(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(node.active)
    world.change_cluster(driftPolicy="report")
    ran = world.run("w1")
    assert not ran.acted and not world.sent and ran.last["w1"].settled and not ran.last["w1"].held
    assert world.ready("w1") == ("False", "Drifted") and "somaxconn" in str(ran.last["w1"].differences[0].before)


def test_without_leave_to_reboot_the_change_is_staged_and_the_reboot_is_named(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    assert [refusal.reason for refusal in world.look("w1", check=True, allow_reboot=False).plan.refusals] == ["RebootRequired"]
    ran = world.run("w1", allow_reboot=False)
    assert ran.done == [("w1", "ApplyDrift", "STAGED")] and world.ready("w1") == ("False", "RebootRequired")
    assert ran.last["w1"].held and ran.last["w1"].settled and node.boot == 1
    assert world.run("w1").done == [("w1", "Reboot", "")] and node.boot == 2


def test_when_a_person_reboots_it_the_staged_change_is_what_runs(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    world.run("w1", allow_reboot=False)
    node.restart()
    assert world.look("w1", allow_reboot=False).row.reason == "Converged"


@pytest.mark.parametrize("made", [other_token, other_kubernetes_ca])
def test_keys_that_differ_from_the_bundle_are_never_sent_over(world: World, made: Callable[[bytes], bytes]) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(made(node.active))
    ran = world.run("w1")
    assert not world.sent and world.ready("w1") == ("False", "AuthorityMismatch") and ran.last["w1"].held
    assert NEW_TOKEN not in str(ran.last) + str(world.machine("w1").status)


def test_keys_that_differ_in_what_is_staged_stop_as_well(world: World) -> None:
    node = world.joined("w1", 1)
    node.kept = other_token(node.active)
    assert world.look("w1").row.reason == "AuthorityMismatch" and not world.sent


def test_a_node_whose_own_ca_was_rotated_is_told_as_that_and_asked_whether_it_fell_back(world: World) -> None:
    node = world.joined("w1", 1)
    node.foreign = True
    found = world.look("w1")
    assert (found.row.reason, found.silent, found.fell_back, found.held, found.settled) == ("AuthorityMismatch", False, True, True, True)
    assert world.condition("w1", "NodeReachable") is None and not world.sent
    node.foreign, node.maintained = False, True
    found = world.look("w1")
    assert (found.row.reason, found.silent, found.fell_back) == ("CurrentConfigUnavailable", True, True)


def test_cas_that_a_node_accepts_beside_its_own_say_that_a_rotation_is_under_way(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(accepting(node.active, world.authority))
    assert world.look("w1").row.reason == "CARotation" and not world.run("w1").acted


@pytest.mark.parametrize("hold, reason", [("caRotation", "CARotation"), ("shutdown", "ClusterShuttingDown")])
def test_a_hold_of_the_cluster_stops_every_send(world: World, hold: str, reason: str) -> None:
    node = world.joined("w1", 1)
    world.change_cluster(hold=hold)
    assert world.look("w1").row.reason == "Converged", "a machine without drift is not concerned"
    node.active = with_sysctl(node.active)
    ran = world.run("w1")
    assert not ran.acted and world.ready("w1") == ("False", reason) and ran.last["w1"].differences


def test_a_hold_of_the_machine_is_read_shown_and_nothing_is_sent(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(node.active)
    world.annotate("w1", **{HOLD_APPLY: "true"})
    ran = world.run("w1")
    assert not ran.acted and [one.reason for one in ran.last["w1"].plan.refusals] == ["HoldApply"]
    assert world.ready("w1") == ("False", "Drifted") and ran.last["w1"].differences


def test_newer_kubernetes_images_stay_when_other_drift_is_put_back(world: World) -> None:
    node = world.joined("w1", 1)
    newer = node.active.replace(b"kubelet:v1.35.0", b"kubelet:v1.35.3")
    assert newer != node.active
    node.active = newer
    assert world.look("w1").row.reason == "Converged" and "Newer Kubernetes images" in world.look("w1").row.message and not world.sent
    node.active = with_sysctl(newer)
    assert world.run("w1").done == [("w1", "ApplyDrift", "NO_REBOOT")]
    assert b"kubelet:v1.35.3" in node.active and b"somaxconn" not in node.active
    ran = world.run("w1")
    assert not ran.acted and "Newer Kubernetes images" in ran.last["w1"].row.message


def test_a_node_off_for_ever_is_unreachable_after_the_grace_and_back_at_the_first_read(world: World) -> None:
    node = world.joined("w1", 1)
    world.look("w1")
    node.silent = True
    first = world.look("w1")
    assert (first.silent, first.fell_back, first.settled, first.requeue_after, first.row.reason) == (True, True, False, 15.0, "CurrentConfigUnavailable")
    assert world.condition("w1", "NodeReachable") == ("False", "NodeUnreachable")
    ran = world.run("w1")
    assert world.ready("w1") == ("False", "NodeUnreachable") and ran.last["w1"].settled
    assert "10.0.0.1:50000" in ran.last["w1"].row.message and "gives no answer" in ran.last["w1"].row.message
    writes = world.machine("w1").status_version
    world.look("w1")
    assert world.machine("w1").status_version == writes
    node.silent = False
    assert world.look("w1").row.ready and world.condition("w1", "NodeReachable") is None


def test_another_machine_at_the_address_is_told_and_nothing_is_sent(world: World) -> None:
    node = world.joined("w1", 1)
    node.identity, node.active = w.identity(9), with_sysctl(node.active)
    found = world.look("w1")
    assert (found.row.reason, found.silent, world.sent) == ("EndpointIdentityMismatch", False, [])
    assert world.machine("w1").status.get("stage") != "running"


def test_a_static_address_of_the_spec_is_where_it_is_found_when_the_lease_is_gone(world: World) -> None:
    node = world.joined("w1", 1, network={"primary": {"interface": "eth0", "addresses": ["10.0.0.51/24"], "gateway": "10.0.0.254"}})
    world.nodes[Endpoint("10.0.0.51")] = world.nodes.pop(Endpoint("10.0.0.1"))
    assert world.look("w1").row.ready and node.boot == 1
    assert world.machine("w1").status["observedEndpoint"] == "10.0.0.51:50000"
    assert world.machine("w1").status["observedEndpointFor"] == "10.0.0.1:50000"


def test_a_node_that_moved_is_found_where_its_kubernetes_node_says_and_by_its_uuid_alone(world: World) -> None:
    world.joined("w1", 1)
    world.nodes[Endpoint("10.0.0.77")] = world.nodes.pop(Endpoint("10.0.0.1"))
    world.whereabouts = lambda cluster, names, uuid: Present(NodePlace(names[0], ("10.0.0.77",), w.uuid(1).upper()))
    assert world.look("w1").row.ready and world.machine("w1").status["observedEndpoint"] == "10.0.0.77:50000"


def test_an_address_that_only_kubernetes_tells_is_named_and_not_believed(world: World) -> None:
    world.joined("w1", 1)
    world.joined("w2", 2)
    world.nodes.pop(Endpoint("10.0.0.1"))
    world.whereabouts = lambda cluster, names, uuid: Present(NodePlace(names[0], ("10.0.0.2",)))
    found = world.look("w1")
    assert found.silent and "spec.endpoint may need updating to 10.0.0.2:50000" in found.row.message
    assert "observedEndpoint" not in world.machine("w1").status


def test_a_machine_without_a_host_name_is_hinted_at_by_its_system_uuid_and_not_dialled(world: World) -> None:
    world.joined("w1", 1, hostname=None)
    world.nodes[Endpoint("10.0.0.77")] = world.nodes.pop(Endpoint("10.0.0.1"))
    world.whereabouts = lambda cluster, names, uuid: Present(NodePlace("talos-abc", ("10.0.0.77",), uuid.upper())) if not names else Absent()
    found = world.look("w1")
    assert found.silent and "spec.endpoint may need updating to 10.0.0.77:50000" in found.row.message
    assert not any("10.0.0.77" in call for call in world.calls)


def test_a_change_that_the_node_takes_only_with_a_reboot_after_all_is_staged_at_the_next_look(world: World) -> None:
    node = world.joined("w1", 1)
    wanted = node.active
    node.active = with_sysctl(wanted)
    node.refuse = [TalosError("ConfigRejected", "The node refused the configuration.", detail=(
        "this config change can't be applied in immediate mode\ndiff:\n+ token: sesame-sesame"), failure=Failure(code="INVALID_ARGUMENT"))]
    ran = world.run("w1")
    assert ran.done == [("w1", "ApplyDrift", "STAGED"), ("w1", "Reboot", "")] and node.active == wanted
    assert "sesame" not in str(ran) + str(world.lines) + str(world.machine("w1").status)


def test_bytes_that_the_node_refuses_are_not_sent_again_before_they_change(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(node.active)
    token = bring(node.active).secrets[0] if isinstance(bring(node.active).secrets, tuple) else sorted(bring(node.active).secrets)[0]
    node.refuse = [TalosError("ConfigRejected", "The node refused the configuration.", detail=f"bad value {token}", failure=Failure(code="INVALID_ARGUMENT"))]
    ran = world.run("w1")
    assert [acted.refusal.reason for *dummy, acted in ran.acted if acted.refusal] == ["ConfigRejected"] and len(world.tries) == 1
    assert world.ready("w1") == ("False", "ConfigRejected") and token not in str(ran)
    world.patch("more", [{"machine": {"sysctls": {"vm.swappiness": "1"}}}])
    assert world.run("w1").done == [("w1", "ApplyDrift", "NO_REBOOT")]
    assert "rejectedInputsHash" not in world.machine("w1").status


def test_an_answer_that_is_lost_is_looked_for_and_nothing_is_sent_twice(world: World) -> None:
    node = world.joined("w1", 1)
    node.active = with_sysctl(node.active)
    node.lose = [TalosError("TimedOut", "No answer came.", failure=Failure(code="DEADLINE_EXCEEDED"))]
    ran = world.run("w1")
    assert len(world.sent) == 1 and ran.last["w1"].row.ready
    assert world.machine("w1").status["appliedConfigHash"] == sha256(node.active)


def test_a_configuration_that_somebody_staged_is_put_back_before_it_can_begin_to_run(world: World) -> None:
    node = world.joined("w1", 1)
    node.kept = with_sysctl(node.active)
    found = world.look("w1")
    assert "next boot" in found.row.message and "somaxconn" in str(found.differences)
    assert world.run("w1").done == [("w1", "ApplyDrift", "NO_REBOOT")] and node.kept == node.active


def test_a_machine_is_read_without_rendering_while_nothing_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    node = world.joined("w1", 1)
    world.look("w1")
    monkeypatch.setattr(Renderer, "machine", lambda *unused, **options: pytest.fail("it was rendered"))
    calls = len(world.calls)
    assert world.look("w1").row.ready and world.calls[calls:] == [
        "authenticated 10.0.0.1:50000", "identity w1", "stage w1", "machine_config w1", "machine_config w1"]
    monkeypatch.undo()
    node.active = with_sysctl(node.active)
    assert world.run("w1").done


def test_a_render_that_fails_asks_no_node(world: World) -> None:
    world.joined("w1", 1)
    world.look("w1")
    world.patch("bad", [{"machine": {"nonsense": 1}}])
    calls = len(world.calls)
    found = world.look("w1")
    assert (found.row.reason, found.held, len(world.calls)) == ("RenderFailed", True, calls) and "bad" in found.row.message


def test_check_mode_writes_nothing(world: World) -> None:
    nodes = [world.joined(f"cp{number}", number, "controlplane") for number in (1, 2, 3)]
    for node in nodes:
        node.active = with_rule(node.active)
    before = [(record.name, record.status_version) for record in world.store.list(MACHINE).records]
    for node in nodes:
        assert [step.action for step in world.look(node.name, check=True).plan.steps] == ["ApplyDrift", "Reboot"]
    assert [(record.name, record.status_version) for record in world.store.list(MACHINE).records] == before
    assert not world.tries and not world.cluster().status.get("disruption")
