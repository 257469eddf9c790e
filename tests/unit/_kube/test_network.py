# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which DaemonSets make a cluster's network, against a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni import network_of
from ansible_collections.ichor.talos.plugins.module_utils._kube.network import look
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown

from tests.parts.network_chart import NAMESPACE, release_secret
from tests.unit._operations.network_world import SYSTEM, Kubernetes, kubernetes

SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"


@pytest.fixture(scope="module")
def server() -> Iterator[Kubernetes]:
    with kubernetes() as found:
        yield found


@pytest.fixture
def cluster(server: Kubernetes) -> Kubernetes:
    server.clear()
    return server


def run(cluster: Kubernetes, name: str, image: str, folder: str = "/etc/cni/net.d", labels: dict[str, str] | None = None, **metadata: Any) -> None:
    marks = labels or {"app": name}
    template: Any = {"metadata": {"labels": marks}, "spec": {"containers": [{"name": "main", "image": image}],
                                                             "volumes": [{"name": "folder", "hostPath": {"path": folder}}]}}
    cluster.api.request("POST", SETS, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "labels": marks, **metadata},
                                       "spec": {"selector": {"matchLabels": marks}, "template": template}})


@pytest.mark.parametrize(("name", "image", "folder", "kind"), [
    ("cilium", "quay.io/cilium/cilium:v1.18.0", "/etc/cni/net.d", "cilium"),
    ("kube-flannel", "ghcr.io/siderolabs/flannel:v0.27.4", "/etc/cni/net.d/", "flannel"),
    ("kube-flannel-ds", "flannel/flannel:v0.27", "/run/flannel", "flannel"), ("calico-node", "quay.io/calico/node:v3.30", "/etc/cni/net.d", "calico"),
    ("antrea-agent", "antrea/antrea-agent-ubuntu:v2.4.0", "/var/run/antrea", "other"), ("own", "registry.example.org/net:1", "/etc/cni/net.d", "other"),
    ("kube-multus-ds", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4", "/etc/cni/net.d", "nothing"),
    ("istio-cni-node", "docker.io/istio/install-cni:1.27", "/etc/cni/net.d", "nothing"),
    ("cilium-envoy", "quay.io/cilium/cilium-envoy:v1.34", "/var/run/cilium/envoy", "nothing"),
    ("kube-proxy", "registry.k8s.io/kube-proxy:v1.36.3", "/lib/modules", "nothing")])
def test_what_makes_a_network(cluster: Kubernetes, name: str, image: str, folder: str, kind: str) -> None:
    run(cluster, name, image, folder)
    cluster.node("cp-1")
    found = look(cluster.api)
    assert network_of(found).kind == kind and found.proxy == (name == "kube-proxy") and found.kubernetes == "v1.36.3"


def test_nodes_with_and_without_a_network(cluster: Kubernetes) -> None:
    assert network_of(look(cluster.api)).kind == "nothing"
    cluster.node("cp-1")
    cluster.node("w-1", "Unknown", "Kubelet stopped posting node status.")
    cluster.node("w-2", "False", "container runtime is down")
    found = look(cluster.api)
    assert (found.waiting, found.ready, found.silent) == (("cp-1",), (), ("w-1", "w-2")) and network_of(found).kind == "nothing"
    cluster.node("cp-1", "True", "kubelet is posting ready status")
    assert look(cluster.api).ready == ("cp-1",) and network_of(look(cluster.api)).kind == "untold"


def test_the_newest_revision_of_the_release_and_how_pods_are_numbered(cluster: Kubernetes) -> None:
    run(cluster, "cilium", "quay.io/cilium/cilium:v1.18.0", labels={"k8s-app": "cilium"},
        annotations={"meta.helm.sh/release-name": "cilium", "meta.helm.sh/release-namespace": NAMESPACE})
    found = look(cluster.api)
    assert (found.release, found.ipam) == (Absent(), Absent())
    for revision in (9, 10, 8):
        cluster.api.request("POST", f"{SYSTEM}/secrets", {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", **release_secret(
            {"name": "cilium", "namespace": NAMESPACE, "version": revision, "info": {"status": "deployed"}, "config": {"n": revision}}, revision)})
    cluster.api.request("POST", f"{SYSTEM}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cilium-config"},
                                                         "data": {"ipam": "cluster-pool"}})
    found = look(cluster.api)
    assert isinstance(found.release, Present) and found.release.value.values == {"n": 10} and found.ipam == Present("cluster-pool")
    cluster.api.request("POST", f"{SYSTEM}/secrets", {"apiVersion": "v1", "kind": "Secret", **release_secret([], 11)})
    assert isinstance(look(cluster.api).release, Unknown)
