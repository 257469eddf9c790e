# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person is told when something is wrong: one reason, one sentence, the same in check mode, and nothing is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.scenarios.playing import Project, Run, lab_of, machine, network_of, writes
from tests.scenarios.sending import NODE, approved, cluster, generated

NETWORK = network_of(__name__)
APPROVED, PENDING = "prod-5a1f0c3e", "prod-7be2944d"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of({NODE: machine(1, NETWORK, "5a1f0c3e"), "other": machine(2, NETWORK, "7be2944d")})


@pytest.fixture
def project(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("refusals") / "project"
    return Project(folder, kept_in=records.another(folder / "ichor"))


def approval(**options: Any) -> dict[str, Any]:
    return {"ichor.talos.talos_machine_approval": {"machine": PENDING, "role": "worker", "install": {"disk": "/dev/sda"}, **options}}


def sending(**options: Any) -> dict[str, Any]:
    return {"ichor.talos.talos_maintenance_apply": options}


SCHEDULED = {"awx_job_id": 41, "awx_job_launch_type": "scheduled", "awx_schedule_id": 3, "awx_user_name": "forged"}
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a scheduled job approves": ({**approval(), "vars": SCHEDULED}, "ScheduleCannotApprove"),
    "a job of nobody approves": ({**approval(), "vars": {"awx_job_id": 41, "awx_job_launch_type": "webhook"}}, "ApproverUnknown"),
    "no such disk": (approval(install={"disk": "/dev/sdz"}), "DiskNotFound"),
    "another fingerprint": (approval(fingerprint="AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "FingerprintMismatch"),
    "another plan": (approval(expect_plan_id="0" * 64), "PlanChanged"),
    "no such machine": (approval(machine="prod-00000000"), "RecordNotFound"),
    "a pending machine is sent something": (sending(machine=PENDING, config_file="config.yaml"), "NotApproved"),
    "an unexpanded template": (sending(machine=APPROVED, config_file="template.yaml"), "TemplateUnexpanded"),
    "a missing file": (sending(machine=APPROVED, config_file="none.yaml"), "InvalidInput"),
    "loopback": ({"ichor.talos.talos_maintenance_apply": {"machine": APPROVED, "config_file": "config.yaml", "allow_loopback": False}}, "EndpointRefused"),
    "no store": ({"ichor.talos.talos_stage": {"machine": APPROVED, "store": "directory", "store_path": "nowhere"}}, "StoreMissing"),
    "a missing plan file": (sending(machine=APPROVED, config_file="config.yaml", plan_file="none.json"), "InvalidInput"),
}


@pytest.mark.parametrize("arguments", [(), ("--check",)], ids=["run", "check"])
def test_refusals_fail_the_task_in_both_modes_with_the_same_reason(lab: Lab, project: Project, arguments: tuple[str, ...]) -> None:
    approved(project, NETWORK)
    (project.folder / "config.yaml").write_text(generated("controlplane"), encoding="utf-8")
    (project.folder / "template.yaml").write_text(generated("controlplane").replace("debug: false", "debug: {{ debug }}"), encoding="utf-8")
    written = project.records.written()
    mark = lab.mark()
    tasks = [{"name": name, **task, "ignore_errors": True} for name, (task, dummy) in REFUSALS.items()]
    run = project.play("refused", tasks, *arguments)
    assert {name: run[name]["reason"] for name in REFUSALS} == {name: reason for name, (dummy, reason) in REFUSALS.items()}
    assert [run[name]["msg"] for name in REFUSALS if not run[name]["msg"].endswith((".", "="))] == []
    assert [name for name in REFUSALS if run[name]["changed"]] == []
    assert project.records.written() == written
    assert writes(lab, mark) == []


def plan_of(run: Run) -> str:
    return str(run["Approve"]["plan_id"])


def test_a_saved_plan_after_the_certificate_was_renewed(lab: Lab, project: Project) -> None:
    """Talos issues a new certificate every 12 hours: the plan of the evening is not carried out in the morning unseen."""
    project.play("found", [cluster(NETWORK), {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}])
    before = project.records.everything()
    evening = project.play("evening", [{"name": "Approve", **approval(save_plan="plan.json")}], "--check")
    assert project.records.everything() == before
    old = lab.state(node="other")["fingerprint"]
    new = lab.reissue(node="other")["fingerprint"]
    morning = project.play("morning", [{"name": "Approve", **approval(plan_file="plan.json")}], rc=2)
    assert morning["Approve"]["reason"] == "PlanChanged" and "Only the certificate changed" in morning["Approve"]["msg"]
    assert old != new and new in morning.output
    by_id = project.play("by-id", [{"name": "Approve", **approval(expect_plan_id=plan_of(evening))}], rc=2)
    assert by_id["Approve"]["reason"] == "PlanChanged"
    agreed = project.play("agreed", [{"name": "Approve", **approval(expect_plan_id=plan_of(by_id))}])
    assert agreed["Approve"]["changed"] is True
    assert new in json.dumps([project.records.status("machines", PENDING), project.records.record("machines", PENDING)])


def test_a_step_of_a_saved_plan_that_is_held_when_it_runs_is_no_success(lab: Lab, project: Project) -> None:
    """Whoever agreed to the plan is told that it was not carried out, also where several machines only list what is refused."""
    approved(project, NETWORK)
    (project.folder / "configs").mkdir(mode=0o700)
    (project.folder / "configs" / f"{APPROVED}.yaml").write_text(generated("controlplane"), encoding="utf-8")

    def apply(**options: Any) -> list[dict[str, Any]]:
        return [{"name": "Apply", **sending(machines=[APPROVED], config_dir="configs", **options)}]

    planned = project.play("plan", apply(save_plan="plan.json"), "--check")
    assert planned.steps == [("ApplyConfig", APPROVED)]
    held_by_hand = "  annotations:\n    ichor.maesh.dev/hold-apply: 'true'\n"
    project.records.edit("machines", APPROVED, lambda text: text.replace("metadata:\n", "metadata:\n" + held_by_hand, 1))
    mark = lab.mark()
    for options in ({"plan_file": "plan.json"}, {"expect_plan_id": planned["Apply"]["plan_id"]}):
        held = project.play("held", apply(**options), rc=2)["Apply"]
        assert (held["reason"], held["changed"]) == ("HoldApply", False) and APPROVED in held["msg"], held
        assert [entry["reason"] for entry in held["refusals"]] == ["HoldApply"]
    assert project.play("listed", apply())["Apply"]["blocked"] == [APPROVED], "without an approved plan a held machine is only listed"
    assert writes(lab, mark) == []
    project.records.edit("machines", APPROVED, lambda text: text.replace(held_by_hand, ""))
    assert project.play("free", apply(plan_file="plan.json"))["Apply"]["changed"] is True
