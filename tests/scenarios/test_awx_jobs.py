# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One person plans, another approves, AWX runs exactly that: the workflow of new machines as ansible-runner carries it, on the Kubernetes store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.parts.apiserver import ApiServer, running
from tests.scenarios.awx_jobs import Awx
from tests.scenarios.playing import QUICK, Project, lab_of, machine, network_of, writes
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
CONTROL_PLANE, WORKER = "prod-5a1f0c3e", "prod-7be2944d"
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "worker": machine(2, NETWORK, "7be2944d")}
WANTED = {"ichor_approve": [{"machine": CONTROL_PLANE, "role": "controlplane", "hostname": "cp-1", "install": {"disk": "/dev/sda"}},
                            {"machine": WORKER, "role": "worker", "hostname": "w-1", "install": {"disk": "/dev/sda"}}],
          "ichor_bootstrap": CONTROL_PLANE}
PATCH = {"name": "Patch", "ichor.talos.talos_config_patch": {
    "name": "forwarding", "cluster": "prod", "layer": "cluster", "documents": [{"machine": {"sysctls": {"net.ipv4.ip_forward": "1"}}}]}}


@pytest.fixture(scope="module")
def own() -> Iterator[ApiServer]:
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES)


def records(server: ApiServer) -> dict[str, dict[str, Any]]:
    items = json.loads(server.read("/apis/ichor.maesh.dev/v1alpha1/namespaces/ichor-system/talosmachines"))["items"]
    return {item["metadata"]["name"]: item for item in items}


def test_plan_approval_and_run(tmp_path_factory: pytest.TempPathFactory, own: ApiServer, lab: Lab) -> None:
    environment = {"ICHOR_STORE": "kubernetes", "ICHOR_STORE_KUBECONFIG": str(own.kubeconfig)}
    project = Project(tmp_path_factory.mktemp("awx") / "project", environment=environment)
    project.play("cluster", [cluster(NETWORK), {"name": "Keys", "ichor.talos.talos_secrets": {"cluster": "prod"}}])
    awx = Awx(environment, {"ichor_allow_loopback": True, "ichor_timing": QUICK})

    # The schedule finds machines, and approves none.
    found = awx.job("discover.yml", user="", ichor_cluster="prod")
    assert found.status == "successful" and set(records(own)) == {CONTROL_PLANE, WORKER}
    assert awx.job("approve_planned.yml", user="", **WANTED).status == "failed"
    assert {record["spec"]["approvalState"] for record in records(own).values()} == {"pending"}

    # The plan: all of it is in the output, its ids go on, nothing is written.
    mark = lab.mark()
    planned = awx.job("plan.yml", check=True, user="ben", **WANTED)
    assert planned.status == "successful", planned.output
    for wanted in (f"approve machine: {CONTROL_PLANE}", f"apply config: {WORKER}", f"bootstrap: {CONTROL_PLANE}", "[cannot be undone]"):
        assert wanted in planned.output
    ids = planned.artifacts["ichor_plan_ids"]
    assert set(ids["approve"]) == {CONTROL_PLANE, WORKER} and ids["apply"] and ids["bootstrap"] and planned.artifacts["ichor_plan_changes"] is True
    assert writes(lab, mark) == [] and {record["spec"]["approvalState"] for record in records(own).values()} == {"pending"}

    # Agreed to: exactly that runs, and the record says who started it.
    approved = awx.job("approve_planned.yml", ichor_plan_ids=ids, **WANTED)
    assert approved.status == "successful", approved.output
    assert {(record["spec"]["approvedBy"], record["spec"]["approvedVia"]) for record in records(own).values()} == {("anna", "admin")}

    # The world changes between approval and run: nothing is sent, and the job says what would be done now.
    project.play("patch", [PATCH])
    changed = awx.job("apply.yml", ichor_plan_ids=ids, **WANTED)
    refused = changed.results("Send each machine its configuration")[-1]
    assert changed.status == "failed" and refused["reason"] == "PlanChanged" and "The plan now would be" in changed.output
    assert writes(lab, mark) == []
    gone = {"name": "forwarding", "cluster": "prod", "state": "absent", "allow_delete": True}
    project.play("unpatch", [{"name": "Patch", "ichor.talos.talos_config_patch": gone}])

    # Cancelled while a node keeps its answer back: a crash without notice, and no artifacts. The workflow is started again, plans what is left,
    # and nothing is sent twice.
    lab.fault(node="cp", kind="answer-hang", rpc="ApplyConfiguration")
    cancelled = awx.job("apply.yml", cancel_at=f"apply config: {CONTROL_PLANE}", ichor_plan_ids=ids, **WANTED)
    assert cancelled.status == "canceled" and cancelled.artifacts == {}
    lab.clear(node="cp")
    replanned = awx.job("plan.yml", check=True, **WANTED)
    assert replanned.status == "successful", replanned.output
    applied = awx.job("apply.yml", ichor_plan_ids=replanned.artifacts["ichor_plan_ids"], **WANTED)
    assert applied.status == "successful", applied.output
    received = [(entry["node"], str(entry["rpc"]).rpartition("/")[2]) for entry in lab.log(event="call") if entry.get("kind") == "write"]
    assert sorted(received) == [("cp", "ApplyConfiguration"), ("cp", "Bootstrap"), ("worker", "ApplyConfiguration")]
    assert lab.state(node="cp")["stage"] == lab.state(node="worker")["stage"] == "running"
