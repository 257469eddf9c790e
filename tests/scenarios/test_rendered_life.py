# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first life from records alone: keys, patches, machines that run what the records say; and patches that cannot render."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._node.issue import credentials_from_bundle
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from tests.lab.control import Lab
from tests.lives.records import Folder
from tests.scenarios.playing import Project, Run, a_project, lab_of, machine, network_of, writes
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
CONTROL_PLANE, WORKER = "prod-5a1f0c3e", "prod-7be2944d"
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "worker": machine(2, NETWORK, "7be2944d")}
MACHINES = [CONTROL_PLANE, WORKER]
PATCHES: dict[str, dict[str, Any]] = {
    "sysctls": {"documents": [{"machine": {"sysctls": {"vm.max_map_count": "262144"}}}]},
    "time": {"layer": "machine", "machine_selector": {"role": "worker"},
             "documents": [{"apiVersion": "v1alpha1", "kind": "TimeSyncConfig", "ntp": {"servers": ["192.0.2.123"]}}]},
}
BAD = [{"machine": {"kubelet": {"nodeIP": {"validSubnets": ["nonsense"]}}}}]


def patch(name: str, **options: Any) -> dict[str, Any]:
    return {"name": f"Patch {name}", "ichor.talos.talos_config_patch": {"name": name, "cluster": "prod", **options}}


KEYS = {"name": "Keys", "ichor.talos.talos_secrets": {"cluster": "prod"}}
RECORDS = [cluster(NETWORK), KEYS, {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}]
APPROVE = [{"name": f"Approve {name}", "ichor.talos.talos_machine_approval": {
    "machine": name, "role": role, "hostname": host, "install": {"disk": "/dev/sda"}}}
    for name, role, host in ((CONTROL_PLANE, "controlplane", "cp-1"), (WORKER, "worker", "w-1"))]
WRITE = [patch(name, **options) for name, options in PATCHES.items()]
INFO = {"name": "Compare", "ichor.talos.talos_config_info": {"cluster": "prod"}}
APPLY = {"name": "Apply", "ichor.talos.talos_maintenance_apply": {"machines": MACHINES}}
CHECKED = [*RECORDS, *WRITE, *APPROVE, APPLY]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


@dataclass(frozen=True)
class Life:
    """The runs that took the machines from records to running."""

    checks: tuple[Run, Run]
    written_by_checks: bool
    records: Run
    applied: Run
    writes: dict[str, int]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with a_project(tmp_path_factory.mktemp("rendered") / "project") as project:
        yield project


@pytest.fixture(scope="module")
def life(lab: Lab, project: Project) -> Life:
    project.play("cluster", [cluster(NETWORK)])
    before, mark = project.records.everything(), lab.mark()
    checks = (project.play("check", CHECKED, "--check"), project.play("check", CHECKED, "--check"))
    written = project.records.everything() != before or bool(writes(lab, mark))
    records = project.play("records", [*RECORDS, *WRITE, *APPROVE, KEYS])
    applied = project.run("ichor.talos.apply", "-e", json.dumps({
        "ichor_machines": MACHINES, "ichor_bootstrap": CONTROL_PLANE, **project.records.variables, "ichor_allow_loopback": True,
        "ichor_timing": project.defaults["timing"]}))
    return Life(checks, written, records, applied, lab.writes(accepted_only=True))


def states(result: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["reason"] for entry in result["configs"]}


def test_a_check_run_plans_with_keys_that_do_not_exist_yet(life: Life) -> None:
    first, second = life.checks
    assert ("GenerateSecrets", "prod") in first.steps and ("ApplyConfig", WORKER) in first.steps
    assert first["Apply"]["plan_id"] == second["Apply"]["plan_id"]
    assert not life.written_by_checks


def test_running_machines_run_what_the_records_say(life: Life, project: Project) -> None:
    assert not isinstance(project.records, Folder) or (project.store / "secrets" / "prod.yaml").stat().st_mode & 0o777 == 0o600
    assert life.records["Keys"]["changed"] is False  # the second time
    assert sorted(life.applied.steps) == [("ApplyConfig", CONTROL_PLANE), ("ApplyConfig", WORKER), ("Bootstrap", CONTROL_PLANE)]
    assert life.writes == {"ApplyConfiguration": 2, "Bootstrap": 1}
    compared = project.play("compare", [INFO])
    assert states(compared["Compare"]) == {CONTROL_PLANE: "Converged", WORKER: "Converged"}
    assert all(entry["in_sync"] for entry in compared["Compare"]["configs"])
    keys = yaml.safe_load(project.records.bundle())
    for secret in (keys["cluster"]["secret"], keys["trustdinfo"]["token"], keys["certs"]["os"]["key"]):
        assert secret not in compared.output and secret not in str(compared.tasks)


def test_a_patch_that_cannot_render_is_refused_and_nothing_is_written(life: Life, project: Project) -> None:
    before = project.records.everything()
    refused = project.play("bad", [patch("bad", documents=BAD, machine_selector={"role": "worker"})], rc=2)["Patch bad"]
    assert refused["reason"] == "RenderFailed" and WORKER in refused["msg"] and CONTROL_PLANE not in refused["msg"]
    assert project.records.everything() == before


def test_the_same_patch_behind_the_module_holds_whom_it_selects(life: Life, lab: Lab, project: Project) -> None:
    project.records.put("patches", {
        "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosConfigPatch", "metadata": {"name": "bad"},
        "spec": {"clusterRef": "prod", "layer": "cluster", "machineSelector": {"role": "worker"}, "documents": BAD}})
    mark = lab.mark()
    run = project.play("behind", [INFO, {**APPLY, "ignore_errors": True}])
    assert states(run["Compare"]) == {CONTROL_PLANE: "Converged", WORKER: "RenderFailed"}
    assert "nodeIP subnet is not valid" in {entry["name"]: entry["message"] for entry in run["Compare"]["configs"]}[WORKER]
    assert run["Compare"]["blocked"] == run["Apply"]["blocked"] == [WORKER]
    assert writes(lab, mark) == []
    # a patch that fails for another cause than itself is not refused
    assert project.play("other", [patch("harmless", documents=[{"machine": {"sysctls": {"a.b": "1"}}}])])["Patch harmless"]["changed"] is True
    for name in ("bad", "harmless"):
        project.records.remove("patches", name)


def test_drift_is_exactly_what_was_changed(life: Life, project: Project) -> None:
    run = project.play("drift", [
        patch("harmless", documents=[{"machine": {"sysctls": {"a.b": "2"}, "env": {"PASSWORD_OF_PROXY": "x1"}}}]), INFO,
        {"name": "Strict", "ignore_errors": True, "ichor.talos.talos_config_info": {"cluster": "prod", "fail_on": ["drift"]}}])
    assert states(run["Compare"]) == {CONTROL_PLANE: "Drifted", WORKER: "Drifted"}
    for entry in run["Compare"]["configs"]:
        assert {(one["path"], one["running"]) for one in entry["differences"]} == {("machine.sysctls.[a.b]", None), ("machine.env.PASSWORD_OF_PROXY", None)}
    assert run["Strict"]["reason"] == "DriftFound"
    project.records.remove("patches", "harmless")


def by_hand(project: Project, address: str, text: str) -> None:
    """What a person does with `talosctl apply-config` behind the back of the records."""
    async def apply() -> None:
        nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
        credentials = credentials_from_bundle(project.records.bundle(), now=time.time())
        async with nodes.authenticated(Endpoint(address, 50000), credentials) as session:
            await session.apply(text.encode(), "NO_REBOOT")
        await nodes.close()

    asyncio.run(apply())


def otherwise(text: str) -> str:
    """The same with keys and documents in another order, other quotes and indentation, no comments, and a default written out."""
    documents = list(yaml.safe_load_all(text))
    documents[0]["machine"].setdefault("time", {})["disabled"] = False
    return yaml.safe_dump_all(documents[:1] + documents[:0:-1], sort_keys=True, default_style='"')


def test_what_is_written_otherwise_on_the_node_is_no_drift_and_what_is_changed_is_shown_alone(life: Life, lab: Lab, project: Project) -> None:
    text = lab.config(node="cp", which="active")
    try:
        by_hand(project, NODES["cp"]["address"], otherwise(text))
        assert lab.config(node="cp", which="active") == otherwise(text) != text
        run = project.play("otherwise", [INFO])["Compare"]
        assert states(run) == {CONTROL_PLANE: "Converged", WORKER: "Converged"} and all(entry["in_sync"] for entry in run["configs"])
        changed = re.sub(r"(kube-scheduler:v\d+\.\d+\.)\d+", r"\g<1>99", otherwise(text)).replace('"262144"', '"262145"')
        by_hand(project, NODES["cp"]["address"], changed)
        run = project.play("changed", [INFO])["Compare"]
        assert states(run) == {CONTROL_PLANE: "Drifted", WORKER: "Converged"}
        found = next(entry for entry in run["configs"] if entry["name"] == CONTROL_PLANE)
        assert [(one["path"], one["running"], one["wanted"]) for one in found["differences"]] == [("machine.sysctls.[vm.max_map_count]", "262145", "262144")]
        assert [one["path"] for one in found["newer_images"]] == ["cluster.scheduler.image"] and found["authority"] == []
    finally:
        by_hand(project, NODES["cp"]["address"], text)


def test_a_ca_that_a_node_accepts_beside_its_own_is_shown_and_never_applied(life: Life, lab: Lab, project: Project) -> None:
    text, other = lab.config(node="worker", which="active"), yaml.safe_load(project.records.bundle())["certs"]["etcd"]["crt"]
    try:
        by_hand(project, NODES["worker"]["address"], rotating(text, other))
        mark = lab.mark()
        run = project.play("rotating", [INFO, {**APPLY, "ignore_errors": True}])
        assert states(run["Compare"]) == {CONTROL_PLANE: "Converged", WORKER: "AuthorityMismatch"}
        found = next(entry for entry in run["Compare"]["configs"] if entry["name"] == WORKER)
        assert [one["path"] for one in found["authority"]] == ["machine.acceptedCAs.0.crt"] and found["differences"] == []
        assert writes(lab, mark) == []
    finally:
        by_hand(project, NODES["worker"]["address"], text)


def rotating(text: str, certificate: str) -> str:
    """The same in the middle of a rotation: another CA is accepted beside the node's own."""
    documents = list(yaml.safe_load_all(text))
    documents[0]["machine"]["acceptedCAs"] = [{"crt": certificate}]
    return yaml.safe_dump_all(documents, sort_keys=False)


def test_credentials_from_the_bundle_are_taken_by_the_nodes(life: Life, project: Project) -> None:
    issue = {"name": "Issue", "ichor.talos.talos_credentials": {"kind": "talosconfig", "cluster": "prod", "path": "talosconfig"}}
    run = project.play("credentials", [issue, {**issue, "name": "Again"}, {
        "name": "Use", "ichor.talos.talos_config_info": {"machines": MACHINES, "talosconfig": "talosconfig"}}])
    assert (run["Issue"]["changed"], run["Again"]["changed"]) == (True, False)
    assert (project.folder / "talosconfig").stat().st_mode & 0o777 == 0o600
    assert all(entry["compared"] for entry in run["Use"]["configs"])


@pytest.mark.directory_only
def test_a_vaulted_bundle_works_like_one_in_clear(life: Life, project: Project) -> None:
    password = project.folder / "password"
    password.write_text("words of the vault\n", encoding="utf-8")
    path = project.store / "secrets" / "prod.yaml"
    clear = path.read_bytes()
    vault = Path(sys.executable).with_name("ansible-vault")
    subprocess.run([str(vault), "encrypt", "--vault-password-file", str(password), str(path)], check=True, capture_output=True, env=project.variables())
    assert path.read_bytes().startswith(b"$ANSIBLE_VAULT")
    run = project.play("vaulted", [KEYS, INFO], "--vault-password-file", str(password))
    assert run["Keys"]["changed"] is False
    assert all(entry["compared"] for entry in run["Compare"]["configs"])
    told = project.play("without", [KEYS], rc=2)["Keys"]
    assert told["reason"] == "SecretsUnavailable"
    path.write_bytes(clear)
    path.chmod(0o600)
