# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts rendered by real helm: what comes out, and what is said where it is missing, fails or hangs."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube import helm
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_generated import generated
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart, place_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError

from tests.parts.build import build
from tests.parts.network_chart import CHART

LOCAL = Chart(str(CHART))


def failed(chart: Chart, values: dict[str, object], timeout: float = 60.0) -> TalosError:
    with pytest.raises(TalosError) as caught:
        asyncio.run(helm.render(chart, values, "v1.36.3", timeout))  # type: ignore[arg-type]
    return caught.value


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_BIN", str(build("helm-3.22")))


@pytest.mark.usefixtures("real")
def test_a_chart_is_rendered_with_the_values_in_the_order_of_their_making() -> None:
    values = for_render({"debug": True})
    first, second = (asyncio.run(helm.render(LOCAL, values, "v1.36.3")) for dummy in range(2))
    kinds = [place_of(one).kind for one in first]
    assert kinds.index("ServiceAccount") < kinds.index("ConfigMap") < kinds.index("DaemonSet") < kinds.index("Deployment") and "Job" not in kinds
    config = next(one for one in first if one["kind"] == "ConfigMap")
    assert config["data"]["ipam"] == "kubernetes" and config["data"]["debug"] == "true"  # type: ignore[index, call-overload]
    paths = generated(first, second)
    assert paths is not None
    assert {(str(place_of(one)), path) for one, found in zip(first, paths) for path in found} == {
        *((f"Secret kube-system/{name}", ("data", key)) for name, key in (
            ("cilium-ca", "ca.crt"), ("cilium-ca", "ca.key"), ("hubble-server-certs", "ca.crt"), ("hubble-server-certs", "tls.crt"),
            ("hubble-server-certs", "tls.key")))}


@pytest.mark.usefixtures("real")
def test_an_archive_is_a_chart_too(tmp_path: Path) -> None:
    from tests.parts.network_chart import helm as run

    run("package", str(CHART), "--destination", str(tmp_path))
    assert len(asyncio.run(helm.render(Chart(str(tmp_path / "cilium-1.18.0.tgz")), {}, "v1.36.3"))) == 13


@pytest.mark.usefixtures("real")
def test_what_helm_says_is_told() -> None:
    assert failed(Chart("/nowhere/cilium"), {}).reason == "ChartInvalid"
    error = failed(LOCAL, {"operator": {"replicas": {"x": 1}}, "ipam": "no mapping"})
    assert error.reason == "ChartInvalid" and "helm does not render" in error.message and "\n" not in error.message


def test_a_missing_helm_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_BIN", "no-such-helm")
    error = failed(LOCAL, {})
    assert error.reason == "HelmMissing" and "no-such-helm" in error.message and "Install Helm 3" in error.hint
    monkeypatch.delenv("HELM_BIN")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "The program helm," in failed(LOCAL, {}).message


def script(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = folder / "helm"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("HELM_BIN", str(path))
    return folder / "told"


def test_values_go_in_through_the_standard_input_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'echo "$@" > {tmp_path}/told; cat > {tmp_path}/values; echo "{{apiVersion: v1, kind: A, metadata: {{name: b}}}}"'
    arguments = script(tmp_path, monkeypatch, text)
    chart = Chart("cilium", "https://charts.example.org", "1.2.3")
    assert asyncio.run(helm.render(chart, {"a": "hush"}, "v1.35.2")) == ({"apiVersion": "v1", "kind": "A", "metadata": {"name": "b"}},)
    assert arguments.read_text().split() == ["template", "cilium", "cilium", "--namespace", "kube-system", "--include-crds", "--no-hooks", "--skip-tests",
                                             "--values", "-", "--repo", "https://charts.example.org", "--version", "1.2.3", "--kube-version", "v1.35.2"]
    assert (tmp_path / "values").read_text() == '{"a": "hush"}'


def test_a_helm_that_hangs_costs_its_deadline_and_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = script(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/told; exec sleep 1000")
    error = failed(LOCAL, {}, 0.5)
    assert error.reason == "TimedOut" and "0.5 s" in error.message
    if told.exists():
        assert not Path(f"/proc/{told.read_text().strip()}/exe").exists() or "sleep" not in Path(f"/proc/{told.read_text().strip()}/cmdline").read_text()


@pytest.mark.parametrize(("text", "reason"), [("", "renders nothing"), ("a: [", "is no YAML"), ("- 1", "no object"), ("kind: A", "no object"),
                                              ("apiVersion: v1\nkind: A\nmetadata: {}", "no object")])
def test_what_is_no_object_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TalosError) as caught:
        helm.objects_of(text, LOCAL)
    assert caught.value.reason == "ChartInvalid" and reason in caught.value.message


def test_lists_are_taken_apart() -> None:
    one = "{apiVersion: v1, kind: A, metadata: {name: b}}"
    assert len(helm.objects_of(f"apiVersion: v1\nkind: List\nitems: [{one}, {one}]\n---\n---\n{one}\n", LOCAL)) == 3
