# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The managed network of a cluster against a real API server and real helm: what is no difference, what is changed, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import AdoptSeen, AdoptWish
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import ChangeObject, CniWish
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.adopt_network import with_network
from ansible_collections.ichor.talos.plugins.module_utils._operations.cni import Request, run

from tests.machinery.adoptions import node
from tests.parts.build import build
from tests.parts.network_chart import NAMESPACE, install, release_secret
from tests.scenarios.adopting import configuration
from tests.unit._operations.network_world import LOCAL, SYSTEM, Kubernetes, kubernetes, ports_of

CONFIG = f"{SYSTEM}/configmaps/cilium-config"
AGENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/cilium"
WISH = CniWish("managed", chart=LOCAL)
ALL = 13
NO_FLANNEL = "cluster:\n  network:\n    cni:\n      name: none\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Kubernetes]:
    with kubernetes() as found:
        yield found


@pytest.fixture
def cluster(server: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    monkeypatch.setenv("HELM_BIN", str(build("helm-3.22")))
    server.clear()
    return server


def granted(plan: Plan) -> Plan:
    return plan


def nothing(plan: Plan) -> Plan:
    return Plan(refusals=plan.refusals, warnings=plan.warnings)


def went(ports: Ports, **wish: Any) -> Outcome:
    return asyncio.run(run(Request("prod", replace(WISH, **wish), wait=0.0), ports, nothing if ports.check else granted))


def test_what_helm_installed_is_no_difference(cluster: Kubernetes, tmp_path: Path) -> None:
    install(cluster.server.kubeconfig, for_render({"resources": {"limits": {"memory": "1024Mi", "cpu": 1.5}}}))
    ports = ports_of(tmp_path, cluster, values={"resources": {"limits": {"memory": "1024Mi", "cpu": 1.5}}})
    mark = cluster.mark()
    found = went(ports)
    assert (found.plan, found.refused, found.message) == (Plan(), False, "The network is as its record says.") and cluster.written(mark) == []


def test_a_missing_network_is_installed_once(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.node("cp-1")
    mark = cluster.mark()
    shown = went(ports_of(tmp_path, cluster, values={"debug": True}, check=True))
    assert cluster.written(mark) == [] and len(shown.plan.steps) == ALL
    ports = ports_of(tmp_path, cluster)
    found = went(ports)
    assert found.plan.id == shown.plan.id and len(found.executed) == ALL and {step.action for step in found.plan.steps} == {"CreateObject"}
    assert len(cluster.written(mark)) == ALL and all(line.startswith("create ") for line in cluster.written(mark))
    assert cluster.read(CONFIG)["data"]["debug"] == "true" and cluster.read(CONFIG)["data"]["ipam"] == "kubernetes"
    mark = cluster.mark()
    assert went(ports).plan == Plan() and cluster.written(mark) == []
    lease = ports.store.leases.read("prod") if ports.store is not None else None
    assert lease is None or not lease.holder


@pytest.mark.parametrize("done", [0, 1, 5, 8, 12])
def test_an_installation_that_ended_early_goes_on(cluster: Kubernetes, tmp_path: Path, done: int) -> None:
    cluster.node("cp-1")
    ports = ports_of(tmp_path, cluster)
    asyncio.run(run(Request("prod", WISH), ports, lambda plan: replace(plan, steps=plan.steps[:done])))
    mark = cluster.mark()
    found = went(ports_of(tmp_path, cluster, holder="run-2"))
    assert not found.refused and len(cluster.written(mark)) == len(found.executed)
    assert went(ports).plan == Plan() and cluster.read(AGENT)["metadata"]["name"] == "cilium"


def test_before_the_bootstrap_a_check_run_shows_what_would_be_installed(cluster: Kubernetes, tmp_path: Path) -> None:
    ports = ports_of(tmp_path, cluster, bootstrapped=False, check=True)
    mark = cluster.mark()
    found = went(ports)
    assert len(found.plan.steps) == ALL and found.waiting_for == ("its Kubernetes answers",) and cluster.written(mark) == []
    cluster.node("cp-1")
    assert went(ports_of(tmp_path, cluster)).plan.id == found.plan.id


def test_what_somebody_changed_is_shown_and_put_right_only_when_it_is_accepted(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.apply({})
    cluster.change(CONFIG, {"data": {"debug": "true", "mine": "1"}})
    cluster.change(AGENT, {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}, "spec": {"hostPID": True}}}})
    cluster.change(f"{SYSTEM}/secrets/cilium-ca", {"metadata": {"labels": {"mine": "1"}}})
    ports = ports_of(tmp_path, cluster)
    mark = cluster.mark()
    closed = went(ports)
    assert closed.refused and closed.reason == "NetworkDiffers" and cluster.written(mark) == []
    assert {(entry.header, tuple(sorted({**_keys(entry.before), **_keys(entry.after)}))) for entry in closed.differences} == {
        ("ConfigMap kube-system/cilium-config", ("data.debug", "data.mine")), ("DaemonSet kube-system/cilium", ("spec.template.spec.hostPID",)),
        ("Secret kube-system/cilium-ca", ("metadata.labels",))}
    shown = went(ports_of(tmp_path, cluster, check=True), accept=True)
    assert not shown.refused and any("restarts anything" in warning.message for warning in shown.plan.warnings) and cluster.written(mark) == []
    found = went(ports, accept=True)
    assert found.plan.id == shown.plan.id and sorted(cluster.written(mark)) == [
        "update configmaps/cilium-config", "update daemonsets/cilium", "update secrets/cilium-ca"]
    assert "mine" not in cluster.read(CONFIG)["data"] and "hostPID" not in cluster.read(AGENT)["spec"]["template"]["spec"]
    assert cluster.read(AGENT)["spec"]["template"]["metadata"]["annotations"] == {"kubectl.kubernetes.io/restartedAt": "now"}
    mark = cluster.mark()
    assert went(ports).plan == Plan() and cluster.written(mark) == []


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_a_takeover_that_ended_early_goes_on(cluster: Kubernetes, tmp_path: Path, done: int) -> None:
    install(cluster.server.kubeconfig, for_render({"debug": True}))
    cluster.change(CONFIG, {"data": {"mine": "1"}})
    cluster.change(AGENT, {"spec": {"template": {"spec": {"hostPID": True}}}})
    cluster.api.request("DELETE", f"{SYSTEM}/services/hubble-peer", {"apiVersion": "v1", "kind": "DeleteOptions"})
    ports = ports_of(tmp_path, cluster, values={"debug": True})
    asyncio.run(run(Request("prod", replace(WISH, accept=True)), ports, lambda plan: replace(plan, steps=plan.steps[:done])))
    assert len(went(ports, accept=True).executed) == 3 - done
    assert went(ports).plan == Plan() and "mine" not in cluster.read(CONFIG)["data"]


def test_another_run_that_holds_the_lock_is_left_alone(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.node("cp-1")
    ports = ports_of(tmp_path, cluster)
    assert ports.store is not None
    lease = ports.store.leases.acquire("prod", "somebody", "a bootstrap", 60.0)
    mark = cluster.mark()
    with pytest.raises(TalosError) as caught:
        asyncio.run(run(Request("prod", WISH, timing=Timing(lock_wait=0.0)), ports, granted))
    assert caught.value.reason == "LockHeld" and "somebody" in caught.value.text and cluster.written(mark) == []
    ports.store.leases.release(lease)


def _keys(found: Any) -> dict[str, Any]:
    return dict(found) if isinstance(found, dict) else {}


def test_an_object_that_is_changed_between_plan_and_run_is_refused(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.apply({})
    cluster.change(CONFIG, {"data": {"debug": "true"}})
    ports = ports_of(tmp_path, cluster)

    def meanwhile(plan: Plan) -> Plan:
        assert [type(step) for step in plan.steps] == [ChangeObject]
        cluster.change(CONFIG, {"data": {"by": "hand"}})
        return plan

    mark = cluster.mark()
    with pytest.raises(TalosError) as caught:
        asyncio.run(run(Request("prod", replace(WISH, accept=True)), ports, meanwhile))
    assert caught.value.reason == "RecordChanged" and "cilium-config" in caught.value.message and cluster.written(mark) == []


def test_a_status_that_is_written_meanwhile_is_nobody_s_change(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.apply({})
    cluster.change(AGENT, {"spec": {"revisionHistoryLimit": 3}})

    def meanwhile(plan: Plan) -> Plan:
        cluster.api.request("PATCH", f"{AGENT}/status", {"status": {"numberReady": 2, "currentNumberScheduled": 2, "desiredNumberScheduled": 2,
                                                                    "numberMisscheduled": 0}}, content_type="application/merge-patch+json")
        return plan

    found = asyncio.run(run(Request("prod", replace(WISH, accept=True)), ports_of(tmp_path, cluster), meanwhile))
    assert len(found.executed) == 1 and cluster.read(AGENT)["spec"]["revisionHistoryLimit"] == 10 and cluster.read(AGENT)["status"]["numberReady"] == 2


def test_nothing_is_written_in_check_mode(cluster: Kubernetes, tmp_path: Path) -> None:
    ports = ports_of(tmp_path, cluster, check=True)
    with pytest.raises(CheckModeWrite):
        asyncio.run(run(Request("prod", WISH), ports, granted))
    assert cluster.read(CONFIG) == {}


def test_a_network_that_is_not_managed_is_none_of_its_business(cluster: Kubernetes, tmp_path: Path) -> None:
    found = went(ports_of(tmp_path, cluster, preset="unmanaged"))
    assert found.refused and found.plan.refusals[0].rule == "15/cni-not-managed"


def adopt(cluster: Kubernetes, folder: Path, *, patches: tuple[str, ...] = (NO_FLANNEL,), **wish: Any) -> tuple[Plan, Any]:
    """What adopting a cluster of one control plane comes to, by the bundle that its API server knows."""
    live = node(_at(configuration("1.13", "controlplane", *patches), cluster.endpoint), "controlplane", "1.13")
    adopting = AdoptWish("prod", (live.address,), consent=True, actor=Actor("ada", "ada"), kubernetes_version="v1.36.3")
    seen = AdoptSeen(nodes=((live.address, Present(live)),))
    found, dummy = asyncio.run(with_network(replace(WISH, **wish), adopting, seen, ports_of(folder, cluster)))
    return found.plan, found.cluster.spec["cni"] if found.cluster is not None else None


def _at(text: str, endpoint: str) -> str:
    """The configuration of a cluster at that endpoint."""
    lines = [f"{line.split('endpoint:')[0]}endpoint: {endpoint}" if line.strip().startswith("endpoint: https://") else line for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def test_a_release_is_taken_over_with_its_values(cluster: Kubernetes, tmp_path: Path) -> None:
    install(cluster.server.kubeconfig, for_render({"debug": True}))
    plan, recorded = adopt(cluster, tmp_path)
    assert plan.refusals == () and {step.action for step in plan.steps} == {"StoreSecrets", "AdoptCluster", "AdoptPatch", "AdoptMachine", "ReleaseMachine"}
    assert recorded["preset"] == "managed" and recorded["cilium"]["values"]["debug"] is True and "ipam" not in recorded["cilium"]["values"]
    cluster.change(CONFIG, {"data": {"debug": "false"}})
    actions = [step.action for step in adopt(cluster, tmp_path, accept=True)[0].steps]
    assert actions.index("AdoptMachine") < actions.index("ChangeObject") < actions.index("ReleaseMachine")
    assert [one.rule for one in adopt(cluster, tmp_path)[0].refusals] == ["15/cni-diff"]


def release_of_another(cluster: Kubernetes, record: object) -> None:
    """What somebody, or something, made of Helm's record."""
    name = "sh.helm.release.v1.cilium.v1"
    cluster.change(f"{SYSTEM}/secrets/{name}", {"data": {"release": record if isinstance(record, str) else release_secret(record)["data"]["release"]}})


@pytest.mark.parametrize(("record", "rule", "says"), [
    ("bm8gZ3ppcA==", "release-unread", "is not understood"), ({"info": {"status": "deployed"}, "chart": {"metadata": {"name": "umbrella", "version": "7.0.0"}},
                                                               "config": {"cilium": {"debug": True}}}, "other-chart", "is of the chart umbrella"),
    ({}, "release-unsettled", "is unknown"), ({"info": {"status": "pending-upgrade"}, "version": 4, "chart": {"metadata": {"name": "cilium"}}},
                                              "release-unsettled", "pending-upgrade"), ([1], "release-unread", "holds no release")])
def test_a_release_that_is_broken_or_of_another_chart_is_refused(cluster: Kubernetes, tmp_path: Path, record: Any, rule: str, says: str) -> None:
    install(cluster.server.kubeconfig, for_render({"debug": True}))
    release_of_another(cluster, record)
    mark = cluster.mark()
    plan, dummy = adopt(cluster, tmp_path, chart=None)
    assert [one.rule for one in plan.refusals] == [f"15/cni-{rule}"] and says in plan.refusals[0].message and plan.steps == ()
    assert cluster.written(mark) == []


def test_a_release_that_is_kept_elsewhere_is_refused_by_name_until_its_values_are_brought(cluster: Kubernetes, tmp_path: Path) -> None:
    install(cluster.server.kubeconfig, for_render({"debug": True}))
    kept = cluster.read(f"{SYSTEM}/secrets/sh.helm.release.v1.cilium.v1")
    if cluster.api.get("/api/v1/namespaces/flux-system") is None:
        cluster.api.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})
    cluster.api.request("POST", "/api/v1/namespaces/flux-system/secrets", {
        **kept, "metadata": {"name": kept["metadata"]["name"], "labels": kept["metadata"]["labels"]}})
    cluster._delete(f"{SYSTEM}/secrets/sh.helm.release.v1.cilium.v1")
    plan, dummy = adopt(cluster, tmp_path, accept=True)
    assert [one.rule for one in plan.refusals] == ["15/cni-release-elsewhere"] and plan.steps == ()
    assert "its record is in namespace flux-system" in plan.refusals[0].message and "helm get values cilium -n flux-system" in plan.refusals[0].hint
    assert adopt(cluster, tmp_path, values={"debug": True})[0].refusals == ()
    cluster._delete("/api/v1/namespaces/flux-system/secrets/sh.helm.release.v1.cilium.v1")
    assert "no record of it is in namespace kube-system" in adopt(cluster, tmp_path, accept=True)[0].refusals[0].message


def test_a_network_that_is_missing_comes_before_the_records(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.node("cp-1")
    plan, recorded = adopt(cluster, tmp_path, values={"debug": True})
    actions = [step.action for step in plan.steps]
    assert plan.refusals == () and actions[:ALL] == ["CreateObject"] * ALL and "AdoptCluster" in actions[ALL:]
    assert recorded == {"preset": "managed", "cilium": {"values": {"debug": True}}}


def test_what_is_refused_writes_nothing(cluster: Kubernetes, tmp_path: Path) -> None:
    cluster.node("cp-1", "True", "kubelet is posting ready status")
    plan, dummy = adopt(cluster, tmp_path)
    assert plan.steps == () and plan.refusals[0].rule == "15/cni-untold"
    plan, recorded = adopt(cluster, tmp_path, preset="unmanaged")
    assert plan.refusals == () and recorded == {"preset": "unmanaged"}
    assert adopt(cluster, tmp_path, preset="unmanaged", values={})[0].refusals[0].rule == "15/cni-values-unmanaged"
    cluster.node("cp-1")
    assert adopt(cluster, tmp_path, patches=())[0].refusals[0].rule == "15/cni-comes-back"
