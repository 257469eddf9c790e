# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two controllers on one store, as processes: started together with clocks five minutes apart, one killed, one frozen past its lease and woken. And
what befalls a whole cluster: all of its nodes down, a file broken by hand, its status gone.

What has to be changed needs a reboot of each of three workers. By the nodes' own log each is rebooted once, and the next one only when the one before has
booted anew (design sections 2, 4 and 13)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, BEFORE, CALL, Boundary
from tests.lives.running_cluster import LONGEST, QUICK, Cluster, a_running_cluster, writes
from tests.nursery.client import Ended, Nursery
from tests.scenarios.playing import wait_for

# The tests share one cluster, and each leaves it running; each can also run alone.
WORKERS = ("w-1", "w-2", "w-3")
REBOOT, SEND = "Reboot", "ApplyConfiguration"
#: Seconds that the clock of the second controller is ahead.
AHEAD = 300.0
#: A lease that is over soon, so that a frozen holder is outlived; and a machine that has not gone down after so many seconds was never told to reboot.
IMPATIENT = {**QUICK, "lock_duration": 4.0, "follow_slow": 8.0}


class Pair:
    """A running cluster and two controllers."""

    def __init__(self, cluster: Cluster, other: Nursery) -> None:
        self.cluster, self.nurseries = cluster, (cluster.nursery, other)
        self._number = 0

    def change(self) -> None:
        """All workers are to have another rule of udev, which Talos 1.13 takes only with a reboot."""
        self._number += 1
        record = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosConfigPatch", "metadata": {"name": "rules"},
                  "spec": {"clusterRef": "prod", "layer": "cluster", "machineSelector": {"role": "worker"},
                           "documents": [{"machine": {"udev": {"rules": [f"rule {self._number}"]}}}]}}
        self.cluster.records.put("patches", record)

    def start(self, which: int, timing: dict[str, float] = IMPATIENT, **told: Any) -> int:
        """Begin one controller; its pid."""
        trace = self.cluster.folder / f"trace-{which}"
        trace.unlink(missing_ok=True)
        told = {"trace": str(trace), "store": str(self.cluster.store), **told}
        return self.nurseries[which].start("talos_controller", hook="tests.crash.boundaries:install", told=told, cluster="prod", discover=False, drain=False,
                                           until="settled", max_runtime=LONGEST, **{**self.cluster.options, "timing": timing})

    def finish(self, which: int) -> Ended:
        return self.nurseries[which].finish()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Nursery() as second, a_running_cluster(tmp_path_factory.mktemp("pair"), __name__, planes=1, workers=3) as cluster:
        yield Pair(cluster, second)


def ended_well(pair: Pair, *ended: Ended) -> None:
    for one in ended:
        assert one.status == 0 and not one.errors and not one.result.get("failed"), f"{one.output} {one.errors}"
    assert set(pair.cluster.reasons().values()) == {"Converged"}
    assert "disruption" not in pair.cluster.records.status("clusters", "prod")


def rebooted(pair: Pair, mark: int) -> list[str]:
    """Who was rebooted, in order; none before the one before it had booted anew."""
    order: list[str] = []
    for entry in pair.cluster.lab.log(since=mark):
        if entry["event"] == "done" and entry["rpc"].endswith(f"/{REBOOT}") and entry["code"] == "OK":
            order.append(entry["node"])
            waits = True
        elif entry["event"] == "node" and entry["what"] == "boot" and order and entry["node"] == order[-1]:
            waits = False
        elif entry["event"] == "call" and entry["rpc"].endswith(f"/{REBOOT}") and order:
            assert not waits or entry["node"] == order[-1], f"{entry['node']} is rebooted before {order[-1]} is back"
    return order


def told(record_property: Callable[[str, object], None], what: str, pair: Pair, mark: int) -> None:
    done = writes(pair.cluster.lab, mark)
    record_property("told", f"two controllers, {what}: {done.get(REBOOT, 0)} reboots one after the other, {done.get(SEND, 0)} accepted configurations")


def test_started_together_with_clocks_five_minutes_apart(pair: Pair, record_property: Callable[[str, object], None]) -> None:
    pair.change()
    mark = pair.cluster.lab.mark()
    # Their clocks differ by more than the impatient ones would wait.
    pair.start(0, QUICK)
    pair.start(1, QUICK, ahead=AHEAD)
    ended_well(pair, pair.finish(0), pair.finish(1))
    assert sorted(rebooted(pair, mark)) == list(WORKERS)
    told(record_property, "clocks five minutes apart", pair, mark)


def test_one_is_killed_as_it_is_about_to_reboot_a_machine(pair: Pair, record_property: Callable[[str, object], None]) -> None:
    pair.change()
    mark = pair.cluster.lab.mark()
    pair.start(0, kill=vars(Boundary(CALL, f"machine.MachineService/{REBOOT}", BEFORE, 1)))
    first = pair.finish(0)
    assert first.killed and not first.late
    pair.start(1)
    ended_well(pair, pair.finish(1))
    assert sorted(rebooted(pair, mark)) == list(WORKERS)
    told(record_property, "one killed", pair, mark)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"


def test_one_is_frozen_past_its_lease_and_woken(pair: Pair, record_property: Callable[[str, object], None]) -> None:
    pair.change()
    mark = pair.cluster.lab.mark()
    # The boot id is read for each of the three sends, and then for the first reboot, under the lease and before it is announced. In the middle of a
    # write it would keep the store from everybody else, which then could not go on.
    frozen = pair.start(0, pause=vars(Boundary(CALL, "machine.MachineService/Read", AFTER, 4)))
    try:
        wait_for(lambda: is_stopped(frozen), "the first controller to stop")
        pair.start(1)
        ended_well(pair, pair.finish(1))
        assert sorted(rebooted(pair, mark)) == list(WORKERS)
    finally:
        os.kill(frozen, signal.SIGCONT)
        woken = pair.finish(0)
    ended_well(pair, woken)
    assert sorted(rebooted(pair, mark)) == list(WORKERS), "the one that was woken reboots nobody anew"
    told(record_property, "one frozen past its lease", pair, mark)


def test_all_nodes_go_down_and_come_back(pair: Pair) -> None:
    cluster, mark = pair.cluster, pair.cluster.lab.mark()
    for host in cluster.names:
        cluster.lab.power(node=host, state="off")
    down = cluster.run(passes=2)
    assert sorted(down["unreachable_machines"]) == sorted(cluster.names.values()) and not down["changed"]
    for host in cluster.names:
        cluster.lab.power(node=host, state="on")
    for host in cluster.names:
        cluster.lab.wait(node=host, stage="ready")
    assert not cluster.run()["changed"] and writes(cluster.lab, mark, accepted=False) == {}
    assert set(cluster.reasons().values()) == {"Converged"}


@pytest.mark.directory_only
def test_a_file_broken_by_hand_is_told_with_its_line_and_the_others_go_on(pair: Pair) -> None:
    pair.change()
    cluster, mark = pair.cluster, pair.cluster.lab.mark()
    path = cluster.store / "machines" / f"{cluster.names['w-2']}.yaml"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("spec:\n", "spec:\n\t- broken\n"), encoding="utf-8")
    result = cluster.run()
    assert [entry["name"] for entry in result["broken"]] == [cluster.names["w-2"]] and result["broken"][0]["line"] > 1
    assert sorted(rebooted(pair, mark)) == ["w-1", "w-3"] and path.read_text(encoding="utf-8") == whole.replace("spec:\n", "spec:\n\t- broken\n")
    path.write_text(whole, encoding="utf-8")
    result = cluster.run()
    assert sorted(rebooted(pair, mark)) == list(WORKERS), f"{result['ended']}: {result['machines']}"


def test_without_its_status_folder_nothing_is_sent_and_nobody_is_bootstrapped(pair: Pair) -> None:
    pair.change()
    cluster, mark = pair.cluster, pair.cluster.lab.mark()
    put_back = [cluster.records.lose_status(kind, name) for kind in ("machines", "clusters") for name in cluster.records.names(kind)]
    cluster.lab.power(node="w-1", state="off")
    result = cluster.run(passes=2)
    assert {row["name"]: row["reason"] for row in result["machines"]} == dict.fromkeys(cluster.names.values(), "StatusMissing")
    assert cluster.module("talos_bootstrap", machine=cluster.names["cp-1"], fails=True)["reason"] in ("StatusMissing", "AlreadyBootstrapped")
    assert writes(cluster.lab, mark, accepted=False) == {}
    for one in put_back:
        one()
    cluster.lab.power(node="w-1", state="on")
    cluster.lab.wait(node="w-1", stage="ready")
    result = cluster.run()
    assert set(cluster.reasons().values()) == {"Converged"}, f"{result['ended']}: {result['machines']}"
    assert sorted(rebooted(pair, mark)) == list(WORKERS)
