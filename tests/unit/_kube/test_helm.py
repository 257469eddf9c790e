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
from tests.scenarios.playing import wait_for

LOCAL = Chart(str(CHART))


def failed(chart: Chart, values: dict[str, object], timeout: float = 60.0) -> TalosError:
    with pytest.raises(TalosError) as caught:
        asyncio.run(helm.render(chart, values, "v1.36.3", (), timeout))  # type: ignore[arg-type]
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


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("name", ["--post-renderer=/bin/echo", "--debug", "a\0b"])
def test_no_name_is_an_option(name: str) -> None:
    assert failed(Chart(str(CHART), release=name), {}).reason == "ChartInvalid" and failed(Chart(name), {}).reason == "ChartInvalid"


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
    assert arguments.read_text().split() == ["template", "--namespace", "kube-system", "--include-crds", "--no-hooks", "--skip-tests", "--values", "-",
                                             "--repo", "https://charts.example.org", "--version", "1.2.3", "--kube-version", "v1.35.2",
                                             "--", "cilium", "cilium"]
    assert (tmp_path / "values").read_text() == '{"a": "hush"}'


def test_a_helm_that_hangs_costs_its_deadline_and_is_gone_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child holds the pipes, so a helm that alone is killed would still be waited for."""
    script(tmp_path, monkeypatch, f"sleep 1000 & echo $$ $! > {tmp_path}/told; wait")
    found: list[TalosError] = []
    deadline = 0.5
    while not (tmp_path / "told").exists():
        found.append(failed(LOCAL, {}, deadline))
        deadline *= 2
    assert found[-1].reason == "TimedOut" and f"{deadline / 2:g} s" in found[-1].message
    for number in (tmp_path / "told").read_text().split():
        wait_for(lambda number=number: not runs(number), f"the end of {number}")  # type: ignore[misc]


def runs(number: str) -> bool:
    """Whether a process is there, and is none that only nobody has asked about."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_run_that_is_stopped_ends_helm_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = script(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/told.new; mv {tmp_path}/told.new {tmp_path}/told; exec sleep 1000")

    async def stopped() -> None:
        task = asyncio.ensure_future(helm.render(LOCAL, {}, ""))
        while not told.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    wait_for(lambda: not runs(told.read_text().strip()), "the end of helm")


def test_a_helm_that_cannot_be_started_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, "")
    (tmp_path / "helm").write_bytes(b"\x7fELF of another machine")
    error = failed(LOCAL, {})
    assert error.reason == "HelmMissing" and "cannot be started" in error.message and "Install Helm 3" in error.hint


def test_a_helm_that_prints_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, "exec yes 'a: b'")
    error = failed(LOCAL, {})
    assert error.reason == "ChartInvalid" and "more than 8 MiB" in error.message


def test_a_helm_that_reads_no_values_is_told_by_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, "echo 'Error: no such chart' >&2; exit 3")
    error = failed(LOCAL, {"a": "x" * 300_000})
    assert error.reason == "ChartInvalid" and "no such chart" in error.message and "xxx" not in error.text
