# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runners, of which one leads, and a person's own run on one cluster, with the records in a real API server. The one that leads stops at a boundary
of what it does: it is killed there, or frozen until its leases are over and the others have done all there was to do, and then woken.

What has to be changed needs a reboot of both workers. By the nodes' own log each is rebooted once, the second when the first has booted anew, and whoever
wakes sends nothing and changes no record, but for the events that tell what it did before (design sections 4, 13 and 18). The one moment at which a freeze
cannot be told is the one between the last look at the lock and the call (design section 13), so nobody is frozen there.

`ICHOR_TEST_STOPS` is at how many boundaries, evenly spread, the first one is killed, and at how many it is frozen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, BEFORE, CALL, REQUEST, Boundary, read_trace
from tests.lab.control import Lab
from tests.lives.records import Namespace
from tests.lives.running_cluster import LONGEST, QUICK, Cluster, writes
from tests.lives.test_two_controllers import IMPATIENT, is_stopped
from tests.nursery.client import Ended, Nursery
from tests.parts.apiserver import running
from tests.scenarios.playing import network_of, wait_for

NETWORK = network_of(__name__)
WORKERS = ["w-1", "w-2"]
STOPS = int(os.environ.get("ICHOR_TEST_STOPS", "2"))
REBOOT, SEND = "Reboot", "ApplyConfiguration"
FIRST, SECOND, PERSON = range(3)


class Runs:
    """A running cluster, two runners, and a person's run beside them."""

    def __init__(self, cluster: Cluster, records: Namespace, *others: Nursery) -> None:
        self.cluster, self.records, self.nurseries = cluster, records, (cluster.nursery, *others)
        self._number = 0

    def change(self) -> int:
        """Both workers are to have another rule of udev; the mark of the lab's log before anything is done about it."""
        self._number += 1
        self.cluster.plain("talos_config_patch", name="rules", cluster="prod", machine_selector={"role": "worker"},
                           documents=[{"machine": {"udev": {"rules": [f"rule {self._number}"]}}}])
        return self.cluster.lab.mark()

    def trace(self, which: int) -> Path:
        return self.cluster.folder / f"trace-{which}"

    def start(self, which: int, timing: dict[str, float] = IMPATIENT, **told: Any) -> int:
        """Begin one; its pid. Runners lead one after the other, the person's run asks nobody."""
        self.cluster.folder.mkdir(exist_ok=True)
        self.trace(which).unlink(missing_ok=True)
        leads = {} if which == PERSON else {"leader": "runner"}
        return self.nurseries[which].start(
            "talos_controller", hook="tests.crash.boundaries:install", told={"trace": str(self.trace(which)), "store": str(self.cluster.folder), **told},
            cluster="prod", discover=False, drain=False, until="settled", max_runtime=LONGEST, **leads, **{**self.cluster.options, "timing": timing})

    def finish(self, which: int) -> Ended:
        return self.nurseries[which].finish()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = Path(tmp_path_factory.mktemp("runs"))
    with running() as server, Lab.start({"nodes": {}}, speed=20.0) as lab, Nursery() as first, Nursery() as second, Nursery() as person:
        records = Namespace(server)
        yield Runs(Cluster(lab, first, folder, NETWORK, planes=1, workers=2, kept_in=records).create(), records, second, person)


def rebooted(runs: Runs, mark: int) -> list[str]:
    """Who was rebooted, in order; none before the one before it had booted anew."""
    order: list[str] = []
    down: set[str] = set()
    for entry in runs.cluster.lab.log(since=mark):
        if entry["event"] == "call" and entry["rpc"].endswith(f"/{REBOOT}"):
            assert not down - {entry["node"]}, f"{entry['node']} is rebooted while {down} is down"
        elif entry["event"] == "done" and entry["rpc"].endswith(f"/{REBOOT}") and entry["code"] == "OK":
            order.append(entry["node"])
            down.add(entry["node"])
        elif entry["event"] == "node" and entry["what"] == "boot":
            down.discard(entry["node"])
    return order


def ended_well(runs: Runs, mark: int, *ended: Ended) -> None:
    for one in ended:
        assert one.status == 0 and not one.errors and not one.result.get("failed"), f"{one.output} {one.errors}"
    cluster = runs.cluster
    assert set(cluster.reasons().values()) == {"Converged"} and "disruption" not in runs.records.status("clusters", "prod")
    assert sorted(rebooted(runs, mark)) == WORKERS


@pytest.fixture(scope="module")
def boundaries(runs: Runs) -> list[Boundary]:
    """What a runner that nobody disturbs comes to, up to its last reboot: the calls that change a node and the requests that change a record or lock."""
    mark = runs.change()
    runs.start(FIRST)
    ended_well(runs, mark, runs.finish(FIRST))
    found = [one for one in read_trace(runs.trace(FIRST)) if one.kind == REQUEST or one.what.rpartition("/")[2] in (REBOOT, SEND)]
    last = max(number for number, one in enumerate(found) if one.kind == CALL and one.side == AFTER)
    return found[:last + 1]


def spread(found: list[Boundary]) -> list[Boundary]:
    return [found[(2 * number + 1) * len(found) // (2 * STOPS)] for number in range(STOPS)]


def between_lock_and_call(found: list[Boundary], number: int) -> bool:
    """Whether the lock was looked at and the call that needs it has not begun."""
    here, following = found[number], found[number + 1:number + 2]
    return (here.kind, here.side) == (CALL, BEFORE) or here.side == AFTER and bool(following) and following[0].kind == CALL


def stopped_at(runs: Runs, boundary: Boundary) -> int:
    """The pid of the first runner, which leads and has come to that boundary and not further; the second runner and the person begin then."""
    pid = runs.start(FIRST, pause=vars(boundary))
    wait_for(lambda: is_stopped(pid), f"the first runner to come to: {boundary}")
    runs.start(SECOND)
    runs.start(PERSON)
    return pid


def test_the_api_server_of_the_store_is_restarted_in_the_middle(runs: Runs, boundaries: list[Boundary]) -> None:
    """The leader announces a reboot when its connections break, and nothing answers at first when it goes on."""
    announced = [one for one in boundaries if one.what.startswith("PATCH talosclusters/") and one.side == BEFORE][0]
    mark = runs.change()
    pid = runs.start(FIRST, timing=QUICK, pause=vars(announced))
    try:
        wait_for(lambda: is_stopped(pid), "the runner to announce a reboot")
        runs.records.server.stop()
    finally:
        os.kill(pid, signal.SIGCONT)
    runs.records.server.start()
    ended_well(runs, mark, runs.finish(FIRST))


def test_the_leader_is_killed_at_boundaries(runs: Runs, boundaries: list[Boundary], record_property: Callable[[str, object], None]) -> None:
    for boundary in spread(boundaries):
        mark = runs.change()
        os.kill(stopped_at(runs, boundary), signal.SIGKILL)
        first = runs.finish(FIRST)
        assert first.killed and not first.late
        ended_well(runs, mark, runs.finish(PERSON), runs.finish(SECOND))
    record_property("told", f"two runners and a person's run: the leader killed at {STOPS} of {len(boundaries)} boundaries, two reboots each time")


def test_the_leader_is_frozen_past_its_leases_and_woken(runs: Runs, boundaries: list[Boundary], record_property: Callable[[str, object], None]) -> None:
    for boundary in spread([one for number, one in enumerate(boundaries) if not between_lock_and_call(boundaries, number)]):
        mark = runs.change()
        frozen = stopped_at(runs, boundary)
        try:
            ended_well(runs, mark, runs.finish(PERSON), runs.finish(SECOND))
            woken, woken_at = runs.cluster.lab.mark(), time.time()
        finally:
            os.kill(frozen, signal.SIGCONT)
            first = runs.finish(FIRST)
        assert first.status in (0, 1) and first.result.get("reason", "") in ("", "LockHeld"), f"{boundary}: {first.output} {first.errors}"
        assert writes(runs.cluster.lab, woken, accepted=False) == {}, f"{boundary}: who wakes sends nothing"
        ended_well(runs, mark)
        # Events tell what it did before it was frozen.
        late = [line for line in runs.records.changed(woken_at) if line.split()[1] not in ("leases", "events")]
        assert not late, f"{boundary}: who wakes changes no record, {late}"
        assert set(runs.records.holders().values()) == {""}
    record_property("told", f"two runners and a person's run: the leader frozen past its leases at {STOPS} boundaries, and nothing written after waking")
