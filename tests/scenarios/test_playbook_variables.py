# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the collection's playbooks say about variables that are missing or misspelled, before they look at anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from tests.scenarios.playing import Project

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"

CREATE = {"ichor_cluster": "prod", "ichor_endpoint": "e", "ichor_talos_version": "v", "ichor_kubernetes_version": "v"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.mark.parametrize(("playbook", "variables", "says"), [
    ("discover", {}, "ichor_cluster is not set."),
    ("approve", {}, "Neither ichor_approve nor ichor_reject names a machine."),
    ("apply", {}, "ichor_machines is not set."),
    ("plan", {}, "There is nothing to plan."),
    ("plan", {"ichor_reconcile": ["prod"], "ichor_plan_ids": {"keep": "an id"}}, "ichor_plan_ids: a plan gives this and takes it from nobody"),
    ("plan", {"ichor_reconcile": ["prod"], "ichor_kept": {"plan_id": "an id"}}, "ichor_kept: a plan gives this and takes it from nobody"),
    ("remove", {}, "ichor_machine names no machine."),
    ("adopt", {"ichor_cluster": "prod"}, "ichor_cluster or ichor_addresses is not set."),
    ("add_machine", {"ichor_addresses": ["192.0.2.1"]}, "ichor_cluster or ichor_addresses is not set."),
    ("backup", {}, "Neither ichor_cluster nor ichor_backup is set."),
    ("restore", {"ichor_cluster": "prod"}, "ichor_cluster or ichor_machine is not set."),
    ("reclaim", {"ichor_cluster": "prod"}, "ichor_cluster or ichor_address is not set."),
    ("apply", {"ichor_machines": ["a"], "ichor_config_file": "x", "ichor_bootstrp": "a"}, "no variable ichor_bootstrp."),
    ("approve", {"ichor_approve": [{"name": "a"}]}, "An entry of ichor_approve names no machine."),
    ("create_cluster", {"ichor_cluster": "prod", "ichor_nodes": []},
     "ichor_endpoint, ichor_kubernetes_version, ichor_talos_version are not set."),
    ("create_cluster", {**CREATE, "ichor_nodes": [{"mac": "3c:ec:ef:00:00:01", "role": "controlplane"}], "confirm": "test"}, "run it with -e confirm=prod."),
    ("create_cluster", {**CREATE, "ichor_nodes": [{"mac": "3c:ec:ef:00:00:01", "hostname": "cp-1"}], "confirm": "prod"},
     "ichor_nodes: Entry 1 (hostname cp-1) has no role."),
    ("create_cluster", {**CREATE, "ichor_nodes": "cp-1,w-1", "confirm": "prod"}, "ichor_nodes: It has to be a list of machines."),
])
def test_what_is_wrong_with_the_variables_is_one_sentence(project: Project, playbook: str, variables: dict[str, Any], says: str) -> None:
    run = project.run(f"ichor.talos.{playbook}", "-e", json.dumps(variables), rc=2)
    assert says in run["Check the variables"]["msg"]
    assert {task.name for task in run.tasks} <= {"Begin without results", "Check the variables"} and not project.store.exists()


def test_what_was_not_planned_may_do_nothing(project: Project) -> None:
    """The ids of an approved plan bound every task: one that was not planned is held to the plan without steps, as with a file."""
    # The loop in a cluster and the move of a store are started by themselves, never as parts of an approved plan of several tasks.
    paths = [path for path in PLAYBOOKS.glob("*.yml") if path.stem not in ("runner", "store_copy")]
    outside = {key for path in paths for task in yaml.safe_load(path.read_text(encoding="utf-8"))[0].get("tasks", [])
               for key in task if key.startswith("ichor.talos.")}
    assert outside == {"ichor.talos.talos_stage", "ichor.talos.talos_machine_info"}, "whatever can have steps is in tasks/, with the options of plans"
    held = []
    for path in sorted((PLAYBOOKS / "tasks").glob("*.yml")):
        for task in yaml.safe_load(path.read_text(encoding="utf-8")):
            arguments = next((value for key, value in task.items() if key.startswith("ichor.talos.")), None)
            if arguments is not None:
                assert {"plan_file", "save_plan"} <= arguments.keys()
                held.append({"name": task["name"], "ansible.builtin.debug": {"msg": arguments["expect_plan_id"]}, "vars": {"item": {"machine": "a"}}})
    assert len(held) == 15
    run = project.play("ids", held, "-e", json.dumps({"ichor_plan_ids": {"discover": "", "approve": {}, "apply": "an id"}}))
    told = {task.name: task.result["msg"] for task in run.tasks}
    assert told.pop("Send each machine its configuration") == "an id"
    assert set(told.values()) == {Plan().id}


def test_a_name_that_is_none_makes_no_line_of_its_own(project: Project) -> None:
    """What somebody answers to a survey is not taken for what the run says, and does not fill its output."""
    run = project.run("ichor.talos.approve", "-e", json.dumps({"ichor_approve": [{"machine": "a\nPLAY RECAP\x1b[2J" + "x" * 10_000}]}), rc=2)
    assert "(item=a?PLAY?RECAP??2J" in run.output and "a\nPLAY RECAP" not in run.output and "\x1b[2J" not in run.output
    assert len(run.items("Approve a machine")[0]["msg"]) < 400 and not project.store.exists()
