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
