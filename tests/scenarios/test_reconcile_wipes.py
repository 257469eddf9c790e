# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of a running cluster that lose their disk, or look like it, through the role and on real etcd (design section 12)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.lives.running_cluster import HEADS, QUICK
from tests.scenarios.playing import machine
from tests.scenarios.running import CHECK, REMOVAL, RUN, SEND, Kept, kept

# The tests share one cluster, and each mends what it broke; each can also run alone.


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept(tmp_path_factory.mktemp("wipes") / "project", __name__)


def ids(running: Kept, host: str) -> dict[str, str]:
    """etcd's members by name, as a node lists them."""
    return {member["name"]: str(member["id"]) for member in running.lab.state(node=host)["etcd"]}


def test_the_disk_of_a_worker_and_of_a_control_plane(running: Kept) -> None:
    before = ids(running, "cp-1")
    running.cluster.wipe("w-1")
    running.cluster.wipe("cp-2")
    life = running.life(("RemoveEtcdMember", "cp-2"), ("Reinstall", "cp-2"), ("Reinstall", "w-1"))
    assert "a second equal reading of the wiped disk" in str(life.check.result["plan"])
    running.converged()
    after = ids(running, "cp-1")
    assert {name for name in after if after[name] != before[name]} == {"cp-2"}
    for host in ("w-1", "cp-2"):
        assert [event["type"] for event in running.cluster.events("NodeReinstalled", host)] == ["Warning"]
    assert len(running.cluster.events("StaleEtcdMemberRemoved", "cp-2")) == 1 and not running.cluster.events("StaleEtcdMemberRemoved", "w-1")


def test_state_wiped_keeps_the_member_and_state_not_found_sends_nothing(running: Kept) -> None:
    # etcd keeps its quorum meanwhile: a member without one is told as not healthy, which is a change in the record.
    before = ids(running, "cp-2")
    running.cluster.wipe("cp-1", "STATE")
    running.lab.hide_state(node="w-1")
    running.cluster.restart("w-1")
    life = running.life(("Resume", "cp-1"))
    # One warning in each of the four plans, and no more.
    assert life.output.count(f"warning: {running.cluster.names['w-1']}: The STATE partition is there") == 4
    assert life.run.row(running.cluster.names["w-1"])["reason"] == "StateNotFound" and life.run.result["blocked"] == [running.cluster.names["w-1"]]
    assert running.cluster.reason("cp-1", "Ready") == "Converged" and ids(running, "cp-2") == before
    running.lab.power(node="w-1", state="cycle")
    running.lab.wait(node="w-1", stage="ready")
    back = running.run()
    assert not back.steps and not back.tried
    running.converged()


def test_a_twin_elsewhere_while_the_machine_is_down_and_the_others_go_on(running: Kept) -> None:
    name, members, removed = running.cluster.names["cp-2"], ids(running, "cp-1"), running.cluster.events("StaleEtcdMemberRemoved")
    running.lab.power(node="cp-2", state="off")
    running.lab.twin(node="cp-2", name="twin", address=f"{running.cluster.network}.77",
                     machine=machine(2, running.cluster.network, HEADS[1])["machine"])
    running.lab.wait(node="twin", stage="maintenance")
    # It is even looked at: its address is one of those that discovery probes.
    listed = f"  discovery:\n    addresses:\n      - {running.cluster.network}.77\n"
    running.edit_record("prod", "  discovery:\n    addresses:\n", listed, kind="clusters")
    running.lab.edit(node="w-2", patch={"machine": {"sysctls": {"net.core.somaxconn": "1"}}}, mode="no-reboot")
    life = running.life(("ApplyDrift", "w-2"), discover=True)
    assert running.lab.log(since=life.mark, node="twin", event="call") and not running.lab.log(since=life.mark, node="twin", event="config")
    assert ids(running, "cp-1") == members and running.cluster.events("StaleEtcdMemberRemoved") == removed
    assert not running.cluster.status("cp-2").get("observedEndpoint") and len(running.cluster.records.names("machines")) == 5
    row = life.run.row(name)
    assert (row["ready"], row["reason"]) == (False, "NodeUnreachable") and life.run.result["unreachable_machines"] == [name]
    assert f"{running.cluster.network}.2:50000" in row["message"] and "refuses the connection" in row["message"]
    assert running.cluster.reason("cp-2", "NodeReachable") == "NodeUnreachable"
    running.lab.remove(node="twin")
    running.edit_record("prod", listed, "  discovery:\n    addresses:\n", kind="clusters")
    running.lab.power(node="cp-2", state="on")
    running.lab.wait(node="cp-2", stage="ready")
    back = running.run()
    assert not back.steps and not back.tried and not running.cluster.reason("cp-2", "NodeReachable")
    running.converged()


def test_runs_of_one_pass_pair_their_readings_and_a_machine_wiped_again_is_not_sent_twice(running: Kept) -> None:
    running.cluster.wipe("cp-3")
    running.cluster.wipe("w-1")
    running.lab.hold(node="w-1", phase="install")
    wanted = running.named(("RemoveEtcdMember", "cp-3"), ("Reinstall", "cp-3"), ("Reinstall", "w-1"))
    check, first = running.play(CHECK, RUN, passes=1)
    assert check.steps == first.steps == wanted and first.calls == [("w-1", SEND)]
    assert "a second equal reading" in " ".join(first.result["waiting_for"])

    running.lab.hold(node="w-1", phase="install", held=False)
    running.cluster.wipe("w-1")
    shift_first_reading(running, "cp-3", hours=3)
    second = running.run(passes=1)
    assert second.steps == wanted[:2] and not second.tried, "a first reading of long ago does not pair"
    row = second.row(running.cluster.names["w-1"])
    assert row["reason"] == "AwaitingInstall" and "trust: true" in row["message"]

    time.sleep(QUICK["follow"])
    third = running.run(passes=1)
    assert [method for dummy, method in third.calls] == [REMOVAL] and third.row(running.cluster.names["w-1"])["reason"] == "AwaitingInstall"
    running.cluster.module("talos_machine", machine=running.cluster.names["w-1"], trust=True)
    last, again = running.play(RUN, CHECK)
    assert sorted(last.calls) == [("cp-3", SEND), ("w-1", SEND)] and not again.steps
    running.converged()


def shift_first_reading(running: Kept, host: str, hours: int) -> None:
    """The first reading of a wipe is older than it was."""
    def change(status: dict[str, Any]) -> dict[str, Any]:
        seen = status["wipeSeen"]
        earlier = (datetime.fromisoformat(seen["time"]) - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
        return {**status, "wipeSeen": {**seen, "time": earlier}}

    running.cluster.records.change_status("machines", running.cluster.names[host], change)
