# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first life with its records in a real API server: from no store at all to machines that run, and to a pass that writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.parts.apiserver import ApiServer
from tests.scenarios.playing import Project, lab_of, machine, network_of, writes
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
CONTROL_PLANE, WORKER = "prod-5a1f0c3e", "prod-7be2944d"
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "worker": machine(2, NETWORK, "7be2944d")}
APPROVE = [{"name": f"Approve {name}", "ichor.talos.talos_machine_approval": {
    "machine": name, "role": role, "hostname": host, "install": {"disk": "/dev/sda"}}}
    for name, role, host in ((CONTROL_PLANE, "controlplane", "cp-1"), (WORKER, "worker", "w-1"))]
LIFE = [cluster(NETWORK), {"name": "Keys", "ichor.talos.talos_secrets": {"cluster": "prod"}},
        {"name": "Discover", "ichor.talos.talos_discover": {"cluster": "prod"}}, *APPROVE,
        {"name": "Apply", "ichor.talos.talos_maintenance_apply": {"machines": [CONTROL_PLANE, WORKER], "fail_on": ["blocked", "unreachable"]}}]
FOLLOW = [{"name": "Follow", "ichor.talos.talos_stage": {"machines": [CONTROL_PLANE, WORKER], "follow": True}},
          {"name": "Bootstrap", "ichor.talos.talos_bootstrap": {"machine": CONTROL_PLANE}},
          {"name": "Running", "ichor.talos.talos_stage": {"machines": [CONTROL_PLANE, WORKER], "follow": True, "until": "running"}}]
PASS = [{"name": "Pass", "ichor.talos.talos_controller": {"clusters": ["prod"], "passes": 1}}]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, own: ApiServer) -> Project:
    return Project(tmp_path_factory.mktemp("kube") / "project", environment={"ICHOR_STORE": "kubernetes", "ICHOR_STORE_KUBECONFIG": str(own.kubeconfig)})


def requests(server: ApiServer, since: int = 0) -> list[dict[str, Any]]:
    """What was asked of the API server by somebody other than itself."""
    lines = server.audit.read_text().splitlines()[since:]
    entries = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["user"]["username"] == "admin" and entry["stage"] == "ResponseComplete" and "readyz" not in entry["requestURI"]]


def mark(server: ApiServer) -> int:
    return len(server.audit.read_text().splitlines())


def written(server: ApiServer, since: int) -> list[str]:
    """Verb and resource of every request that changes something; asking who one is changes nothing."""
    return [f"{entry['verb']} {entry['objectRef']['resource']}" for entry in requests(server, since)
            if entry["verb"] not in ("get", "list", "watch") and entry["objectRef"]["resource"] != "selfsubjectreviews"]


def test_the_first_life(lab: Lab, project: Project, own: ApiServer) -> None:
    missing = project.play("none", [LIFE[2]], rc=2)["Discover"]
    assert missing["reason"] == "StoreMissing" and "does not know talosclusters" in missing["msg"]

    # A check run of all of it, before there is a store: every step is shown, nothing is written anywhere.
    since, at = mark(own), lab.mark()
    checked = project.play("check", LIFE, "--check")
    assert [action for action, dummy in checked.steps] == ["CreateCluster", "GenerateSecrets", "CreateMachine", "CreateMachine",
                                                           "ApproveMachine", "ApproveMachine", "ApplyConfig", "ApplyConfig"]
    assert written(own, since) == [] and writes(lab, at) == []

    done = project.play("life", [*LIFE, *FOLLOW])
    assert sorted(done.steps) == sorted([*checked.steps, ("Bootstrap", CONTROL_PLANE)])
    assert lab.writes(accepted_only=True) == {"ApplyConfiguration": 2, "Bootstrap": 1}
    assert lab.state(node="cp")["stage"] == lab.state(node="worker")["stage"] == "running"

    # Who approved is whom the API server saw.
    for dummy, record in records(own).items():
        assert (record["spec"]["approvedBy"], record["spec"]["approvedVia"]) == ("admin", "admin")
        assert record["status"]["stage"] == "running" and record["status"]["recordUID"] == record["metadata"]["uid"]

    # Again: nothing is changed, and nothing sent.
    since, at = mark(own), lab.mark()
    again = project.play("again", [*LIFE, *FOLLOW])
    assert not again.changed and again.steps == [] and writes(lab, at) == []

    # A pass over what has converged writes nothing.
    project.play("settle", PASS)
    since = mark(own)
    settled = project.play("pass", PASS)
    assert not settled.changed
    assert written(own, since) == [] and requests(own, since)

    # Locks were given back, and no key is anywhere but in the Secret.
    leases = json.loads(own.read("/apis/coordination.k8s.io/v1/namespaces/ichor-system/leases"))["items"]
    assert [lease["spec"].get("holderIdentity", "") for lease in leases] == [""] * len(leases) and leases
    secret = json.loads(own.read("/api/v1/namespaces/ichor-system/secrets/prod"))["data"]["secrets.yaml"]
    assert secret and secret not in json.dumps(records(own)) and secret not in done.output


def records(server: ApiServer) -> dict[str, dict[str, Any]]:
    items = json.loads(server.read("/apis/ichor.maesh.dev/v1alpha1/namespaces/ichor-system/talosmachines"))["items"]
    return {item["metadata"]["name"]: item for item in items}
