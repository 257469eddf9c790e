# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory plugin, through ansible-inventory and a play: groups, variables that are data, a thousand machines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Record
from tests.lives.records import Namespace, Records
from tests.parts.apiserver import ApiServer
from tests.scenarios.playing import Project
from tests.scenarios.sending import opened

BUNDLE = Path(__file__).parents[1] / "vectors" / "secrets.yaml"
APPROVED = {"approvalState": "approved", "approvedBy": "ada", "approvedAt": "2026-01-01T00:00:00Z"}


def spec(number: int, **more: Any) -> dict[str, Any]:
    return {"clusterRef": "prod", "identity": {"uuid": f"5a1f0c3e-0000-4000-8000-{number:012d}", "serial": f"SN{number}"},
            "endpoint": f"192.0.2.{number % 250 + 1}", "role": "worker", **APPROVED, **more}


@pytest.fixture
def project(records: Records, tmp_path: Path) -> Project:
    return filled(Project(tmp_path / "project", kept_in=records.another(tmp_path / "project" / "ichor")))


def filled(project: Project) -> Project:
    """A store with four machines: one that runs, one that waits, a pending one and a rejected one; and a bundle in it."""
    store = opened(project.records, create=True)
    store.create(Record(CLUSTER, "prod", {"endpoint": "https://192.0.2.5:6443", "talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0",
                                          "secretsRef": {"name": "prod"}}))
    project.records.put_bundle(BUNDLE.read_bytes())
    ready = {"type": "Ready", "status": "True", "reason": "Converged", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    evil = "{{ lookup('ansible.builtin.pipe', 'touch evaluated') }}"
    records = {
        "runs": ({**spec(1), "role": "controlplane", "identity": {**spec(1)["identity"], "serial": evil}}, {"stage": "running", "conditions": [ready]}),
        "waits": (spec(2), {"stage": "maintenance"}),
        "asks": ({**spec(3), "approvalState": "pending"}, {"stage": "maintenance"}),
        "stranger": ({**spec(4), "approvalState": "rejected"}, {}),
    }
    for name, (content, status) in records.items():
        for key in ("approvedBy", "approvedAt") if content["approvalState"] != "approved" else ():
            content.pop(key)
        store.create(Record(MACHINE, name, content, status))
    (project.folder / "prod.ichor.yml").write_text(yaml.safe_dump({
        "plugin": "ichor.talos.machines", "keyed_groups": [{"key": "ichor_status.stage", "prefix": "kept"}]}), encoding="utf-8")
    return project


def inventory(project: Project, *arguments: str) -> str:
    ended = asked(project, *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def asked(project: Project, *arguments: str, source: str = "prod.ichor.yml") -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("ansible-inventory")
    ended = subprocess.run([str(program), "-i", source, *arguments], cwd=project.folder, env=project.variables(), text=True,
                           capture_output=True, check=False)
    assert "Traceback" not in ended.stderr
    return ended


def plain(value: Any) -> Any:
    """The value without the marks of ansible-inventory, which newer cores put on every text that is no template."""
    if isinstance(value, dict):
        return value["__ansible_unsafe"] if "__ansible_unsafe" in value else {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def test_machines_are_hosts_in_groups(project: Project) -> None:
    listed = json.loads(inventory(project, "--list"))
    groups = {name: content["hosts"] for name, content in listed.items() if "hosts" in content}
    assert groups == {
        "talos_machines": ["runs", "waits"], "talos_cluster_prod": ["runs", "waits"], "talos_role_controlplane": ["runs"], "talos_role_worker": ["waits"],
        "talos_stage_running": ["runs"], "talos_stage_maintenance": ["waits"], "talos_ready": ["runs"], "talos_not_ready": ["waits"],
        "talos_reason_Converged": ["runs"], "talos_pending": ["asks"], "talos_rejected": ["stranger"], "kept_running": ["runs"],
        "kept_maintenance": ["asks", "waits"]}
    variables = plain(listed["_meta"]["hostvars"]["runs"])
    assert variables["ichor_cluster"] == "prod" and variables["ichor_spec"]["role"] == "controlplane"
    assert variables["ichor_status"]["stage"] == "running" and variables["ansible_connection"] == "local"


def test_what_a_machine_said_is_data_in_every_play(project: Project) -> None:
    play = [{"name": "Use", "hosts": "talos_machines", "gather_facts": False, "tasks": [
        {"name": "Show", "ansible.builtin.debug": {"msg": "{{ ichor_spec.identity.serial }}"}},
        {"name": "Hand on", "ansible.builtin.set_fact": {"serial": "{{ ichor_spec.identity.serial }}"}},
        {"name": "Show again", "ansible.builtin.debug": {"var": "serial"}},
        {"name": "Ask", "ichor.talos.talos_machine_info": {"machine": "{{ inventory_hostname }}"}}]}]
    path = project.folder / "use.yml"
    path.write_text(yaml.safe_dump(play), encoding="utf-8")
    run = project.run("-i", "prod.ichor.yml", str(path), "--limit", "runs", rc=None)
    assert "lookup('ansible.builtin.pipe'" in run["Show"]["msg"] and "lookup('ansible.builtin.pipe'" in run["Show again"]["serial"]
    assert not list(project.folder.rglob("evaluated"))
    assert run["Ask"]["machines"][0]["name"] == "runs", run.output


def secrets_in(told: str) -> list[str]:
    keys = yaml.safe_load(BUNDLE.read_text(encoding="utf-8"))
    secrets = [keys["cluster"]["secret"], keys["trustdinfo"]["token"], *(pair["key"] for pair in keys["certs"].values())]
    return [secret for secret in secrets if secret in told]


def test_an_api_server_gives_the_same(project: Project, apiserver: ApiServer, tmp_path: Path) -> None:
    other = filled(Project(tmp_path / "other", kept_in=Namespace(apiserver, f"t-{uuid.uuid4().hex[:12]}")))
    first, second = (json.loads(inventory(one, "--list")) for one in (project, other))
    for listed in (first, second):
        for variables in listed["_meta"]["hostvars"].values():
            # Each store's own: which record a status is of.
            variables["ichor_status"].pop("recordUID", "")
    assert first == second and not secrets_in(json.dumps(second))
    other.environment["ICHOR_STORE_NAMESPACE"] = "nobody-is-here"
    assert "runs" not in asked(other, "--graph").stdout
    other.environment["ICHOR_STORE_KUBECONFIG"] = str(tmp_path / "none")
    ended = asked(other, "--graph")
    assert str(tmp_path / "none") in " ".join(ended.stderr.split()) and "runs" not in ended.stdout


def test_no_secret_is_in_it(project: Project) -> None:
    assert not secrets_in(inventory(project, "--list") + inventory(project, "--graph", "--vars"))


@pytest.mark.directory_only
def test_a_broken_record_is_named_and_the_others_stay(project: Project) -> None:
    (project.store / "machines" / "waits.yaml").write_text("kind: [", encoding="utf-8")
    (project.store / "machines" / "folder.yaml").mkdir()
    ended = asked(project, "--graph")
    assert "waits.yaml" in ended.stderr and "runs" in ended.stdout and "--waits" not in ended.stdout
    assert "folder.yaml: it is a folder. The machine folder is left out." in " ".join(ended.stderr.split())
    assert ". The machine waits is left out." in " ".join(ended.stderr.split())


@pytest.mark.directory_only
def test_a_store_that_is_not_there_is_one_sentence(project: Project) -> None:
    (project.folder / "prod.ichor.yml").write_text("plugin: ichor.talos.machines\nstore_path: nowhere\n", encoding="utf-8")
    ended = asked(project, "--graph")
    # Ansible itself tells it twice, in its line and as the cause of that.
    assert 1 <= " ".join(ended.stderr.split()).count("There is no store in") <= 2


@pytest.mark.directory_only
def test_a_relative_store_path_starts_at_the_folder_of_the_inventory_file(project: Project) -> None:
    (project.folder / "inventory").mkdir()
    (project.folder / "inventory" / "near.ichor.yml").write_text("plugin: ichor.talos.machines\nstore_path: ../ichor\n", encoding="utf-8")
    (project.folder / "inventory" / "none.ichor.yml").write_text("plugin: ichor.talos.machines\nstore_path: ichor\n", encoding="utf-8")
    assert "--runs" in asked(project, "--graph", source="inventory/near.ichor.yml").stdout
    none = asked(project, "--graph", source="inventory/none.ichor.yml")
    assert "--runs" not in none.stdout and "inventory/ichor" in none.stderr


@pytest.mark.directory_only
def test_a_thousand_machines(project: Project) -> None:
    for number in range(10, 1010):
        record = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosMachine", "metadata": {"name": f"m{number}"},
                  "spec": {**spec(number), "identity": {**spec(number)["identity"], "macs": ["02:00:00:00:00:01"]}}}
        (project.store / "machines" / f"m{number}.yaml").write_text(yaml.safe_dump(record), encoding="utf-8")
    told, graph = inventory(project, "--list"), inventory(project, "--graph")
    assert len(json.loads(told)["talos_machines"]["hosts"]) == 1002 and graph.count("|  |--m") >= 1000
    assert not secrets_in(told + graph)


def test_machines_can_be_selected_composed_and_grouped(project: Project) -> None:
    source = project.folder / "some.ichor.yml"
    source.write_text(yaml.safe_dump({
        "plugin": "ichor.talos.machines", "select": "[?status.stage=='running'].metadata.name", "compose": {"ansible_host": "ichor_spec.endpoint"},
        "groups": {"planes": "ichor_spec.role == 'controlplane'"}, "keyed_groups": [{"key": "ichor_spec.role", "prefix": "role"}]}), encoding="utf-8")
    told = json.loads(asked(project, "--list", source="some.ichor.yml").stdout)
    assert set(told["_meta"]["hostvars"]) == {"runs"} and told["planes"]["hosts"] == told["role_controlplane"]["hosts"] == ["runs"]
    assert plain(told["_meta"]["hostvars"]["runs"])["ansible_host"] == "192.0.2.2"

    source.write_text(yaml.safe_dump({"plugin": "ichor.talos.machines", "select": "[?"}), encoding="utf-8")
    wrong = asked(project, "--list", source="some.ichor.yml")
    assert "select is no JMESPath expression" in wrong.stderr and "runs" not in wrong.stdout


@pytest.mark.directory_only
def test_what_is_cached_is_the_same_and_holds_no_secret(project: Project) -> None:
    kept = project.folder / "kept"
    (project.folder / "prod.ichor.yml").write_text(yaml.safe_dump({
        "plugin": "ichor.talos.machines", "cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(kept), "cache_timeout": 3600}),
        encoding="utf-8")
    first = inventory(project, "--list")
    for path in kept.iterdir():
        path.write_text('["something else"]', encoding="utf-8")
    assert inventory(project, "--list") == first
    shutil.rmtree(project.store)
    again, exported = inventory(project, "--list"), inventory(project, "--list", "--export")
    files = [path.read_text(encoding="utf-8") for path in kept.iterdir()]
    assert again == first and json.loads(again)["talos_machines"]["hosts"] and files
    assert not secrets_in(first + exported + "".join(files)) and not (project.folder / "evaluated").exists()
    # Another choice is another entry, for which the store is needed.
    (project.folder / "prod.ichor.yml").write_text((project.folder / "prod.ichor.yml").read_text(encoding="utf-8") + "clusters: [test]\n", encoding="utf-8")
    assert "runs" not in asked(project, "--list").stdout
