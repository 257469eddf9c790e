# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A running cluster is adopted with what it has for a network, through the playbook: its Cilium, none, or another one (design section 15).

Nodes are the lab's, Kubernetes is a real API server, the chart is rendered by real helm."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

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
KEYS = f"{SYSTEM}/secrets/cilium-ca"
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
        return self.project.run("ichor.talos.adopt", "-e", json.dumps({name: value for name, value in options.items() if value is not None}), *more, rc=rc)

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

    @contextmanager
    def environment(self, **variables: str) -> Iterator[None]:
        before = dict(self.project.environment)
        self.project.environment.update(variables)
        yield
        self.project.environment.clear()
        self.project.environment.update(before)

    def recorded(self) -> dict[str, Any]:
        """spec.cni of the cluster's record, {} where there is none."""
        path = self.project.store / "clusters" / "prod.yaml"
        return dict(yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["cni"]) if path.exists() else {}

    def in_kubernetes(self) -> dict[str, Any]:
        """The same where the records are in the API server."""
        lists = self.kubernetes.api.request("GET", "/apis/ichor.maesh.dev/v1alpha1/namespaces/records/talosclusters")["items"]
        return next((dict(one["spec"]["cni"]) for one in cast("list[Any]", lists)), {})

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
    world.kubernetes.change(KEYS, {"data": {"more": base64.b64encode(b"hush of the cluster").decode()}})
    closed = world.refused("--check", "", ichor_cni="managed")
    assert closed["reason"] == "NetworkDiffers" and all(path in closed["msg"] for path in ("data.mine", "spec.template.spec.hostPID", "data.more"))
    mark, lab = world.kubernetes.mark(), world.running.lab.mark()
    check = world.run("--check", "--diff", ichor_cni="managed", ichor_accept_cilium_diff=True)
    assert check["Adopt"]["changed"] and "the one thing in an adoption that restarts anything" in check.output
    for place, path in (("ConfigMap kube-system/cilium-config", "data.mine"), ("DaemonSet kube-system/cilium", "spec.template.spec.hostPID"),
                        ("Secret kube-system/cilium-ca", "data.more")):
        assert place in check.output and path in check.output
    assert not [text for data in world.kubernetes.read(KEYS)["data"].values() for text in (data, base64.b64decode(data).decode()) if text in check.output]
    assert "PRIVATE KEY" not in check.output and world.kubernetes.written(mark) == []
    planned = {"ichor_cni": "managed", "ichor_plan_ids": {"adopt": check["Adopt"]["plan_id"]}}
    world.kubernetes.change(CONFIG, {"data": {"mine": "2"}})
    assert world.refused(**planned)["reason"] == "PlanChanged"
    world.kubernetes.change(CONFIG, {"data": {"mine": "1"}})
    # A plan that somebody has looked at is agreed to, without another word.
    ran = world.play(**planned)
    assert ran["plan_id"] == check["Adopt"]["plan_id"]
    assert sorted(world.kubernetes.written(mark)) == ["update configmaps/cilium-config", "update daemonsets/cilium", "update secrets/cilium-ca"]
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
    with world.environment(HELM_BIN="no-such-helm"):
        missing = world.refused(ichor_cni="managed")
    assert missing["reason"] == "HelmMissing" and "Install Helm 3" in missing["msg"]
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


def test_no_network_becomes_a_managed_one_once(world: World) -> None:
    world.kubernetes.node("cp-1")
    world.play()
    assert world.recorded() == {"preset": "none"} and world.refused_after("Immutable", ichor_cni="managed")
    mark = world.kubernetes.mark()
    install_it = {"ichor.talos.talos_cni": {"cluster": "prod", "cilium_chart": str(CHART)}}
    run = world.project.play("once", [
        {"name": "Before", **install_it, "ignore_errors": True},
        {"name": "Managed", "ichor.talos.talos_cluster": {"name": "prod", "cni": "managed", "cilium_values": {"debug": True}}},
        {"name": "Install", **install_it}, {"name": "Again", **install_it},
        *({"name": preset, "ichor.talos.talos_cluster": {"name": "prod", "cni": preset}, "ignore_errors": True} for preset in ("none", "unmanaged"))])
    assert "is not managed" in run["Before"]["msg"] and run["Install"]["changed"] and not run["Again"]["changed"]
    assert len(world.kubernetes.written(mark)) == 13 and run["none"]["reason"] == run["unmanaged"]["reason"] == "Immutable"
    assert world.recorded() == {"preset": "managed", "cilium": {"values": {"debug": True}}}
    assert not world.play(ichor_cni="managed")["changed"] and world.refused_after("Immutable", ichor_cni="unmanaged")


def test_the_same_with_records_in_kubernetes(world: World) -> None:
    install(world.kubernetes.server.kubeconfig, for_render({"debug": True}))
    world.kubernetes.change(CONFIG, {"data": {"mine": "1"}})
    mark = world.kubernetes.mark()
    with world.environment(ICHOR_STORE="kubernetes", ICHOR_STORE_KUBECONFIG=str(world.kubernetes.server.kubeconfig), ICHOR_STORE_NAMESPACE="records"):
        for mode in ("--check",), ():
            assert world.play(*mode, rc=2, ichor_store_path=None, ichor_cni="managed")["reason"] == "NetworkDiffers"
        assert world.kubernetes.written(mark) == [] and world.in_kubernetes() == {}
        world.play(ichor_store_path=None, ichor_cni="managed", ichor_accept_cilium_diff=True)
        assert world.kubernetes.written(mark) == ["update configmaps/cilium-config"]
        found = world.in_kubernetes()
        assert found["preset"] == "managed" and found["cilium"]["values"]["debug"] is True and "ipam" not in found["cilium"]["values"]
        assert not world.play(ichor_store_path=None, ichor_cni="managed")["changed"]
        assert world.refused_after("Immutable", ichor_store_path=None, ichor_cni="unmanaged")


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
