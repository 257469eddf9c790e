# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop in a cluster: installed by its playbook, then the very command of its Deployment in an environment made from the execution
environment's own requirements, with the token of its account. No kubelet runs here, so the test starts the processes of two pods."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.ichor.talos.plugins.module_utils._decide.runner_install import meaning
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.objects import path_of
from ansible_collections.ichor.talos.plugins.module_utils._model.access_policies import RUNNER
from ansible_collections.ichor.talos.plugins.module_utils._model.access_roles import RUNNER_GRANTS

from tests.lab.control import Lab
from tests.parts.apiserver import ApiServer
from tests.scenarios.playing import QUICK, Project, lab_of, machine, network_of, wait_for
from tests.scenarios.sending import cluster
from tests.workshop import tree
from tests.workshop.environments import BUILD, ROOT, Environment, ready
from tests.workshop.interpreters import at_hand

NETWORK = network_of(__name__)
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "worker": machine(2, NETWORK, "7be2944d")}
NAMES = {"prod-5a1f0c3e": ("controlplane", "cp-1"), "prod-7be2944d": ("worker", "w-1")}
NAMESPACE = "ichor-system"
IMAGE = "images.example.org/talos-runner:1"
TASK = "ichor.talos.runner : Install the runner"
DEFINITION = yaml.safe_load((ROOT / "meta/execution-environment.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, own: ApiServer) -> Project:
    return Project(tmp_path_factory.mktemp("runner") / "project", environment={"ICHOR_STORE": "kubernetes", "ICHOR_STORE_KUBECONFIG": str(own.kubeconfig)})


def install(project: Project, *arguments: str, rc: int = 0, **variables: Any) -> dict[str, Any]:
    given = {"runner_image": IMAGE, "runner_timing": QUICK, **variables}
    return project.run("ichor.talos.runner_install", "--extra-vars", json.dumps(given), *arguments, rc=rc)[TASK]


@pytest.fixture(scope="module")
def installed(project: Project, own: ApiServer) -> dict[str, Any]:
    return install(project)


def written(server: ApiServer) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in server.audit.read_text().splitlines()]
    return [entry for entry in entries if entry["user"]["username"] == "admin" and entry["verb"] in ("create", "update", "patch", "delete")
            and "dryRun" not in entry["requestURI"] and entry["objectRef"]["resource"] != "selfsubjectreviews"]


def test_installing_is_shown_first_then_done_and_then_there_is_nothing_to_do(project: Project, own: ApiServer, tmp_path: Path) -> None:
    checked = install(project, "--check", "--diff")
    assert checked["changed"] and not written(own)
    actions = [step["target"] for step in checked["plan"]]
    assert actions == checked["objects"] and actions[0] == f"Namespace {NAMESPACE}" and actions[-1] == f"Deployment {RUNNER}"
    done = install(project)
    assert done["plan_id"] == checked["plan_id"] and done["changed"]
    again = install(project)
    assert not again["changed"] and again["plan"] == [] and "as wanted already" in again["msg"]
    changed = install(project, "--check", runner_replicas=3)
    assert [step["target"] for step in changed["plan"]] == [f"Deployment {RUNNER}"]

    # The same objects as files, for a GitOps tool.
    folder = tmp_path / "manifests"
    files = install(project, runner_manifests=str(folder))
    assert files["changed"] and len(list(folder.iterdir())) == len(files["objects"]) == len(actions)
    assert not install(project, runner_manifests=str(folder))["changed"]
    api = open_api(Access(kubeconfig=str(own.kubeconfig)))
    for path in sorted(folder.iterdir()):
        text = path.read_text(encoding="utf-8")
        assert "&id" not in text and "*id" not in text, "no anchors, for tools that overlay manifests"
        wanted = yaml.safe_load(text)
        there = api.get(path_of(wanted))
        assert there is not None and holds(meaning(there), wanted), path.name
    api.close()


def holds(there: Any, wanted: Any) -> bool:
    """Whether everything that is wanted is there; the API server fills in what is left open."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(name in there and holds(there[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(there, list) and len(there) == len(wanted) and all(map(holds, there, wanted))
    return bool(there == wanted)


def test_a_deployment_that_a_gitops_tool_keeps_is_left_to_it(project: Project, own: ApiServer, installed: dict[str, Any]) -> None:
    api = open_api(Access(kubeconfig=str(own.kubeconfig)))
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RUNNER}"
    mark: dict[str, Any] = {"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "fleet"}}}
    api.request("PATCH", path, mark, content_type="application/merge-patch+json")
    refused = install(project, rc=2, runner_replicas=4)
    assert refused["reason"] == "RecordTracked" and "Flux" in refused["msg"]
    assert install(project, "--check", runner_replicas=4, runner_override=True)["changed"]
    mark["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = None
    api.request("PATCH", path, mark, content_type="application/merge-patch+json")
    api.close()


# The command itself.


@pytest.fixture(scope="module")
def environment() -> Environment:
    """What the image would have: the requirements of the execution environment, and what its definition names beside them."""
    dependencies, options = DEFINITION["dependencies"], DEFINITION["options"]
    named = [dependencies["ansible_core"]["package_pip"], dependencies["ansible_runner"]["package_pip"], options["container_init"]["package_pip"]]
    path = BUILD / "image-requirements.txt"
    BUILD.mkdir(exist_ok=True)
    path.write_text("\n".join(named) + "\n", encoding="utf-8")
    return ready(at_hand(), "image", (str(path), f"meta/{dependencies['python']}"))


class Pod:
    """The processes of one pod of the Deployment."""

    def __init__(self, name: str, folder: Path, server: ApiServer, environment: Environment) -> None:
        container = json.loads(server.read(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RUNNER}"))["spec"]["template"]["spec"]["containers"][0]
        self.folder = folder / name
        self.folder.mkdir()
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig_for(server.token_of(RUNNER, NAMESPACE)))
        variables = {"PATH": f"{environment.folder / 'bin'}{os.pathsep}{os.defpath}", "ANSIBLE_COLLECTIONS_PATH": str(tree.link()), "LC_ALL": "C.UTF-8",
                     "ICHOR_STORE_KUBECONFIG": str(kubeconfig), "ICHOR_ALLOW_LOOPBACK": "true",
                     **{entry["name"]: entry["value"].replace("/tmp/ichor", str(self.folder)) for entry in container["env"]}}
        self.mark = f"POD={self.folder}"
        with (self.folder / "output").open("w") as output:
            self.process = subprocess.Popen(container["command"], cwd=self.folder, env={**variables, "POD": str(self.folder)}, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def says(self, text: str) -> bool:
        assert self.process.poll() is None, self.output()
        return text in self.output()

    def processes(self) -> list[str]:
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if self.mark.encode() in (folder / "environ").read_bytes():
                        found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:
                    continue
        return found

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def records(server: ApiServer, plural: str = "talosmachines") -> dict[str, dict[str, Any]]:
    items = json.loads(server.read(f"/apis/ichor.maesh.dev/v1alpha1/namespaces/{NAMESPACE}/{plural}"))["items"]
    return {item["metadata"]["name"]: item for item in items}


def holders(server: ApiServer) -> dict[str, str]:
    items = json.loads(server.read(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"))["items"]
    return {item["metadata"]["name"]: item["spec"].get("holderIdentity") or "" for item in items}


def reasons(server: ApiServer) -> set[str]:
    return {condition["reason"] for record in records(server).values() for condition in record.get("status", {}).get("conditions", [])
            if condition["type"] == "Ready"}


def test_the_command_of_the_deployment(lab: Lab, project: Project, own: ApiServer, installed: dict[str, Any], environment: Environment,
                                       tmp_path: Path) -> None:
    project.play("describe", [cluster(NETWORK), {"name": "Keys", "ichor.talos.talos_secrets": {"cluster": "prod"}}])
    first = Pod("first", tmp_path, own, environment)
    second = None
    try:
        wait_for(lambda: first.says("leading as"), "the first pod leads")
        second = Pod("second", tmp_path, own, environment)
        wait_for(lambda: second.says("standing by"), "the second pod stands by")

        # It finds the machines, a person approves them, it provisions them; the person bootstraps, and it sees them run.
        wait_for(lambda: set(records(own)) == set(NAMES), "the pending records")
        project.play("approve", [{"name": name, "ichor.talos.talos_machine_approval": {
            "machine": name, "role": role, "hostname": host, "install": {"disk": "/dev/sda"}}} for name, (role, host) in NAMES.items()])
        wait_for(lambda: lab.writes(accepted_only=True).get("ApplyConfiguration") == 2, "both machines were sent their configuration")
        project.play("bootstrap", [{"name": "Bootstrap", "ichor.talos.talos_bootstrap": {"machine": "prod-5a1f0c3e"}}])
        wait_for(lambda: reasons(own) == {"Converged"}, "both machines are Converged")

        # A stop ends it within ten seconds, and when it has ended, nothing of it is left and no lock is held.
        began = time.monotonic()
        first.process.send_signal(signal.SIGTERM)
        first.process.wait(60)
        took, left, held = time.monotonic() - began, first.processes(), holders(own)
        assert took < 10 and first.process.returncode == 0, f"{took} {first.output()}"
        assert left == [] and not [name for name, holder in held.items() if holder and f"process {first_pid(first)}" in holder]
        wait_for(lambda: second is not None and second.says("leading as"), "the second pod leads")
        second.process.send_signal(signal.SIGTERM)
        second.process.wait(60)
        assert set(holders(own).values()) == {""} and second.processes() == [] and second.process.returncode == 0
    finally:
        first.kill()
        if second is not None:
            second.kill()
    allowed_only(own)


def first_pid(pod: Pod) -> str:
    return (pod.folder / "alive").read_text().strip()


def allowed_only(server: ApiServer) -> None:
    """All that the runner asked was granted to it, and of specs it wrote only new ones."""
    granted = {(grant.group, resource, verb) for grant in RUNNER_GRANTS for resource in grant.resources for verb in grant.verbs}
    asked = set()
    for line in server.audit.read_text().splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] == f"system:serviceaccount:{NAMESPACE}:{RUNNER}" and "objectRef" in entry:
            thing = entry["objectRef"]
            assert entry["responseStatus"]["code"] not in (401, 403), entry
            asked.add((thing.get("apiGroup", ""), "/".join(filter(None, (thing["resource"], thing.get("subresource")))), entry["verb"]))
    assert asked - granted <= {("authentication.k8s.io", "selfsubjectreviews", "create")}, asked - granted
    assert ("ichor.maesh.dev", "talosmachines", "create") in asked and ("ichor.maesh.dev", "talosmachines/status", "patch") in asked
