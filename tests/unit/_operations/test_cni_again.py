# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The managed network of a cluster looked at once more, with charts of another shape: real helm, a real API server, and what that does by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_words import CniWish, chart_of
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._operations.cni import Request, run

from tests.parts.build import build
from tests.parts.network_chart import CHART, NAMESPACE, helm
from tests.scenarios.playing import wait_for
from tests.unit._operations.network_world import SYSTEM, Kubernetes, kubernetes, ports_of

CONFIG, ASKED = f"{SYSTEM}/configmaps/cilium-config", f"{SYSTEM}/configmaps/asked"
AGENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/cilium"
POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
POOL: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pools.network.example.org"},
    "spec": {"group": "network.example.org", "scope": "Cluster", "names": {"plural": "pools", "kind": "Pool"}, "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"size": {"type": "integer", "default": 3}, "name": {"type": "string"}}}}}}}]}}
QUESTIONS = {"core": "v1/Pod", "kind": "apps/v1/DaemonSet", "defined": "network.example.org/v1/Pool", "group": "network.example.org/v1",
             "unknown": "nowhere.example.org/v1", "unknown-kind": "apps/v1/Nothing"}


@pytest.fixture(scope="module")
def server() -> Iterator[Kubernetes]:
    with kubernetes() as found:
        yield found


@pytest.fixture
def cluster(server: Kubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    monkeypatch.setenv("HELM_BIN", str(build("helm-3.22")))
    monkeypatch.setenv("HELM_CACHE_HOME", str(tmp_path / "helm"))
    server.clear()
    return server


@pytest.fixture
def defined(cluster: Kubernetes) -> Iterator[Kubernetes]:
    """With a kind whose objects the API server fills in."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.api.request("POST", path, POOL)
    wait_for(lambda: "network.example.org/v1/Pool" in "".join(_kinds(cluster)), "the kind")
    yield cluster
    cluster._delete(f"{path}/pools.network.example.org")
    cluster._delete(ASKED)


def _kinds(cluster: Kubernetes) -> list[str]:
    groups: Any = cluster.api.request("GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")["items"]
    return [f"{group['metadata']['name']}/{version['version']}/{one['responseKind']['kind']}"
            for group in groups for version in group["versions"] for one in version.get("resources", ())]


def went(folder: Path, cluster: Kubernetes, chart: Chart | None, check: bool = False, **wish: Any) -> Outcome:
    ports = ports_of(folder, cluster, check=check)
    wanted = replace(CniWish("managed", chart=chart), **wish)
    return asyncio.run(run(Request("prod", wanted, wait=0.0), ports, (lambda plan: Plan(refusals=plan.refusals)) if check else lambda plan: plan))


def chart_in(folder: Path, version: str = "1.18.0", **templates: str) -> Path:
    """A chart like the one of the tests, in that version, with more templates."""
    copytree(CHART, folder)
    told = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
    (folder / "Chart.yaml").write_text(yaml.safe_dump({**told, "version": version, "appVersion": version}), encoding="utf-8")
    values = yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8"))
    (folder / "values.yaml").write_text(yaml.safe_dump({**values, "image": f"example.org/cilium/cilium:v{version}"}), encoding="utf-8")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """The URL of one that has three versions of the chart."""
    folder = tmp_path / "repository"
    for version in ("1.18.0", "1.19.2", "1.19.4"):
        helm("package", str(chart_in(tmp_path / version / "cilium", version)), "--destination", str(folder))
    helm("repo", "index", str(folder))
    serving = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def test_the_version_that_is_there_stays_unless_another_one_is_named(cluster: Kubernetes, tmp_path: Path, repository: str) -> None:
    cluster.node("cp-1")
    chart = chart_of("", repository, "")
    assert went(tmp_path, cluster, chart, check=True).extra["network"]["chart"] == "cilium 1.19.2"  # type: ignore[index]
    assert went(tmp_path, cluster, chart, version="1.19.4").executed
    mark = cluster.mark()
    again = went(tmp_path, cluster, chart, accept=True)
    assert (again.plan, again.extra["network"]["chart"], cluster.written(mark)) == (Plan(), "cilium 1.19.4", [])  # type: ignore[index]
    older = went(tmp_path, cluster, chart, check=True, version="1.18.0", accept=True)
    assert "from 1.19.4 to 1.18.0" in next(one.message for one in older.plan.warnings if one.rule == "15/cni-older-agents") and not older.refused
    assert went(tmp_path, cluster, chart, version="1.18.0").reason == "NetworkDiffers" and cluster.written(mark) == []


def test_a_chart_is_told_what_the_api_server_serves_as_an_installation_tells_it(defined: Kubernetes, tmp_path: Path) -> None:
    asked = "\n".join(f'  {name}: "{{{{ .Capabilities.APIVersions.Has "{one}" }}}}"' for name, one in QUESTIONS.items())
    version = '  version: "{{ .Capabilities.KubeVersion.Version }}"\n'
    begins = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: asked, namespace: kube-system}\ndata:"
    chart = chart_in(tmp_path / "cilium", asked=f"{begins}\n{asked}\n{version}")
    helm("upgrade", "--install", "cilium", str(chart), "--namespace", NAMESPACE, "--no-hooks", "--values", "-", values=for_render({}),
         kubeconfig=defined.server.kubeconfig)
    assert defined.read(ASKED)["data"] == {"core": "true", "kind": "true", "defined": "true", "group": "true", "unknown": "false",
                                           "unknown-kind": "false", "version": "v1.36.3"}
    found = went(tmp_path, defined, Chart(str(chart)))
    assert (found.plan, found.message) == (Plan(), "The network is as its record says.")


def test_what_the_api_server_puts_back_is_no_difference_and_what_is_beside_it_is(defined: Kubernetes, tmp_path: Path) -> None:
    pool = "apiVersion: network.example.org/v1\nkind: Pool\nmetadata: {name: default}\nspec: {name: mine}\n"
    chart = Chart(str(chart_in(tmp_path / "cilium", pool=pool)))
    defined.node("cp-1")
    assert went(tmp_path, defined, chart).executed and defined.read("/apis/network.example.org/v1/pools/default")["spec"] == {"name": "mine", "size": 3}
    assert went(tmp_path, defined, chart).plan == Plan()
    defined.change("/apis/network.example.org/v1/pools/default", {"spec": {"name": "other"}})
    mark = defined.mark()
    closed = went(tmp_path, defined, chart)
    assert closed.reason == "NetworkDiffers" and "Pool default (spec.name)" in closed.message and defined.written(mark) == []
    assert len(went(tmp_path, defined, chart, accept=True).executed) == 1 and defined.written(mark) == ["update pools/default"]
    assert went(tmp_path, defined, chart).plan == Plan()


@pytest.fixture
def marked(cluster: Kubernetes) -> Iterator[Kubernetes]:
    """Whoever writes a DaemonSet finds a label on it, and an annotation on its pods."""
    rules = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["daemonsets"]}]
    expression = ('Object{metadata: Object.metadata{labels: {"team": "network"}}, '
                  'spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{annotations: {"scan": "on"}}}}}')
    cluster.api.request("POST", POLICIES, {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "marks"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "failurePolicy": "Fail", "reinvocationPolicy": "Never",
                 "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]}})
    cluster.api.request("POST", f"{POLICIES.removesuffix('policies')}policybindings", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "marks"},
        "spec": {"policyName": "marks"}})
    probe: dict[str, Any] = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "probe"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "example.org/x:1"}]}}}}

    def applies() -> bool:
        tried: Any = cluster.api.request("POST", AGENT.rpartition("/")[0], probe, query={"dryRun": "All"})
        return bool(tried["metadata"].get("labels"))

    wait_for(applies, "the policy to apply")
    yield cluster
    cluster._delete(f"{POLICIES.removesuffix('policies')}policybindings/marks")
    cluster._delete(f"{POLICIES}/marks")
    wait_for(lambda: not applies(), "the policy to be gone")


def test_what_a_policy_of_the_cluster_puts_on_an_object_is_no_difference(marked: Kubernetes, tmp_path: Path) -> None:
    marked.node("cp-1")
    chart = Chart(str(CHART))
    assert went(tmp_path, marked, chart).executed and marked.read(AGENT)["metadata"]["labels"]["team"] == "network"
    mark = marked.mark()
    for check in (True, False):
        found = went(tmp_path, marked, chart, check=check)
        assert (found.plan, found.refused, marked.written(mark)) == (Plan(), False, [])
    marked.change(AGENT, {"spec": {"revisionHistoryLimit": 3}})
    found = went(tmp_path, marked, chart, accept=True)
    assert [step.why for step in found.plan.steps] == ["it differs: spec.revisionHistoryLimit"] and len(found.executed) == 1
    assert went(tmp_path, marked, chart).plan == Plan()
