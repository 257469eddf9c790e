# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A running cluster is adopted with what it has for a network, through the playbook: its Cilium, none, or another one (design section 15).

Nodes are the lab's, Kubernetes is a real API server, the chart is rendered by real helm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render
from tests.lab.control import Lab
from tests.parts.build import build
from tests.parts.network_chart import CHART, NAMESPACE, install
from tests.scenarios.adopting import Running, configuration, named
from tests.scenarios.playing import Project, Run, network_of
from tests.unit._operations.network_world import SYSTEM, Kubernetes, kubernetes

CONFIG = f"{SYSTEM}/configmaps/cilium-config"
AGENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/cilium"
NO_FLANNEL = "cluster:\n  network:\n    cni:\n      name: none\n"
WAYS = ("leave it as it is (cni: unmanaged)", "make a new cluster", "plan an outage", "nobody has verified")


@dataclass
class World:
    """One control plane that runs without Talos's network, and the Kubernetes that its endpoint leads to."""

    running: Running
    kubernetes: Kubernetes
    project: Project

    def play(self, *more: str, rc: int | None = 0, **variables: Any) -> dict[str, Any]:
        """The result of the adoption."""
        return self.run(*more, rc=rc, **variables)["Adopt"]

    def run(self, *more: str, rc: int | None = 0, **variables: Any) -> Run:
        options = {"ichor_cluster": "prod", "ichor_addresses": list(self.running.addresses.values()), "ichor_talosconfig": str(self.running.path),
                   "ichor_store_path": str(self.project.store), "ichor_allow_loopback": True, "ichor_consent_class_b": True,
                   "ichor_kubernetes_version": "v1.36.3", "ichor_cilium_chart": str(CHART), **variables}
        return self.project.run("ichor.talos.adopt", "-e", json.dumps(options), *more, rc=rc)

    def refused(self, *modes: str, **variables: Any) -> dict[str, Any]:
        """The same, refused in each of these modes ('' is for real), with nothing written to Kubernetes and no record."""
        mark = self.kubernetes.mark()
        for mode in modes or ("",):
            found = self.play(*filter(None, (mode,)), rc=2, **variables)
            assert self.kubernetes.written(mark) == [] and self.recorded() == {}
        return found

    def refused_after(self, reason: str, **variables: Any) -> bool:
        """Whether a cluster that is adopted is refused for this, with nothing written."""
        mark = self.kubernetes.mark()
        return self.play(rc=2, **variables)["reason"] == reason and self.kubernetes.written(mark) == []

    def recorded(self) -> dict[str, Any]:
        """spec.cni of the cluster's record, {} where there is none."""
        path = self.project.store / "clusters" / "prod.yaml"
        return dict(yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["cni"]) if path.exists() else {}

    def forget(self) -> None:
        """As before the adoption: no store, no network."""
        shutil.rmtree(self.project.store, ignore_errors=True)
        self.kubernetes.clear()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("network")
    with kubernetes() as found, Lab.start({"nodes": {}}, speed=20) as lab:
        at = f"cluster:\n  controlPlane:\n    endpoint: {found.endpoint}\n"
        running = Running(lab, folder / "project", network_of(__name__), {"cp-1": configuration("1.13", "controlplane", named("cp-1"), NO_FLANNEL, at)})
        project = Project(folder / "project", environment={"HELM_BIN": str(build("helm-3.22"))})
        yield World(running.start(), found, project)


@pytest.fixture
def world(shared: World) -> World:
    shared.forget()
    return shared


def test_a_release_is_taken_over_through_the_gate_and_nothing_else_is_touched(world: World) -> None:
    install(world.kubernetes.server.kubeconfig, for_render({"debug": True}))
    world.kubernetes.change(CONFIG, {"data": {"mine": "1"}})
    world.kubernetes.change(AGENT, {"spec": {"template": {"spec": {"hostPID": True}}}})
    closed = world.refused("--check", "", ichor_cni="managed")
    assert closed["reason"] == "NetworkDiffers" and "data.mine" in closed["msg"] and "spec.template.spec.hostPID" in closed["msg"]
    mark, lab = world.kubernetes.mark(), world.running.lab.mark()
    check = world.run("--check", "--diff", ichor_cni="managed", ichor_accept_cilium_diff=True)
    assert check["Adopt"]["changed"] and "the one thing in an adoption that restarts anything" in check.output
    assert "DaemonSet kube-system/cilium" in check.output and "PRIVATE KEY" not in check.output and world.kubernetes.written(mark) == []
    ran = world.play(ichor_cni="managed", ichor_accept_cilium_diff=True)
    assert ran["plan_id"] == check["Adopt"]["plan_id"]
    assert sorted(world.kubernetes.written(mark)) == ["update configmaps/cilium-config", "update daemonsets/cilium"]
    assert world.recorded()["preset"] == "managed" and world.recorded()["cilium"]["values"]["debug"] is True
    assert world.running.ready("cp-1") == "Converged" and world.running.lab.writes(since=lab) == {}
    mark = world.kubernetes.mark()
    assert not world.play(ichor_cni="managed")["changed"] and not world.play()["changed"] and world.kubernetes.written(mark) == []
    assert world.refused_after("Immutable", ichor_cni="unmanaged")


def test_without_values_those_that_are_brought(world: World) -> None:
    world.kubernetes.apply({"debug": True})
    assert "data.debug" in world.refused(ichor_cni="managed")["msg"]
    mark = world.kubernetes.mark()
    found = world.play(ichor_cni="managed", ichor_cilium_values={"debug": True})
    assert found["network"]["objects"] == [] and world.kubernetes.written(mark) == []
    assert world.recorded() == {"preset": "managed", "cilium": {"values": {"debug": True}}}


def test_what_is_refused(world: World) -> None:
    install(world.kubernetes.server.kubeconfig, for_render({"debug": True}))
    assert "two sources" in world.refused(ichor_cni="managed", ichor_cilium_values={"debug": True})["msg"]
    assert "ipam.mode" in world.refused(ichor_cni="managed", ichor_cilium_values={"ipam": {"mode": "kubernetes"}})["msg"]
    assert "not to be managed" in world.refused(ichor_cni="unmanaged", ichor_cilium_values={"debug": True})["msg"]
    world.forget()
    install(world.kubernetes.server.kubeconfig, {"debug": True})
    assert "would renumber the pods" in world.refused(ichor_cni="managed")["msg"]


def test_a_cluster_without_a_network_gets_one_first(world: World) -> None:
    world.kubernetes.node("cp-1")
    mark = world.kubernetes.mark()
    check = world.play("--check", ichor_cni="managed", ichor_cilium_values={"debug": True})
    assert world.kubernetes.written(mark) == [] and [step["action"] for step in check["plan"]][0] == "CreateObject"
    ran = world.play(ichor_cni="managed", ichor_cilium_values={"debug": True})
    assert ran["plan_id"] == check["plan_id"] and len(world.kubernetes.written(mark)) == 13
    assert world.recorded() == {"preset": "managed", "cilium": {"values": {"debug": True}}} and world.running.ready("cp-1") == "Converged"
    assert not world.play(ichor_cni="managed")["changed"]


@pytest.mark.parametrize(("name", "labels", "image"), [("kube-flannel", {"k8s-app": "flannel"}, "ghcr.io/siderolabs/flannel:v0.27.4"),
                                                       ("calico-node", {"k8s-app": "calico-node"}, "quay.io/calico/node:v3.30.0")])
def test_another_network_is_only_left_as_it_is(world: World, name: str, labels: dict[str, str], image: str) -> None:
    volume = {"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}
    template: Any = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}], "volumes": [volume]}}
    world.kubernetes.api.request("POST", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}})
    said = world.refused(ichor_cni="managed")
    assert said["reason"] == "NetworkForeign" and "renumber the pods" in said["msg"] and all(way in said["msg"] for way in WAYS)
    mark = world.kubernetes.mark()
    world.play(ichor_cni="unmanaged")
    assert world.recorded() == {"preset": "unmanaged"} and world.running.ready("cp-1") == "Converged" and world.kubernetes.written(mark) == []
    assert world.refused_after("Immutable", ichor_cni="managed")
