# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""create_cluster where something is there already: a control plane that died in its install, a cluster that runs, one that looks adopted, and
one whose status is lost. etcd is bootstrapped once in all of it (design sections 4, 9 and 15)."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.scenarios.playing import Project, Run, a_project, machine, network_of, wait_for

NETWORK = network_of(__name__)
HEADS = {"cp-1": "5a1f0c3e", "cp-2": "6b2f1d4e", "cp-3": "7c3f2e5e", "w-1": "8d4f3f6e", "spare": "9e5f4a7e"}
NODES = {name: machine(number, NETWORK, head) for number, (name, head) in enumerate(HEADS.items(), 1)}
RECORDS = {name: f"prod-{head}" for name, head in HEADS.items()}
FIRST, SECOND = ("cp-1", "cp-2", "cp-3", "w-1"), ("cp-1", "spare", "cp-3", "w-1")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.start({"nodes": {name: node for name, node in NODES.items() if name != "spare"}}, speed=20.0) as lab:
        yield lab


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with a_project(tmp_path_factory.mktemp("again") / "project") as project:
        yield project


def arguments(project: Project, nodes: tuple[str, ...], **more: Any) -> tuple[str, ...]:
    timing = {**project.defaults["timing"], "call": 5.0, "unreachable_grace": 0.5}
    variables = {
        "ichor_cluster": "prod", "ichor_endpoint": "https://127.0.0.9:6443", "ichor_talos_version": "v1.13.9", "ichor_kubernetes_version": "v1.35.0",
        "ichor_ranges": [f"{NETWORK}.0/29"], "ichor_allow_loopback": True, "ichor_timing": timing, **project.records.variables,
        "ichor_nodes": [{"uuid": NODES[name]["machine"]["uuid"], "role": "worker" if name.startswith("w") else "controlplane", "hostname": name,
                         "install": {"disk": "/dev/sda"}} for name in nodes], **more}
    return "ichor.talos.create_cluster", "-e", json.dumps(variables), "-e", "confirm=prod"


def create(project: Project, nodes: tuple[str, ...], rc: int = 0, **more: Any) -> Run:
    return project.run(*arguments(project, nodes, **more), rc=rc)


@pytest.fixture(scope="module")
def died(lab: Lab, project: Project) -> Run:
    """The second control plane took its configuration and never came back: somebody sees it wait, breaks it off, and runs it for a short time."""
    lab.hold(node="cp-2", phase="install")
    process = project.start(*arguments(project, FIRST))
    wait_for(lambda: lab.writes(accepted_only=True).get("ApplyConfiguration") == len(FIRST) or process.poll() is not None, "the configurations to be sent")
    assert process.poll() is None, project.output()
    lab.power(node="cp-2", state="off")
    process.send_signal(signal.SIGINT)
    process.wait(60)
    wait_for(lambda: not project.processes(), "every process of the run to end")
    return create(project, FIRST, rc=2, ichor_max_runtime=3)


@pytest.fixture(scope="module")
def replaced(lab: Lab, project: Project, died: Run) -> tuple[Run, Run]:
    """The way out that the run names: the record is deleted, and another machine takes its place."""
    deleted = project.play("delete", [{"name": "Delete", "ichor.talos.talos_machine": {
        "machine": RECORDS["cp-2"], "state": "absent", "allow_delete": True}}])
    lab.add(name="spare", description=NODES["spare"])
    lab.wait(node="spare", stage="maintenance")
    return deleted, create(project, SECOND)


def bootstraps(lab: Lab) -> int:
    return int(lab.writes(accepted_only=True).get("Bootstrap", 0))


def test_a_control_plane_that_dies_in_its_install_holds_the_bootstrap_and_the_way_out_is_named(lab: Lab, died: Run) -> None:
    refused = died["Bootstrap etcd"]
    assert refused["reason"] == "ControlPlaneUnreachable" and RECORDS["cp-2"] in refused["msg"]
    assert "state: absent" in refused["msg"] and "approve another control plane in its place" in refused["msg"]
    assert len([entry for entry in lab.log(event="done") if str(entry["rpc"]).endswith("/ApplyConfiguration") and entry["node"] == "cp-2"]) == 1


def test_another_machine_takes_its_place(lab: Lab, project: Project, replaced: tuple[Run, Run]) -> None:
    deleted, run = replaced
    assert deleted.steps == [("DeleteRecord", RECORDS["cp-2"])]
    assert [step for step in run.steps if step[0] in ("ApplyConfig", "Bootstrap")] == [("ApplyConfig", RECORDS["spare"]), ("Bootstrap", RECORDS["cp-1"])]
    rows = run["Bring the machines on their way"]["machines"]
    assert {row["name"]: row["reason"] for row in rows} == {RECORDS[name]: "Converged" for name in SECOND}
    assert bootstraps(lab) == 1 and not lab.state(node="cp-2")["boots"] > 1


def without_history(status: dict[str, Any], kind: str) -> dict[str, Any]:
    """As of machines that were taken over and are held, in a cluster of which nobody wrote down that it is bootstrapped."""
    if kind == "clusters":
        return {key: value for key, value in status.items() if key != "bootstrappedAt"}
    kept = {key: value for key, value in status.items() if key not in ("appliedConfigHash", "observedInputsHash", "configStoredAt", "storedConfigHash")}
    held = {"type": "Ready", "status": "False", "reason": "AdoptionHeld", "message": "held", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**kept, "conditions": [held]}


def adopted(records: Records, kind: str, name: str) -> Callable[[], object]:
    before = records.status(kind, name)
    records.change_status(kind, name, lambda status: without_history(status, kind))
    return lambda: records.change_status(kind, name, lambda unused: before)


def lost(records: Records, kind: str, name: str) -> Callable[[], object]:
    return records.lose_status(kind, name)


@pytest.mark.parametrize(("how", "reason"), [(None, ""), (adopted, "AlreadyBootstrapped"), (lost, "StatusMissing")], ids=["runs", "adopted", "lost"])
def test_again_nothing_is_sent_and_etcd_is_not_bootstrapped(
        lab: Lab, project: Project, replaced: tuple[Run, Run], how: Callable[[Records, str, str], Callable[[], object]] | None,
        reason: str) -> None:
    records = project.records
    put_back = [how(records, kind, name) for kind in ("clusters", "machines") for name in records.names(kind)] if how else []
    mark = lab.mark()
    again = create(project, SECOND, rc=2 if reason else 0, ichor_max_runtime=5)
    alone = project.play("bootstrap", [{"name": "Bootstrap", "ichor.talos.talos_bootstrap": {"machine": RECORDS["cp-1"], "wait": 2}}], rc=2 if reason else 0)
    assert lab.writes(since=mark) == {} and bootstraps(lab) == 1, again.output
    assert not alone["Bootstrap"]["plan"] and alone["Bootstrap"].get("reason", "") == reason, alone.output
    assert reason or (not again.changed and not again.steps)
    for one in put_back:
        one()
