# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stopping ansible-playbook, by whatever signal: within five seconds no process, no lease and no later call to a node."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from tests.lab.control import Lab
from tests.lives.records import Records
from tests.scenarios.playing import Project, lab_of, machine, network_of, wait_for
from tests.scenarios.sending import NODE, apply_task, approved, generated, hold, opened, received

NETWORK = network_of(__name__)
#: Seconds, design section 18.
PROMISED = 5.0
#: Seconds for which the send of a run that was killed counts as still under way.
FRESH = 6.0
APPLY = "/machine.MachineService/ApplyConfiguration"


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield from lab_of({NODE: machine(1, NETWORK, "5a1f0c3e")})


@pytest.fixture
def project(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("stop") / "project"
    return Project(folder, kept_in=records.another(folder / "ichor"))


def leases(project: Project) -> list[str]:
    """Leases that somebody holds."""
    return [name for name, holder in project.records.holders().items() if holder]


STOPS = pytest.mark.parametrize("stop", [
    pytest.param(lambda pid: os.kill(pid, signal.SIGTERM), id="SIGTERM"),
    pytest.param(lambda pid: os.kill(pid, signal.SIGINT), id="SIGINT"),
    pytest.param(lambda pid: os.kill(pid, signal.SIGKILL), id="SIGKILL"),
    pytest.param(lambda pid: os.killpg(pid, signal.SIGINT), id="SIGINT-to-the-group"),
])


def stopped(lab: Lab, project: Project, process: subprocess.Popen[str], stop: Callable[[int], None]) -> None:
    """Within the time that is promised there is no process and no lease, and from then on no call."""
    stop(process.pid)
    end = time.monotonic() + PROMISED
    while time.monotonic() < end and (project.processes() or leases(project)):
        time.sleep(0.05)
    left, held, mark = project.processes(), leases(project), lab.mark()
    process.wait(10)
    assert left == {} and held == []
    assert lab.log(since=mark, event="call") == []
    assert "Traceback" not in project.output()


@STOPS
def test_a_run_that_is_stopped_while_it_looks_again_and_again(lab: Lab, project: Project, stop: Callable[[int], None]) -> None:
    """It would call the node every few tenths of a second for ever."""
    project.defaults["timing"]["follow"] = 0.1
    opened(project.records, create=True)
    process = project.start(project.write("follow", [{"name": "Follow", "ichor.talos.talos_stage": {
        "address": f"{NETWORK}.1", "follow": True, "until": "running"}}]))
    wait_for(lambda: len(lab.log(event="call")) > 30 or process.poll() is not None, "the node to be looked at several times")
    assert process.poll() is None, project.output()
    stopped(lab, project, process, stop)


@STOPS
def test_a_run_that_is_stopped_in_the_middle_of_a_send(lab: Lab, project: Project, stop: Callable[[int], None]) -> None:
    approved(project, NETWORK)
    (project.folder / "cp.yaml").write_text(generated("controlplane"), encoding="utf-8")
    hold(lab)
    before = received(lab)
    process = project.start(project.write("apply", [apply_task(config_file="cp.yaml")]))
    while received(lab) == before and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None, project.output()
    assert leases(project), "a control plane is sent to under the cluster's lease"

    stopped(lab, project, process, stop)
    mark = lab.mark()
    assert received(lab) == before + 1

    # The next run goes on from what is there: the node was never heard to accept, so the same bytes may go once more.
    lab.hold(node=NODE, phase="apply", held=False)
    # It waits until the stopped one cannot be sending any more, and says so.
    project.defaults["timing"] |= {"apply": FRESH, "sending_fresh": FRESH}
    again = project.play("again", [apply_task(config_file="cp.yaml")], rc=None)
    while again["Apply"]["reason"] == "SendingUnconfirmed" and again.rc:
        again = project.play("again", [apply_task(config_file="cp.yaml")], rc=None)
    assert again.rc == 0, again.output
    assert len(lab.log(since=mark, event="call", rpc=APPLY)) <= 1
    assert lab.writes(accepted_only=True) == {"ApplyConfiguration": 1}
