# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first life of machines, through ansible-playbook only: found, approved, provisioned once, followed to running."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records, chosen
from tests.scenarios.playing import Project, lab_of, machine, network_of, writes
from tests.scenarios.sending import VECTORS, cluster, generated

NETWORK = network_of(__name__)
CONTROL_PLANE, WORKER, STRANGER = "prod-5a1f0c3e", "prod-7be2944d", "prod-c09d61aa"
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "worker": machine(2, NETWORK, "7be2944d"), "stranger": machine(3, NETWORK, "c09d61aa")}
NAMES = {CONTROL_PLANE: "cp", WORKER: "worker", STRANGER: "stranger"}

CLUSTER = cluster(NETWORK)
DISCOVER = {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}
APPROVALS = [
    {"machine": CONTROL_PLANE, "role": "controlplane", "install": {"disk": "/dev/sda"}},
    {"machine": WORKER, "role": "worker", "install": {"disk": "/dev/sda"}},
]
APPROVE = [{"name": f"Approve {entry['machine']}", "ichor.talos.talos_machine_approval": entry} for entry in APPROVALS]
REJECT = {"name": "Reject", "ichor.talos.talos_machine_approval": {"machine": STRANGER, "state": "rejected"}}
APPLY = {"name": "Apply", "ichor.talos.talos_maintenance_apply": {
    "machines": [CONTROL_PLANE, WORKER], "config_dir": "configs", "fail_on": ["blocked", "unreachable"]}}
FOLLOW = {"name": "Follow", "ichor.talos.talos_stage": {"machines": [CONTROL_PLANE, WORKER], "follow": True}}
BOOTSTRAP = {"name": "Bootstrap", "ichor.talos.talos_bootstrap": {"machine": CONTROL_PLANE}}
RUNNING = {"name": "Running", "ichor.talos.talos_stage": {"machines": [CONTROL_PLANE, WORKER], "follow": True, "until": "running"}}

WHOLE_PLAN = [("CreateMachine", CONTROL_PLANE), ("CreateMachine", WORKER), ("CreateMachine", STRANGER), ("ApproveMachine", CONTROL_PLANE),
              ("ApproveMachine", WORKER), ("RejectMachine", STRANGER), ("ApplyConfig", CONTROL_PLANE), ("ApplyConfig", WORKER),
              ("Bootstrap", CONTROL_PLANE)]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("life")) / "project"


@pytest.fixture(scope="module")
def records(folder: Path) -> Iterator[Records]:
    with chosen(folder / "ichor") as records:
        yield records


@pytest.fixture(scope="module")
def project(folder: Path, records: Records) -> Project:
    project = Project(folder, environment={name: value for name, value in records.environment.items() if not name.startswith("RECORD_")})
    configs = project.folder / "configs"
    configs.mkdir(mode=0o700)
    for name, role in ((CONTROL_PLANE, "controlplane"), (WORKER, "worker")):
        (configs / f"{name}.yaml").write_text(generated(role), encoding="utf-8")
    return project


def test_the_first_life(lab: Lab, project: Project, records: Records) -> None:
    created = project.play("cluster", [CLUSTER])
    assert created["The cluster"]["changed"] is True
    records.put_bundle((VECTORS / "secrets.yaml").read_bytes())

    # Check mode of the whole life in one play: every step is shown, and nothing is written anywhere.
    before, mark = records.everything(), lab.mark()
    everything = [DISCOVER, *APPROVE, REJECT, APPLY]
    checked = project.play("check", [*everything, FOLLOW, BOOTSTRAP, RUNNING], "--check")
    assert sorted(checked.steps) == sorted(WHOLE_PLAN)
    assert checked.changed
    assert checked["Bootstrap"]["plan"][0]["waits_for"] and checked["Bootstrap"]["plan"][0]["reversible"] is False
    assert records.everything() == before
    assert writes(lab, mark) == []
    for dummy, target in WHOLE_PLAN:
        assert target in checked.output

    # The same as a saved plan.
    extra = project.folder / "plan.yml.json"
    extra.write_text(json.dumps({
        "ichor_cluster": "prod", **records.variables, "ichor_timing": project.defaults["timing"], "ichor_allow_loopback": True,
        "ichor_approve": APPROVALS, "ichor_reject": [STRANGER], "ichor_config_dir": "configs", "ichor_bootstrap": CONTROL_PLANE,
        "ichor_plan_file": "plan.json"}), encoding="utf-8")
    planned = project.run("ichor.talos.plan", "-e", f"@{extra}")
    assert planned.steps == checked.steps
    assert records.everything() == before and writes(lab, mark) == []
    saved = json.loads((project.folder / "plan.json").read_text(encoding="utf-8"))
    assert len([step for plan in saved["plans"] for step in plan["steps"]]) == len(WHOLE_PLAN)
    # The same is there to be read, and says what cannot be taken back.
    readable = (project.folder / "plan.md").read_text(encoding="utf-8")
    assert saved["changes"] is True and f"# Plan `{saved['id'][:12]}`: {len(WHOLE_PLAN)} steps" in readable
    assert all(f"`{target}`" in readable for dummy, target in WHOLE_PLAN) and f"**bootstrap**: `{CONTROL_PLANE}`" in readable
    assert "cannot be undone" in readable and readable.count("\n") < 100

    # The world changes: one more machine boots. The saved plan does not cover it, so nothing is done.
    lab.add(name="late", description=machine(4, NETWORK, "0badcafe"))
    changed = project.run("ichor.talos.discover", "-e", f"@{extra}", rc=2)
    refused = changed["Find machines in maintenance mode"]
    assert refused["reason"] == "PlanChanged" and "prod-0badcafe" in refused["msg"]
    assert records.everything() == before
    lab.remove(node="late")

    # As planned, it is honoured: three pending machines with their pins.
    found = project.run("ichor.talos.discover", "-e", f"@{extra}")
    assert found.changed
    for name, node in NAMES.items():
        assert lab.state(node=node)["fingerprint"] in json.dumps(records.status("machines", name))
        assert (records.record("machines", name) or {})["spec"]["approvalState"] == "pending"
    approved = project.run("ichor.talos.approve", "-e", f"@{extra}")
    assert [result["changed"] for result in approved.items("Approve a machine")] == [True, True]
    assert approved["Reject machines"]["changed"] is True
    rejected_at = lab.mark()

    # Other bytes than the planned ones are not sent.
    path = project.folder / "configs" / f"{WORKER}.yaml"
    planned_bytes = path.read_bytes()
    path.write_bytes(planned_bytes.replace(b"debug: false", b"debug: true"))
    mark = lab.mark()
    other = project.run("ichor.talos.apply", "-e", f"@{extra}", rc=2)
    refused = other["Send each machine its configuration"]
    assert refused["reason"] == "PlanChanged" and f"apply config: {WORKER}: the configuration differs (" in refused["msg"]
    assert "The plan now would be " in other.output and CONTROL_PLANE not in refused["msg"]
    assert writes(lab, mark) == []
    path.write_bytes(planned_bytes)

    # Provisioned as planned, followed, bootstrapped once, followed to running.
    applied = project.run("ichor.talos.apply", "-e", f"@{extra}")
    assert sorted(applied.steps) == [("ApplyConfig", CONTROL_PLANE), ("ApplyConfig", WORKER), ("Bootstrap", CONTROL_PLANE)]
    assert [row["stage"] for row in applied["Follow the machines until they run"]["machines"]] == ["running", "running"]
    assert lab.state(node="cp")["stage"] == lab.state(node="worker")["stage"] == "running"
    assert lab.writes(accepted_only=True) == {"ApplyConfiguration": 2, "Bootstrap": 1}

    # A second run changes nothing and sends nothing.
    mark = lab.mark()
    again = project.play("again", [*everything, FOLLOW, BOOTSTRAP, RUNNING])
    assert not again.changed and again.steps == []
    assert writes(lab, mark) == []

    # A finished plan never runs again.
    finished = json.loads((project.folder / "plan.json").read_text(encoding="utf-8"))
    assert all(plan["finished"] for plan in finished["plans"] if plan["steps"])

    # The rejected machine was never sent a byte, and not even spoken to since it was rejected.
    assert [entry for entry in lab.log(node="stranger") if entry.get("kind") == "write"] == []
    assert [entry for entry in lab.log(since=rejected_at, node="stranger") if entry["event"] in ("connect", "tls", "call")] == []
