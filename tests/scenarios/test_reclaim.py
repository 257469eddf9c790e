# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of other clusters are reclaimed with ansible-playbook, and the etcd that they leave, of real members, lives on (design section 16)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.control import Lab
from tests.lives.running_cluster import LONGEST, QUICK
from tests.parts.build import build
from tests.scenarios.awx_jobs import Awx, Job, answered
from tests.scenarios.foreign_cluster import Foreign
from tests.scenarios.playing import Project, Run, Task, network_of, wait_for

NETWORK = network_of(__name__)
RESET = "Reset"
TIMING = {**QUICK, "call": 20.0, "discovery_after_reset": 1.0, "lock_wait": 60.0}
TASK = "Reclaim the machines"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.start({"nodes": {}}, speed=20.0, etcd=str(build("etcd-3.6"))) as running:
        yield running


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A store with the cluster prod, which has no machine yet."""
    made = Project(Path(tmp_path_factory.mktemp("reclaim")) / "project", defaults={"allow_loopback": True, "timing": TIMING})
    made.play("prod", [
        {"ichor.talos.talos_cluster": {
            "name": "prod", "endpoint": f"https://{NETWORK}.200:6443", "talos_version": "v1.13.9", "kubernetes_version": "v1.35.0", "bundle": "prod",
            "control_planes": 1, "discovery": {"ranges": [f"{NETWORK}.1-40"]}}},
        {"ichor.talos.talos_secrets": {"cluster": "prod"}},
    ])
    return made


@pytest.fixture(scope="module")
def old(lab: Lab) -> Iterator[Foreign]:
    disks = {"disks": [{"name": "sda"}, {"name": "sdb"}], "volumes": [{"disk": "sdb", "label": "data", "number": 1}]}
    made = Foreign(lab, "old", NETWORK, boards={"old-w-1": disks})
    yield made.create()
    made.end()


def options(project: Project, foreign: Foreign, host: str, **more: Any) -> dict[str, Any]:
    given = {"cluster": "prod", "address": foreign.address(host), "confirm": foreign.uuid(host), "talosconfig": foreign.talosconfig(project.folder), **more}
    return {key: value for key, value in given.items() if value is not None}


def play(project: Project, *wanted: tuple[bool, dict[str, Any]]) -> tuple[Run, list[Task]]:
    """One process of ansible-playbook: its start is most of its time."""
    tasks = [{"name": f"{number}", "ichor.talos.talos_reclaim": given, "check_mode": check, "ignore_errors": True}
             for number, (check, given) in enumerate(wanted)]
    run = project.play("reclaim", tasks)
    ended = [task for task in run.tasks if task.how in ("ok", "failed")]
    assert len(ended) == len(wanted), run.output
    return run, ended


def refused(project: Project, foreign: Foreign, host: str, reason: str, **more: Any) -> dict[str, Any]:
    """Refused in check mode and for real, with nothing sent."""
    mark, given = foreign.lab.mark(), options(project, foreign, host, **more)
    run, ended = play(project, (True, given), (False, given))
    for task in ended:
        assert task.how == "failed" and task.result["reason"] == reason and task.result["plan"] == [], run.output
    assert writes(foreign.lab, mark) == {}
    return ended[-1].result


def writes(lab: Lab, since: int) -> dict[str, int]:
    return dict(lab.writes(since=since))


def life(project: Project, foreign: Foreign, host: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A check, a run, a check and a run: what was planned is done, once, and the machine waits with the certificate and the disks that it has.
    Gives the output and the result of the run."""
    lab, mark, given = foreign.lab, foreign.lab.mark(), options(project, foreign, host, **more)
    before = set(lab.state(node=host)["partitions"])
    run, (check, done, *again) = play(project, (True, given), (False, given), (True, given), (False, given))
    sent = [entry["time"] for entry in lab.log(since=mark, event="done", kind="write")]
    assert writes(lab, mark) == {RESET: 1} and sent[0] > check.at, run.output
    steps = [(step["action"], step["target"]) for step in check.result["plan"]]
    assert steps == [(action, f"{foreign.address(host)}:50000") for action in ("ReclaimMachine", "RegisterMachine")], run.output
    assert done.result["plan_id"] == check.result["plan_id"] and done.result["changed"] and done.how == "ok", run.output
    for task in again:
        assert task.how == "ok" and not task.result["changed"] and task.result["plan"] == [], run.output
    state = lab.state(node=host)
    assert state["mode"] == "maintenance" and set(state["partitions"]) == before - set(done.result["inspections"][0]["wipes"])
    name = done.result["registered"][0]["machine"]
    record, status = record_of(project, name), status_of(project, name)
    assert record["spec"]["approvalState"] == "pending" and record["spec"]["identity"]["uuid"] == foreign.uuid(host)
    assert status["maintenanceFingerprint"] == state["fingerprint"] and status["discoveredDisks"], status
    return run.output, done.result


def record_of(project: Project, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((project.store / "machines" / f"{name}.yaml").read_text(encoding="utf-8")))


def status_of(project: Project, name: str) -> dict[str, Any]:
    return dict(json.loads((project.store / ".state" / "machines" / f"{name}.json").read_text(encoding="utf-8"))["status"])


def test_the_job_templates_show_ask_and_reset(project: Project, lab: Lab, old: Foreign) -> None:
    """A worker of a living cluster, by the surveys of AWX: nobody has agreed at first. What is on its other disk stays."""
    project.run("ichor.talos.awx_setup", "-e", json.dumps({
        "awx_setup_apply": False, "awx_setup_render_to": "awx", "awx_setup_scm_url": "https://git.example.com/talos.git", "awx_setup_image": "example/ee:1",
        "awx_setup_credentials": ["store of prod"], "awx_setup_clusters": ["prod"]}))
    templates = {one["name"]: one for one in yaml.safe_load((project.folder / "awx" / "objects" / "job_template.yml").read_text(encoding="utf-8"))}
    plan, reset = templates["Talos: reclaim, plan"], templates["Talos: reclaim"]
    awx = Awx({"TALOSCONFIG": old.talosconfig(project.folder)},
              {"ichor_timing": TIMING, "ichor_allow_loopback": True, "ichor_store_path": str(project.store)})

    def job(template: dict[str, Any], **answers: str) -> tuple[Job, dict[str, Any]]:
        done = awx.job(template["playbook"], check=template["job_type"] == "check",
                       **answered(template["survey_spec"]["spec"], ichor_cluster="prod", ichor_address=old.address("old-w-1"), **answers))
        return done, done.results(TASK)[-1]

    mark = lab.mark()
    shown, result = job(plan)
    page = result["inspections"][0]
    assert shown.status == "failed" and result["reason"] == "ConfirmationMissing" and page["uuid"] == old.uuid("old-w-1") and writes(lab, mark) == {}
    assert page["role"] == "worker" and page["cluster"]["name"] == "old" and page["cluster"]["managed_as"] == ""
    assert page["wipes"] == ["STATE", "EPHEMERAL"] and any("/dev/sdb" in entry and "data" in entry for entry in page["stays"]), page["stays"]
    for told in (f"UUID {page['uuid']}", "whose: a worker of cluster old, which this store does not manage", "no quorum changes",
                 "wiped: STATE (its configuration", "stays: /dev/sdb", "not known: what its pods keep", "next: it restarts into maintenance mode",
                 "The node is not drained"):
        assert told in shown.output, shown.output
    before = set(lab.state(node="old-w-1")["partitions"])
    done, result = job(reset, ichor_confirm=page["uuid"].upper())
    assert done.status == "successful" and result["registered"][0]["uuid"] == page["uuid"] and writes(lab, mark) == {RESET: 1}, done.output
    assert set(lab.state(node="old-w-1")["partitions"]) == before - {"STATE", "EPHEMERAL"}
    status = status_of(project, result["registered"][0]["machine"])
    assert any("data" in content for disk in status["discoveredDisks"] for content in disk.get("contents", [])), status
    assert old.members() == {"old-cp-1": True, "old-cp-2": True, "old-cp-3": True}


def test_the_end_of_a_foreign_cluster(project: Project, lab: Lab, old: Foreign) -> None:
    """Goes on from there: its control planes, one by one."""
    refused(project, old, "old-cp-1", "IdentityMismatch", confirm=old.uuid("old-cp-2"))
    stranger = Foreign(lab, "stranger", NETWORK)
    found = refused(project, old, "old-cp-1", "UnknownAuthority", talosconfig=stranger.talosconfig(project.folder))
    assert "may be the one of another cluster" in found["msg"]
    refused(project, old, "old-cp-1", "CurrentConfigUnavailable", talosconfig=old.talosconfig(project.folder, "os:reader"))

    # One control plane is down, so no other may go; when it is back, one leaves gracefully and the others keep their quorum.
    lab.power(node="old-cp-3", state="off")
    assert "needs 2 healthy voters, and 1 answer" in refused(project, old, "old-cp-2", "QuorumAtRisk", force_ungraceful=True)["msg"]
    lab.power(node="old-cp-3", state="on")
    lab.wait(node="old-cp-3", stage="ready", seconds=60)
    wait_for(lambda: all(old.members().values()), "etcd with all its voters", 60)
    life(project, old, "old-cp-1")
    wait_for(lambda: old.members(but=["old-cp-1"]) == {"old-cp-2": True, "old-cp-3": True}, "etcd of the other two", 60)
    life(project, old, "old-cp-2")
    assert old.members(but=["old-cp-1", "old-cp-2"]) == {"old-cp-3": True}
    refused(project, old, "old-cp-3", "ControlPlaneNeeded", force_ungraceful=True)

    # Its etcd hangs, then it is stopped: the plan says so, and by force it goes.
    lab.etcd(node="old-cp-3", frozen=True)
    hung = refused(project, old, "old-cp-3", "QuorumUnknown", timing={**TIMING, "inspection": 5.0})
    assert "etcdProblem" in hung["msg"] and "within 5 s" in hung["msg"]
    lab.etcd(node="old-cp-3", frozen=False)
    lab.etcd(node="old-cp-3", running=False)
    assert "etcd is not running" in refused(project, old, "old-cp-3", "QuorumUnknown")["msg"]
    output, dummy = life(project, old, "old-cp-3", force_ungraceful=True)
    assert "is treated as not existing, so its quorum cannot be checked and the reset is not graceful" in " ".join(output.split())
    reset = [entry for entry in lab.log(event="node") if entry.get("what") == "reset"]
    assert [(entry["node"], entry["graceful"]) for entry in reset] == [
        ("old-w-1", True), ("old-cp-1", True), ("old-cp-2", True), ("old-cp-3", False)]


def test_what_was_reclaimed_is_approved_and_runs(project: Project, lab: Lab, old: Foreign) -> None:
    """Goes on from there, and ends with a machine of our own that nobody has recorded."""
    first, worker, *others = (f"prod-{old.uuid(host)[:8]}" for host in ("old-cp-1", "old-w-1", "old-cp-2", "old-cp-3"))
    install = {"install": {"disk": "/dev/sda"}}
    controller = {"ichor.talos.talos_controller": {"cluster": "prod", "discover": False, "until": "settled", "max_runtime": LONGEST}}
    run = project.play("approve", [
        {"ichor.talos.talos_machine_approval": {"machine": first, "role": "controlplane", "hostname": "cp-1", **install}},
        *({"ichor.talos.talos_machine_approval": {"machine": name, "role": "worker", "hostname": f"w-{number}", **install}}
          for number, name in enumerate((worker, *others), 1)),
        controller, {"ichor.talos.talos_bootstrap": {"machine": first}}, controller])
    for name in (first, worker, *others):
        ready = next(entry for entry in status_of(project, name)["conditions"] if entry["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("True", "Converged"), run.output
        assert "annotations" not in record_of(project, name)["metadata"]

    # Without a talosconfig the bundle of the cluster opens its own.
    assert "talos_machine_removal" in refused(project, old, "old-w-1", "MachineManaged", talosconfig=None)["msg"]
    for folder in ("machines", ".state/machines"):
        for path in (project.store / folder).glob(f"{worker}.*"):
            path.unlink()
    assert "does exist" in refused(project, old, "old-w-1", "QuorumUnknown", talosconfig=None, force_ungraceful=True)["msg"]
    output, result = life(project, old, "old-w-1", talosconfig=None)
    assert "add_machine" in output and result["inspections"][0]["cluster"]["managed_as"] == "prod"
