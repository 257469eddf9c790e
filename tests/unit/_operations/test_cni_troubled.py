# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network of a cluster whose API server is slow, drops connections, is busy, refuses, or has just come up: a clear reason, and nothing changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import CniWish
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart, KubeAccess
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Json, JsonMap
from ansible_collections.ichor.talos.plugins.module_utils._operations import cni, kube_networks
from ansible_collections.ichor.talos.plugins.module_utils._operations.kube_networks import KubeNetworks

from tests.parts.network_chart import rendered
from tests.parts.proxy import Fault, Proxy, proxied
from tests.unit._operations.network_world import SYSTEM, Kubernetes, kubernetes, ports_of

CONFIG = f"{SYSTEM}/configmaps/cilium-config"
CUT: Fault = None
FAULTS: tuple[tuple[Fault, str], ...] = (
    (CUT, "TimedOut"), ((503, "ServiceUnavailable", {}), "CallFailed"), ((429, "TooManyRequests", {}), "CallFailed"),
    ((403, "Forbidden", {}), "PermissionDenied"))
#: Parts of the paths that are read, in their order: what is there, then the objects.
READS = ("/apis/apps/v1/daemonsets", f"{SYSTEM}/secrets?", CONFIG, "/api/v1/nodes", "/version", "/apis/policy/v1", "/deployments/cilium-operator")


class Rendered(KubeNetworks):
    """A chart that was rendered before: helm has its own tests."""

    objects: Sequence[dict[str, Json]] = ()

    async def render(self, chart: Chart, values: JsonMap, kubernetes: str, apis: Sequence[str] = ()) -> tuple[dict[str, Json], ...]:
        return tuple(self.objects)


class Hurried(SystemClock):
    """What is waited for between two looks happens at once."""

    def __init__(self, *happens: Any) -> None:
        super().__init__()
        self.happens = list(happens)

    async def sleep(self, seconds: float) -> None:
        if seconds == cni._AGAIN:
            self.happens.pop(0)()
        else:
            await super().sleep(seconds)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Kubernetes, Proxy]]:
    with kubernetes() as found, proxied(found.server) as proxy:
        Rendered.objects = rendered(for_render({}))
        yield found, proxy


@pytest.fixture
def cluster(server: tuple[Kubernetes, Proxy], monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    found, proxy = server
    proxy.fault = lambda method, path: False
    monkeypatch.setattr(kube_networks, "_BUSY", 0.0)
    monkeypatch.setattr(cni, "access_from", lambda *dummy: KubeAccess("prod", proxy.kubeconfig()))
    found.clear()
    return found


@pytest.fixture
def proxy(server: tuple[Kubernetes, Proxy]) -> Proxy:
    return server[1]


def came_to(folder: Path, found: Kubernetes, clock: SystemClock | None = None, wait: float = 0.0, check: bool = False) -> str:
    """The reason that a run comes to, '' for none."""
    ports = replace(ports_of(folder, found, check=check), networks=Rendered(check), clock=clock or SystemClock())
    try:
        request = cni.Request("prod", CniWish("managed", accept=True), wait=wait)
        return asyncio.run(cni.run(request, ports, (lambda plan: Plan(refusals=plan.refusals)) if check else lambda plan: plan)).reason
    except TalosError as error:
        assert error.message.endswith(".") and error.hint
        return error.reason
    finally:
        free(ports)


def free(ports: Ports) -> None:
    lease = ports.store.leases.read("prod") if ports.store is not None else None
    assert lease is None or not lease.holder


def versions(found: Kubernetes) -> list[str]:
    """Of everything that a run might change, '' for what is not there."""
    return [str(getattr(one.now, "value", {}).get("metadata", {}).get("resourceVersion", "")) for one in found.objects().live(Rendered.objects)]


def changed_by_hand(found: Kubernetes) -> None:
    objects = found.objects()
    for one in objects.live(Rendered.objects):
        objects.create(one.wanted)
    found.change(CONFIG, {"data": {"mine": "1"}})


def test_whatever_is_read_and_however_it_fails_nothing_is_written(cluster: Kubernetes, proxy: Proxy, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    changed_by_hand(cluster)
    proxy.seen.clear()
    cases = [(part, CUT, "TimedOut") for part in READS] + [(part, *fault) for part in (READS[0], READS[-1]) for fault in FAULTS[1:]]
    for part, fault, reason in cases:
        proxy.fault = lambda method, path, part=part, fault=fault: fault if part in path else False  # type: ignore[misc]
        assert (part, fault, came_to(tmp_path, cluster)) == (part, fault, reason)
    over = threading.Event()
    monkeypatch.setattr(kube_networks, "_ANSWER", 0.5)
    for part in (READS[0], READS[-1]):
        proxy.fault = lambda method, path, part=part: None if part in path and over.wait(60) else False  # type: ignore[misc]
        assert came_to(tmp_path, cluster) == "TimedOut"
    over.set()
    assert {method for method, dummy in proxy.seen} == {"GET"}


def test_an_api_server_that_is_busy_for_a_moment_is_waited_for(cluster: Kubernetes, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_by_hand(cluster)
    busy: list[Fault] = [(503, "ServiceUnavailable", {}), (429, "TooManyRequests", {"Retry-After": "0"})]
    left = {(method, part): list(busy) for method, part in (("GET", "/daemonsets"), ("GET", "/version"), ("GET", "/apis/apps/v1"), ("GET", CONFIG))}
    left["PUT", CONFIG] = busy[1:]

    def failing(method: str, path: str) -> Fault:
        faults = next((faults for (one, part), faults in left.items() if one == method and part in path and faults), None)
        return faults.pop() if faults else False

    proxy.fault = failing
    monkeypatch.setattr(kube_networks, "_BUSY", 600.0)
    assert came_to(tmp_path, cluster) == "" and not any(left.values()) and "mine" not in cluster.read(CONFIG)["data"]
    proxy.fault = lambda method, path: False
    assert came_to(tmp_path, cluster) == ""


def test_a_write_that_fails_is_told_and_the_next_run_goes_on(cluster: Kubernetes, proxy: Proxy, tmp_path: Path) -> None:
    changed_by_hand(cluster)
    before = versions(cluster)
    for fault, reason in (*FAULTS, ((409, "Conflict", {}), "RecordChanged")):
        proxy.fault = lambda method, path, fault=fault: fault if method == "PUT" else False  # type: ignore[misc]
        assert came_to(tmp_path, cluster) == reason
    assert versions(cluster) == before
    proxy.fault = lambda method, path: False
    assert came_to(tmp_path, cluster) == "" and "mine" not in cluster.read(CONFIG)["data"]
    assert [now != old for now, old in zip(versions(cluster), before)].count(True) == 1


def test_an_installation_whose_connection_is_cut_in_the_middle_goes_on(cluster: Kubernetes, proxy: Proxy, tmp_path: Path) -> None:
    cluster.node("cp-1")
    proxy.once(None, "POST", part="/daemonsets")
    assert came_to(tmp_path, cluster) == "TimedOut" and 0 < [version != "" for version in versions(cluster)].count(True) < len(Rendered.objects)
    assert came_to(tmp_path, cluster) == "" and all(versions(cluster))


def test_a_kind_that_the_cluster_does_not_know_is_refused_before_anything_is_written(cluster: Kubernetes, tmp_path: Path,
                                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.node("cp-1")
    monitor: dict[str, Any] = {"apiVersion": "monitoring.example.org/v1", "kind": "Monitor", "metadata": {"name": "cilium"}}
    monkeypatch.setattr(Rendered, "objects", [*Rendered.objects, monitor])
    before = versions(cluster)
    assert came_to(tmp_path, cluster) == "ChartInvalid" and versions(cluster) == before


def test_a_definition_and_an_object_of_it_come_in_one_run(cluster: Kubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.node("cp-1")
    definition: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pools.network.example.org"},
        "spec": {"group": "network.example.org", "scope": "Cluster", "names": {"plural": "pools", "kind": "Pool"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    pool: dict[str, Any] = {"apiVersion": "network.example.org/v1", "kind": "Pool", "metadata": {"name": "default"}}
    monkeypatch.setattr(Rendered, "objects", [definition, *Rendered.objects, pool])
    assert came_to(tmp_path, cluster) == "" and cluster.read("/apis/network.example.org/v1/pools/default")


def test_a_cluster_that_has_just_come_up_is_waited_for(cluster: Kubernetes, proxy: Proxy, tmp_path: Path) -> None:
    """First its load balancer has nobody behind it, then nothing answers, then a Node has joined and its kubelet has not looked yet."""
    def fail(fault: Fault) -> None:
        proxy.fault = lambda method, path: fault

    cluster.node("cp-1", "Unknown", "it has not said anything")
    fail((503, "", {}))
    assert came_to(tmp_path, cluster, check=True) == "CallFailed"
    clock = Hurried(lambda: fail(None), lambda: fail(False), lambda: cluster.node("cp-1"))
    assert came_to(tmp_path, cluster, clock, wait=600.0) == "" and clock.happens == [] and all(versions(cluster))
    cluster.clear()
    cluster.node("cp-1", "True", "kubelet is posting ready status")
    assert came_to(tmp_path, cluster, Hurried(), wait=600.0) == "NetworkUnknown"
