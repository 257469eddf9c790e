# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One command from machines in maintenance mode to a running cluster, three control planes on real etcd and two workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.parts.build import build
from tests.scenarios.playing import Project, Run, a_project, machine, network_of, writes

NETWORK = network_of(__name__)
HEADS = {"cp-1": "5a1f0c3e", "cp-2": "6b2f1d4e", "cp-3": "7c3f2e5e", "w-1": "8d4f3f6e", "w-2": "9e5f4a7e"}
NODES = {name: machine(number, NETWORK, head) for number, (name, head) in enumerate(HEADS.items(), 1)}
RECORDS = {name: f"prod-{head}" for name, head in HEADS.items()}
CONTROL_PLANES = ["cp-1", "cp-2", "cp-3"]


def known_as(number: int, name: str) -> dict[str, str]:
    """By what the person knows the machine: its UUID, its address or a MAC."""
    board = NODES[name]["machine"]
    return ({"uuid": board["uuid"].upper()}, {"address": NODES[name]["address"]}, {"mac": board["links"][0]["mac"]})[number % 3]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab.start({"nodes": NODES}, speed=20.0, etcd=str(build("etcd-3.6")))
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with a_project(tmp_path_factory.mktemp("create") / "project") as project:
        yield project


def variables(project: Project, **more: Any) -> str:
    return json.dumps({
        "ichor_cluster": "prod", "ichor_endpoint": "https://127.0.0.9:6443", "ichor_talos_version": "v1.13.9", "ichor_kubernetes_version": "v1.35.0",
        "ichor_ranges": [f"{NETWORK}.0/29"], "ichor_allow_loopback": True, "ichor_timing": project.defaults["timing"], **project.records.variables,
        "ichor_nodes": [{**known_as(number, name), "role": "controlplane" if name in CONTROL_PLANES else "worker", "hostname": name,
                         "install": {"disk": "/dev/sda"}} for number, name in enumerate(NODES)], **more})


@dataclass(frozen=True)
class Life:
    """The runs of one cluster's beginning."""

    check: Run
    left_by_check: bool
    created: Run
    again: Run
    accepted: dict[str, int]
    writes_again: int


def create(project: Project, *arguments: str, rc: int = 0, **more: Any) -> Run:
    return project.run("ichor.talos.create_cluster", "-e", variables(project, **more), *arguments, rc=rc)


@pytest.fixture(scope="module")
def life(lab: Lab, project: Project) -> Life:
    before = project.records.everything()
    check = create(project, "--check")
    left = project.store.exists() or project.records.everything() != before or bool(writes(lab))
    created = create(project, confirm="prod")
    accepted, mark = lab.writes(accepted_only=True), lab.mark()
    again = create(project, confirm="prod")
    return Life(check, left, created, again, accepted, len(writes(lab, mark)))


def test_the_plan_comes_first_and_is_what_happens(life: Life) -> None:
    assert not life.left_by_check
    steps = life.check.steps
    assert steps == life.created.steps
    assert [action for action, dummy in steps] == (["CreateCluster", "GenerateSecrets"] + ["CreateMachine"] * 5 + ["ApproveMachine"] * 5
                                                   + ["ApplyConfig"] * 5 + ["Bootstrap"])
    applied = [target for action, target in steps if action == "ApplyConfig"]
    assert applied == [RECORDS[name] for name in NODES]


def test_all_of_it_runs_then(life: Life, lab: Lab) -> None:
    machines = life.created["Bring the machines on their way"]["machines"]
    assert {row["name"]: (row["ready"], row["reason"]) for row in machines} == {name: (True, "Converged") for name in RECORDS.values()}
    assert life.accepted == {"ApplyConfiguration": 5, "Bootstrap": 1}
    assert "waits for the bootstrap of etcd" in life.created.output and "cp-1" in life.created.output


def test_the_second_run_changes_nothing(life: Life) -> None:
    assert life.again.steps == [] and life.again.changed is False and life.writes_again == 0


def test_it_is_not_done_by_accident(life: Life, project: Project) -> None:
    before = project.records.everything()
    refused = create(project, rc=2)
    assert "-e confirm=prod" in refused["Check the variables"]["msg"] and project.records.everything() == before
