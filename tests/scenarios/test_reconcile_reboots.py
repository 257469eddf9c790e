# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change that needs a reboot on three control planes, through the role and on real etcd: one after the other, without leave, and as a saved
plan that is stopped in the middle (design sections 11, 13 and 20)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.playing import wait_for
from tests.scenarios.running import CHECK, RUN, SEND, TASK, Kept, kept

# The tests share one cluster, and each leaves it running; each can also run alone.
PLANES = ("cp-1", "cp-2", "cp-3")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept(tmp_path_factory.mktemp("reboots") / "project", __name__, workers=1)


def needs_reboot(running: Kept, rule: str) -> None:
    """A patch of the control planes that Talos 1.13 takes only with a reboot."""
    running.cluster.module("talos_config_patch", name="rules", cluster="prod", layer="cluster", machine_selector={"role": "controlplane"},
                           documents=[{"machine": {"udev": {"rules": [rule]}}}])


def one_after_the_other(running: Kept, mark: int) -> None:
    """Each control plane was told to reboot once, ran again, and gave its evidence, before the next was told."""
    told: list[tuple[str, str]] = []
    for entry in running.lab.log(since=mark):
        if entry["event"] == "done" and str(entry["rpc"]).endswith("/Reboot"):
            told.append((entry["node"], "told"))
        elif entry["event"] == "node" and entry.get("what") == "stage" and entry["stage"] == "running" and entry["node"] in PLANES:
            told.append((entry["node"], "runs"))
    assert told == [(host, what) for host in PLANES for what in ("told", "runs")]
    running.gave_evidence(mark, "Reboot")


def test_they_restart_one_after_the_other_and_each_is_ready_before_the_next(running: Kept) -> None:
    needs_reboot(running, "one")
    life = running.life(*((action, host) for host in PLANES for action in ("ApplyDrift", "Reboot")))
    one_after_the_other(running, life.mark)
    running.converged()
    assert all("- one" in running.lab.config(node=host, which="active") for host in PLANES)


def test_without_leave_it_is_staged_and_the_reboots_are_a_plan_that_goes_on_after_a_stop(running: Kept) -> None:
    needs_reboot(running, "two")
    names = [running.cluster.names[host] for host in PLANES]
    life = running.life(*(("ApplyDrift", host) for host in PLANES), allow_reboot=False)
    assert life.run.result["blocked"] == names and {running.cluster.reason(host, "Ready") for host in PLANES} == {"RebootRequired"}
    assert "allow_reboot: true" in life.output

    plan = running.project.folder / "plan.json"
    approved = running.play(CHECK, save_plan=str(plan))[0]
    assert approved.steps == running.named(*(("Reboot", host) for host in PLANES))
    mark = running.lab.mark()
    stopped_after_the_first(running, mark, plan)

    # What is left of the approved plan is still approved, and a newer change is not among it.
    running.lab.edit(node="w-1", patch={"machine": {"sysctls": {"net.core.somaxconn": "1"}}}, mode="no-reboot")
    refused = running.play(CHECK, plan_file=str(plan), rc=2)[0].result
    assert refused["reason"] == "PlanChanged" and running.cluster.names["w-1"] in refused["msg"]
    check, rest, again = running.play(CHECK, RUN, RUN, plan_file=str(plan), clusters=[], machines=names)
    assert check.steps == rest.steps == running.named(("Reboot", "cp-2"), ("Reboot", "cp-3"))
    assert rest.calls == [("cp-2", "Reboot"), ("cp-3", "Reboot")] and not again.steps and not again.tried
    one_after_the_other(running, mark)
    last = running.run()
    assert last.calls == [("w-1", SEND)]
    running.converged()


def stopped_after_the_first(running: Kept, mark: int, plan: Any) -> None:
    """ansible-playbook is told to stop once the first control plane was told to reboot; one step of the plan is done then."""
    process = running.project.start(running.playbook(None, plan_file=str(plan)))
    wait_for(lambda: "Reboot" in running.lab.writes(since=mark, accepted_only=True) or process.poll() is not None, "the first reboot")
    os.kill(process.pid, signal.SIGTERM)
    process.wait(60)
    wait_for(running.project.over, "every process of the run to end")
    assert running.lab.writes(since=mark) == {"Reboot": 1}, running.project.output()
    saved = json.loads(plan.read_text(encoding="utf-8"))["plans"]
    assert [len(entry["done"]) for entry in saved] == [1] and TASK in running.project.output()
    running.lab.wait(node="cp-1", stage="ready")
