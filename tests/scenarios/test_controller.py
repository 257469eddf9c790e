# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller through the role: a narrower scope, a node that hangs, a run that is told to stop."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.scenarios.playing import Project, lab_of, machine, network_of, wait_for, writes
from tests.scenarios.sending import approved

NETWORK = network_of(__name__)
CONTROL_PLANE, FIRST, SECOND = "prod-5a1f0c3e", "prod-7be2944d", "prod-8c03a55e"
NODES = {"cp": machine(1, NETWORK, "5a1f0c3e"), "w-1": machine(2, NETWORK, "7be2944d"), "w-2": machine(3, NETWORK, "8c03a55e")}
#: Seconds, design section 18.
PROMISED = 5.0
TASK = "ichor.talos.reconcile : Reconcile the machines"


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield from lab_of(NODES, speed=20.0)


@pytest.fixture
def project(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("loop") / "project"
    project = Project(folder, kept_in=records.another(folder / "ichor"))
    approved(project, NETWORK, ((CONTROL_PLANE, "controlplane"), (FIRST, "worker"), (SECOND, "worker")))
    return project


def role(project: Project, **options: Any) -> str:
    """A playbook with the role and these variables, as a person writes it."""
    variables = {"reconcile_allow_loopback": True, "reconcile_timing": {**project.defaults["timing"], "call": 4.0}, "reconcile_clusters": ["prod"],
                 **{f"reconcile_{name}": value for name, value in options.items()}}
    path = project.folder / "reconcile.yml"
    path.write_text(json.dumps([{"name": "Reconcile", "hosts": "localhost", "gather_facts": False,
                                 "roles": [{"role": "ichor.talos.reconcile", "vars": variables}]}]), encoding="utf-8")
    return str(path)


def test_a_narrower_scope_and_a_node_that_hangs(lab: Lab, project: Project) -> None:
    before = project.records.everything()
    checked = project.run(role(project, save_plan="plan.json"), "--check")
    assert {target for dummy, target in checked.steps} == {CONTROL_PLANE, FIRST, SECOND}
    assert project.records.everything() == before and not writes(lab)

    one = project.run(role(project, machines=[FIRST], until="time", passes=1))
    assert one.steps == [("ApplyConfig", FIRST)] and lab.writes(accepted_only=True) == {"ApplyConfiguration": 1}

    lab.fault(node="w-2", kind="handshake-hang")
    began = time.monotonic()
    # The saved plan goes on: the remainder of what was approved is still approved.
    rest = project.run(role(project, plan_file="plan.json", fail_on=["unreachable"], passes=1, until="time"), rc=2)
    assert rest[TASK]["unreachable_machines"] == [SECOND] and rest[TASK]["reason"] == "UnreachableMachines"
    assert rest.steps == [("ApplyConfig", CONTROL_PLANE)] and lab.writes(accepted_only=True) == {"ApplyConfiguration": 2}
    assert time.monotonic() - began < 120, "one deadline a hanging node"


@pytest.mark.parametrize("whom", ["ansible-playbook", "the module"])
def test_told_to_stop_it_is_gone_within_seconds(lab: Lab, project: Project, whom: str) -> None:
    process = project.start(role(project, max_runtime=600, until="time"))
    wait_for(lambda: lab.writes(accepted_only=True).get("ApplyConfiguration") == 3 or process.poll() is not None, "the configurations to be sent")
    assert process.poll() is None, project.output()
    module = [pid for pid, command in project.processes().items() if "talos_controller" in command]
    assert module, project.processes()
    os.kill(process.pid if whom == "ansible-playbook" else module[-1], signal.SIGTERM)
    end = time.monotonic() + PROMISED
    while time.monotonic() < end and any(pid in project.processes() for pid in module):
        time.sleep(0.05)
    left = [pid for pid in module if pid in project.processes()]
    mark = lab.mark()
    process.wait(30)
    assert not left and not [entry for entry in lab.log(since=mark) if entry["event"] == "call"]
    assert not any(project.records.holders().values()) and "Traceback" not in project.output()
    again = project.run(role(project, passes=1, until="time"))
    assert not again.steps and lab.writes(accepted_only=True) == {"ApplyConfiguration": 3}
