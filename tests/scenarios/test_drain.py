# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that are drained before they go, through ansible-playbook, on real etcd and with a real API server (design section 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lives.running_cluster import QUICK
from tests.scenarios.managed import Managed, managed

CHECK, RUN = True, False
WORKER, PLANE = "w-1", "cp-3"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    # The tests of this file go on from one another: one life of a cluster.
    with managed(tmp_path_factory.mktemp("drain") / "project", __name__) as found:
        yield found


def removal(world: Managed, host: str, *checks: bool, fails: bool = False, drain: float = 120.0, **more: Any) -> tuple[str, list[dict[str, Any]]]:
    name = world.cluster.names[host]
    run, found = world.run("talos_machine_removal", checks=checks, fails=fails, machine=name, confirm=name, timing={**QUICK, "drain": drain},
                           **world.project.records.options, **more)
    return run.output, found


def steps(result: dict[str, Any]) -> list[str]:
    return [step["action"] for step in result["plan"]]


def needs_reboot(world: Managed, rule: str) -> None:
    """A patch of the workers that Talos 1.13 takes only with a reboot."""
    world.cluster.module("talos_config_patch", name="rules", cluster="prod", layer="cluster", machine_selector={"role": "worker"},
                         documents=[{"machine": {"udev": {"rules": [rule]}}}])


def test_a_worker_is_drained_before_its_reboot_and_takes_pods_after_it(world: Managed) -> None:
    world.kubelets.run("team", "api-1", WORKER)
    world.kubelets.run("team", "agent", WORKER, owner="DaemonSet")
    world.kubelets.run("team", "by-hand", WORKER, owner="")
    needs_reboot(world, "one")
    since = world.mark()
    life = world.kept.life(("ApplyDrift", WORKER), ("Reboot", WORKER), drain=True)
    # The plan folds its lines.
    assert "Node w-1 is drained first (1 pod to go)" in " ".join(life.output.split()) and "team/by-hand" in life.output
    told = next(at for at, what in world.sent(life.mark) if what == f"Reboot {WORKER}")
    written = world.asked(since)
    assert [what for at, what in written if at < told] == [f"patch nodes {WORKER}", "create pods/eviction team/api-1"]
    assert [what for at, what in written if at > told] == [f"patch nodes {WORKER}"]
    node = world.kubelets.node(WORKER)
    assert "unschedulable" not in node["spec"] and "ichor" not in str(node["metadata"].get("annotations"))
    assert world.kubelets.pods(WORKER) == ["team/agent", "team/by-hand"]


def test_a_budget_that_allows_nothing_holds_the_reboot(world: Managed) -> None:
    world.kubelets.run("team", "api-2", WORKER, labels={"app": "api"})
    world.kubelets.budget("team", "api", {"app": "api"}, 0)
    needs_reboot(world, "two")
    mark = world.lab.mark()
    held = world.kept.run(drain=True, passes=3, until="time", timing={**QUICK, "drain": 1.0})
    assert held.result["blocked"] == [world.cluster.names[WORKER]]
    assert "team/api-2 (The disruption budget api needs 1 healthy pods" in str(held.result["refusals"]) and "Reboot" not in world.lab.writes(since=mark)
    assert "unschedulable" not in world.kubelets.node(WORKER)["spec"]
    world.server.stop()
    away = world.kept.run(drain=True, passes=2, until="time")
    assert away.result["blocked"] == [world.cluster.names[WORKER]] and {one["reason"] for one in away.result["refusals"]} == {"DrainRequired"}
    world.server.start()
    world.kubelets.budget("team", "api", {"app": "api"}, 1)
    life = world.kept.life(("Reboot", WORKER), drain=True)
    assert [what for dummy, what in world.sent(life.mark)] == [f"Reboot {WORKER}"] and world.kubelets.pods(WORKER) == ["team/agent", "team/by-hand"]


def test_a_budget_that_allows_nothing_ends_the_drain_with_nothing_reset(world: Managed) -> None:
    world.kubelets.run("shop", "web-1", WORKER, labels={"app": "web"})
    world.kubelets.run("shop", "own", WORKER, owner="DaemonSet")
    world.kubelets.budget("shop", "web", {"app": "web"}, 0)
    mark, since = world.lab.mark(), world.mark()
    output, (check,) = removal(world, WORKER, CHECK)
    assert steps(check) == ["DrainNode", "ResetMachine", "DeleteNode", "DeleteRecord"]
    assert "shop/web-1 (PodDisruptionBudget shop/web allows no disruption)" in output and world.asked(since) == []
    output, (run,) = removal(world, WORKER, RUN, fails=True, drain=1.5)
    assert run["reason"] == "DrainRequired" and "shop/web-1 (The disruption budget web needs 1 healthy pods" in run["msg"]
    assert world.sent(mark) == [] and world.kubelets.pods(WORKER) == ["shop/own", "shop/web-1", "team/agent"]
    assert "unschedulable" not in world.kubelets.node(WORKER)["spec"] and world.cluster.reason(WORKER, "Removal") == ""


def test_local_volumes_ask_for_a_word(world: Managed) -> None:
    world.kubelets.local_volume("shop", "data", WORKER)
    world.kubelets.run("shop", "db-0", WORKER, owner="StatefulSet", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    mark, since = world.lab.mark(), world.mark()
    dummy, found = removal(world, WORKER, CHECK, RUN, fails=True)
    for result in found:
        assert result["reason"] == "DataLossNotAccepted" and "shop/data of shop/db-0" in result["msg"] and "accept_data_loss" in result["msg"]
    assert world.sent(mark) == [] and world.asked(since) == []


def test_a_kubernetes_out_of_reach_stops_everything(world: Managed) -> None:
    world.server.stop()
    mark = world.lab.mark()
    dummy, found = removal(world, WORKER, CHECK, RUN, fails=True, accept_data_loss=True)
    assert {result["reason"] for result in found} == {"DrainRequired"} and "skip_drain: true" in found[0]["msg"]
    assert world.sent(mark) == []
    world.server.start()


def test_a_worker_is_evacuated_drained_reset_and_gone(world: Managed) -> None:
    world.kubelets.budget("shop", "web", {"app": "web"}, 1)
    mark, since = world.lab.mark(), world.mark()
    output, (check, run, again, last) = removal(world, WORKER, CHECK, RUN, CHECK, RUN, accept_data_loss=True)
    assert steps(check) == ["EvacuateStorage", "DrainNode", "ResetMachine", "DeleteNode", "DeleteRecord"]
    assert "shop/data of shop/db-0" in check["plan"][0]["why"] and "2 pods of Node w-1" in check["plan"][1]["why"]
    assert "Nobody makes these pods again" not in output
    assert [step["id"] for step in run["plan"]] == [step["id"] for step in check["plan"]] and run["changed"]
    assert (again["changed"], last["changed"], steps(last)) == (False, False, [])
    in_order(world, mark, since, WORKER, ["Reset w-1"], ["shop/db-0", "shop/web-1"])
    assert world.kubelets.node(WORKER) == {} and world.project.records.record("machines", world.cluster.names[WORKER]) is None
    # It comes back as pending.
    found = world.cluster.module("talos_discover", cluster="prod")
    assert [(step["action"], step["target"]) for step in found["plan"]] == [("CreateMachine", world.cluster.names.pop(WORKER))]


def test_a_control_plane_is_drained_before_it_leaves_etcd(world: Managed) -> None:
    world.cluster.module("talos_cluster", name="prod", control_planes=1)
    world.kubelets.run("shop", "api-1", PLANE)
    world.kubelets.run("kube-system", "kube-apiserver-cp-3", PLANE, owner="Node", annotations={"kubernetes.io/config.mirror": "x"})
    mark, since = world.lab.mark(), world.mark()
    dummy, (check, run, again, last) = removal(world, PLANE, CHECK, RUN, CHECK, RUN)
    assert steps(check) == ["DrainNode", "LeaveEtcd", "ResetMachine", "DeleteNode", "DeleteRecord"]
    assert [step["id"] for step in run["plan"]] == [step["id"] for step in check["plan"]] and not again["changed"] and not last["changed"]
    in_order(world, mark, since, PLANE, ["EtcdLeaveCluster cp-3", "Reset cp-3"], ["shop/api-1"])
    del world.cluster.names[PLANE]
    assert world.cluster.members() == {"cp-1": True, "cp-2": True}


def in_order(world: Managed, mark: int, since: int, host: str, calls: list[str], pods: list[str]) -> None:
    """Cordoned, evicted and gone, then marked, then what the node was told, then its Node deleted, as both logs have it."""
    written, sent = world.asked(since), world.sent(mark)
    assert [what for dummy, what in sent] == calls
    begins, ends = sent[0][0], sent[-1][0]
    before, after = [what for at, what in written if at < begins], [what for at, what in written if at > ends]
    assert before == [f"patch nodes {host}", *[f"create pods/eviction {pod}" for pod in pods], f"patch nodes {host}"], written
    assert after == [f"delete nodes {host}"], written
