# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps the controller from acting on a running cluster, through the role and on real etcd: holds, a run that was cancelled, an etcd
that is lost (design sections 9, 11, 12 and 13)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lives.running_cluster import Cluster
from tests.scenarios.playing import Project, network_of, wait_for
from tests.scenarios.running import CHECK, RUN, SEND, Kept, kept

# The tests share one cluster, and each but the last mends what it broke; each can also run alone.
PLANES = ("cp-1", "cp-2", "cp-3")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    yield from kept(tmp_path_factory.mktemp("holds") / "project", __name__)


def drift(running: Kept, host: str, value: str) -> None:
    """By hand, as a person with talosctl."""
    running.lab.edit(node=host, patch={"machine": {"sysctls": {"net.core.somaxconn": value}}}, mode="no-reboot")


def hold(running: Kept, held: bool, *hosts: str) -> None:
    for host in hosts:
        running.cluster.module("talos_machine", machine=running.cluster.names[host], hold=held)


def test_a_held_machine_is_read_and_followed_and_its_drift_is_shown_and_nothing_is_sent(running: Kept) -> None:
    drifted, wiped = running.cluster.names["w-1"], running.cluster.names["w-2"]
    drift(running, "w-1", "1")
    running.cluster.wipe("w-2")
    hold(running, True, "w-1", "w-2")
    run = running.life().run
    assert not run.tried and run.result["blocked"] == [drifted, wiped]
    assert (run.row(drifted)["reason"], run.row(wiped)["reason"]) == ("Drifted", "ReprovisionBlocked")
    assert all("hold-apply" in run.row(name)["message"] for name in (drifted, wiped)) and "net.core.somaxconn" in str(run.result["diff"])

    hold(running, False, "w-2")
    running.lab.hold(node="w-2", phase="install")
    assert running.run(passes=1).calls == [("w-2", SEND)]
    hold(running, True, "w-2")
    running.lab.hold(node="w-2", phase="install", held=False)
    followed = running.run()
    assert not followed.tried and followed.row(wiped)["reason"] == "Converged" and followed.row(drifted)["reason"] == "Drifted"

    hold(running, False, "w-1", "w-2")
    released = running.run()
    assert released.steps == running.named(("ApplyDrift", "w-1")) and released.calls == [("w-1", SEND)]
    running.converged()


def test_a_cluster_that_is_announced_to_be_shut_down_gets_nothing(running: Kept) -> None:
    drift(running, "cp-2", "2")
    running.cluster.wipe("w-2")
    running.edit_record("prod", "  controlPlane:", "  hold: shutdown\n  controlPlane:", kind="clusters")
    check, run = running.play(CHECK, RUN)
    held = [running.cluster.names[host] for host in ("cp-2", "w-2")]
    assert not check.steps and not run.steps and not run.tried and run.result["blocked"] == held
    assert {run.row(name)["reason"] for name in held} == {"ClusterShuttingDown"}
    running.edit_record("prod", "  hold: shutdown\n", "", kind="clusters")
    assert sorted(running.run().calls) == [("cp-2", SEND), ("w-2", SEND)]
    running.converged()


def test_a_run_cancelled_during_the_step_of_one_control_plane_disturbs_no_other(running: Kept) -> None:
    for host in PLANES:
        drift(running, host, "3")
    wanted = running.named(*(("ApplyDrift", host) for host in PLANES))
    assert running.play(CHECK)[0].steps == wanted
    mark = running.lab.mark()
    running.lab.hold(node="cp-1", phase="apply")
    cancelled = running.project.start(running.playbook(RUN))
    wait_for(lambda: received(running, mark) or cancelled.poll() is not None, "the configuration to reach the first")
    # Whoever cancels a job ends ansible-playbook without a notice to the module.
    os.kill(cancelled.pid, signal.SIGKILL)
    cancelled.wait()
    following = running.project.start(running.playbook(RUN))
    wait_for(lambda: len(received(running, mark)) > 1 or following.poll() is not None, "the next run to send")
    assert set(received(running, mark)) == {"cp-1"}, "nobody else is disturbed while the first is at it"
    running.lab.hold(node="cp-1", phase="apply", held=False)
    run = running.project.finish(following)
    assert run.steps == wanted, run.output
    assert list(dict.fromkeys(received(running, mark))) == list(PLANES)
    running.converged()
    assert not running.cluster.run()["plan"]


def received(running: Kept, mark: int) -> list[str]:
    """The nodes that got a configuration, in order."""
    return [entry["node"] for entry in running.lab.log(since=mark, event="config")]


def test_the_only_control_plane_is_not_begun_empty_and_its_way_out_is_named(running: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "alone"
    records = running.cluster.records.another(folder / "ichor")
    project = Project(folder, environment=records.recorded, kept_in=records)
    cluster = Cluster(running.lab, running.cluster.nursery, folder, network_of(f"{__name__} alone"), 1, 0, prefix="x", kept_in=records)
    alone = Kept(cluster.create(), project)
    name = alone.cluster.names["xcp-1"]
    alone.cluster.wipe("xcp-1")
    check, run = alone.play(CHECK, RUN)
    assert not check.steps and not run.steps and not run.tried and run.result["blocked"] == [name]
    assert run.row(name)["reason"] == "ReprovisionBlocked" and "Restore etcd from a backup" in run.row(name)["message"]
    mark = alone.lab.mark()
    assert "one machine" in alone.cluster.run(discard_etcd="prod", fails=True)["msg"]
    assert "is prod" in alone.cluster.run(discard_etcd="other", machine=name, fails=True)["msg"] and not alone.lab.writes(since=mark)
    assert alone.run(discard_etcd="prod", machines=[name], passes=2).calls == [("xcp-1", SEND)]
    bootstrap = alone.cluster.module("talos_bootstrap", machine=name, fails=True)
    assert bootstrap["reason"] == "AlreadyBootstrapped" and "ichor.talos.etcd_restore" in bootstrap["msg"] and alone.lab.writes(since=mark) == {SEND: 1}
    alone.cluster.end()


def test_all_control_planes_wiped_are_never_begun_empty(running: Kept) -> None:
    for host in PLANES:
        running.cluster.wipe(host)
    run = running.life().run
    assert not run.tried and run.result["blocked"] == [running.cluster.names[host] for host in PLANES]
    for host in PLANES:
        row = run.row(running.cluster.names[host])
        assert row["reason"] == "ReprovisionBlocked" and "Restore etcd from a backup" in row["message"]
    bootstrap = running.cluster.module("talos_bootstrap", machine=running.cluster.names["cp-1"], fails=True)
    assert bootstrap["reason"] == "AlreadyBootstrapped" and not running.lab.etcd(node="cp-1")
    assert running.cluster.reason("w-1", "Ready") == "Converged"
