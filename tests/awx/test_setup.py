# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects for AWX, as the playbook `awx_setup` writes them: arguments that awx.awx accepts, and references that lead to something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from tests.scenarios.playing import Project

ROOT = Path(__file__).parents[2]
OPTIONS = json.loads((Path(__file__).parent / "options.json").read_text(encoding="utf-8"))["modules"]
KINDS = ["execution_environment", "credential_type", "project", "inventory", "inventory_source", "job_template", "workflow_job_template",
         "workflow_job_template_node", "schedule"]
#: The fields of a question, as AWX's API documents and checks them (`survey_spec` of job templates).
QUESTION = {"question_name": str, "question_description": str, "required": bool, "type": str, "variable": str, "default": str, "min": int, "max": int,
            "choices": list}
TYPES = {"text", "textarea", "password", "multiplechoice", "multiselect", "integer", "float"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("awx") / "project")
    project.run("ichor.talos.awx_setup", "-e", json.dumps({
        "awx_setup_apply": False, "awx_setup_render_to": "awx", "awx_setup_scm_url": "https://git.example.com/talos.git", "awx_setup_image": "example/ee:1",
        "awx_setup_credentials": ["store of prod"], "awx_setup_clusters": ["prod", "edge"]}))
    return project.folder / "awx"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a first run has it: no credential, and nothing that only a person can say."""
    project = Project(tmp_path_factory.mktemp("bare") / "project")
    project.run("ichor.talos.awx_setup", "-e", json.dumps({"awx_setup_apply": False, "awx_setup_render_to": "awx", "awx_setup_image": "example/ee:1",
                                                          "awx_setup_scm_url": "https://git.example.com/talos.git", "awx_setup_clusters": "prod, edge"}))
    return project.folder / "awx"


def objects(written: Path, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((written / "objects" / f"{kind}.yml").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_module_accepts_the_arguments(written: Path, kind: str) -> None:
    """Names, types, choices and what is required, by the recorded options of awx.awx."""
    for entry in objects(written, kind):
        result = ArgumentSpecValidator(OPTIONS[kind]).validate(entry)
        assert not result.error_messages, f"{entry}: {result.error_messages}"
        # What has to be changed to fit was not what it should have been.
        assert {key: result.validated_parameters[key] for key in entry} == entry


def test_the_tasks_give_what_the_data_say(written: Path) -> None:
    """Each kind has one task, with every option that an entry of the kind has."""
    tasks = yaml.safe_load((ROOT / "roles/awx_setup/tasks/apply.yml").read_text(encoding="utf-8"))
    assert [next(key for key in task if key.startswith("awx.awx.")) for task in tasks] == [f"awx.awx.{kind}" for kind in KINDS]
    for kind, task in zip(KINDS, tasks):
        given = set(task[f"awx.awx.{kind}"])
        assert {key for entry in objects(written, kind) for key in entry} <= given <= set(OPTIONS[kind]), kind


def test_what_is_referred_to_is_made_before(written: Path) -> None:
    made = {kind: {entry["name"] for entry in objects(written, kind)} for kind in KINDS if kind != "workflow_job_template_node"}
    assert all(len(names) == len(objects(written, kind)) for kind, names in made.items())
    for job in objects(written, "job_template"):
        assert job["project"] in made["project"] and job["inventory"] in made["inventory"] and job["execution_environment"] in made["execution_environment"]
        assert (written / "project" / job["playbook"]).is_file(), job["playbook"]
        assert job["allow_simultaneous"] is False and job["job_slice_count"] == 1
    for source in objects(written, "inventory_source"):
        assert source["inventory"] in made["inventory"] and (written / "project" / source["source_path"]).is_file()
    for schedule in objects(written, "schedule"):
        assert schedule["unified_job_template"] in made["job_template"]
        assert schedule["rrule"].startswith("DTSTART:") and " RRULE:FREQ=" in schedule["rrule"] and "INTERVAL=" in schedule["rrule"]


def test_a_workflow_asks_between_plan_and_run(written: Path) -> None:
    jobs = {job["name"]: job for job in objects(written, "job_template")}
    entries = objects(written, "workflow_job_template_node")
    workflows = {entry["name"] for entry in objects(written, "workflow_job_template")}
    assert {entry["workflow_job_template"] for entry in entries} == workflows
    for workflow in workflows:
        made: dict[str, dict[str, Any]] = {}
        after: dict[str, str] = {}
        for entry in entries:
            if entry["workflow_job_template"] != workflow:
                continue
            if "success_nodes" in entry:
                # A link is an entry of its own, behind both of its nodes: the module would look for the links of an approval at its template, and fail.
                (after[entry["identifier"]],) = entry["success_nodes"]
                assert {entry["identifier"], after[entry["identifier"]]} <= made.keys() and not entry.keys() & {"approval_node", "unified_job_template"}
            else:
                made[entry["identifier"]] = entry
        path = ["plan"]
        while path[-1] in after:
            path.append(after[path[-1]])
        assert path[:2] == ["plan", "agree"] and path[-1] == "apply" and set(path) == set(made)
        assert made["agree"]["approval_node"].keys() == {"name", "description", "timeout"}
        templates = {name: jobs[node["unified_job_template"]] for name, node in made.items() if name != "agree"}
        # Artifacts and the workflow's own variables are dropped by a template that does not ask for them.
        assert all(template["ask_variables_on_launch"] is True for template in templates.values())
        assert templates["plan"]["job_type"] == "check" and templates["plan"]["diff_mode"] is True


def test_what_an_awx_was_seen_to_refuse_or_to_change_again_is_not_there(written: Path, bare: Path) -> None:
    """Seen with the API of AWX 24.6.1: an empty name of a credential is looked up; a job template needs a project whose playbooks are known; a workflow with
    the nodes as its option is changed by every run, for its approval."""
    assert all(value != "" for kind in KINDS for entry in objects(bare, kind) for key, value in entry.items() if key != "scm_branch")
    assert [entry["update_project"] for entry in objects(written, "project")] == [True]
    assert all("workflow_nodes" not in entry for entry in objects(written, "workflow_job_template"))
    # What a project's own requirements bring is put before what the image has, in another version or not at all.
    assert not (written / "project" / "collections").exists()


def test_a_list_may_be_a_text_as_a_command_line_gives_it(written: Path, bare: Path) -> None:
    for kind in ("job_template", "workflow_job_template"):
        lists = [[entry.get("extra_vars") for entry in objects(folder, kind)] for folder in (written, bare)]
        assert lists[0] == lists[1] and any(value and ["prod", "edge"] in value.values() for value in lists[1])


def test_surveys_have_the_fields_that_the_api_documents(written: Path) -> None:
    asked = [job for job in objects(written, "job_template") if job.get("survey_enabled")]
    assert asked
    for job in asked:
        assert job["survey_spec"].keys() == {"name", "description", "spec"} and job["survey_spec"]["spec"]
        for question in job["survey_spec"]["spec"]:
            assert question.keys() <= QUESTION.keys() and all(isinstance(value, QUESTION[key]) for key, value in question.items()), question
            assert question["type"] in TYPES and question["variable"].isidentifier() and question["question_name"]
            assert ("choices" in question) == question["type"].startswith("multi")


def test_credential_types_hold_no_secret_and_inject_what_the_modules_read(written: Path) -> None:
    known = (ROOT / "plugins/module_utils/_ansible/arguments.py").read_text(encoding="utf-8")
    variables = (ROOT / "playbooks/tasks/variables.yml").read_text(encoding="utf-8")
    for entry in objects(written, "credential_type"):
        fields = {field["id"]: field for field in entry["inputs"]["fields"]}
        assert set(entry["inputs"]["required"]) <= fields.keys()
        for name, text in entry["injectors"]["file"].items():
            assert fields[name.removeprefix("template.")]["secret"] is True and text == f"{{{{ {name.removeprefix('template.')} }}}}"
        assert all(f'"{name}"' in known for name in entry["injectors"].get("env", {}))
        assert all(f"'{name.removeprefix('ichor_')}'" in variables for name in entry["injectors"].get("extra_vars", {}))


def test_the_thin_playbooks_play_the_collection_s(written: Path) -> None:
    for path in (written / "project").glob("*.yml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name == "machines.ichor.yml":
            assert content["plugin"] == "ichor.talos.machines"
        elif "ansible.builtin.import_playbook" in content[0]:
            verb = content[0]["ansible.builtin.import_playbook"].removeprefix("ichor.talos.")
            assert (ROOT / "playbooks" / f"{verb}.yml").is_file(), path.name
        else:
            assert content[0]["roles"][0]["role"] == "ichor.talos.reconcile"
    assert yaml.safe_load((written / "execution-environment.yml").read_text(encoding="utf-8"))["version"] == 3


def test_what_only_a_person_can_say_is_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    run = project.run("ichor.talos.awx_setup", rc=2)
    assert "awx_setup_scm_url, awx_setup_image are not set" in run["ichor.talos.awx_setup : Check what only you can say"]["msg"]
    run = project.run("ichor.talos.awx_setup", "-e", "awx_setup_apply=false awx_setup_render_to=awx awx_setup_reconcile_minutes=0", rc=2)
    assert "awx_setup_reconcile_minutes is at least 2" in run["ichor.talos.awx_setup : Check the times"]["msg"] and not (project.folder / "awx").exists()
