# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines are events as ansible-runner makes them, which is what AWX shows: live, before the result of their task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.measure import run as measured
from tests.scenarios.awx_jobs import LARGEST, Awx
from tests.scenarios.playing import SECONDS, Project, network_of

NETWORK = network_of(__name__)
RUN = """
import json, sys
import ansible_runner
events = []
runner = ansible_runner.run(private_data_dir=sys.argv[1], playbook=sys.argv[2], quiet=True, event_handler=events.append)
print(json.dumps([{"event": event["event"], "counter": event["counter"], "stdout": event["stdout"]} for event in events]))
"""


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("runner") / "project")


def test_each_line_is_an_event_before_the_result(project: Project) -> None:
    playbook = project.write("look", [{"name": "Look", "ichor.talos.talos_discover": {"addresses": [f"{NETWORK}.9"], "register": False}}])
    data = project.folder / "runner"
    data.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run([sys.executable, "-c", RUN, str(data), playbook], capture_output=True, text=True, timeout=SECONDS,
                          env={**project.variables(), "PATH": path}, check=True)
    events = json.loads(done.stdout.strip().splitlines()[-1])
    line = next(event["counter"] for event in events if event["event"] == "verbose" and "probing 1 address" in event["stdout"])
    result = next(event["counter"] for event in events if event["event"] == "runner_on_ok")
    begun = next(event["counter"] for event in events if event["event"] == "runner_on_start")
    assert begun < line < result


def test_of_four_hundred_machines_each_is_in_its_event(tmp_path: Path) -> None:
    """None of them answers, which is the longest that there is to say; AWX would empty a result that is too large."""
    names = [f"m{number}" for number in range(400)]
    machines = [{"name": name, "address": f"{NETWORK}.{number % 250 + 1}", "uuid": f"5a1f0c3e-51c8-4f0e-8d39-3cecef{number:06x}", "serial": f"ACME-{number:04}",
                 "mac": f"3c:ec:ef:00:{number // 256:02x}:{number % 256:02x}"} for number, name in enumerate(names)]
    store = tmp_path / "ichor"
    measured("subjects/fleet.py", stdin=json.dumps({"store": str(store), "machines": machines}))
    awx = Awx({"ICHOR_STORE_PATH": str(store), "ICHOR_ALLOW_LOOPBACK": "true"})
    passed = awx.job("reconcile.yml", check=True, user="", reconcile_clusters=["prod"], reconcile_discover=False, reconcile_passes=1)
    written = awx.job("report.yml", ichor_report_path=str(tmp_path / "fleet.html"), ichor_report_plan=False)
    assert (passed.status, written.status) == ("successful", "successful"), passed.output + written.output
    for event in (*passed.events, *written.events):
        assert len(json.dumps(event)) < LARGEST and event["event_data"].get("res", True), event["event"]
    rows = passed.results("Reconcile the machines")[-1]["machines"]
    assert [row["name"] for row in rows] == sorted(names) and all(row["reason"] and row["stage"] for row in rows)
    assert (tmp_path / "fleet.html").stat().st_size < 2_000_000 and all(name in (tmp_path / "fleet.html").read_text() for name in names)


def test_a_limit_that_leaves_nothing_of_a_play_is_a_success() -> None:
    """A name that the inventory does not have is refused by Ansible itself, before any play."""
    job = Awx({}).job("reconcile.yml", limit="somebody", inventory="somebody ansible_connection=local\n")
    assert job.status == "successful" and not job.results("Reconcile the machines"), job.output
