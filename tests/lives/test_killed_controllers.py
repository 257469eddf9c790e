# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Controllers killed with SIGKILL at boundaries of what they do to a running cluster: a change that needs a reboot, and a control plane whose disk was
wiped. The next run finishes it: one reboot, one removal, one accepted configuration, no member lost (design law 8).

Every boundary is killed at in memory (tests/unit/_operations/test_converge_killed.py and test_reprovision_disturbed.py). Processes are dearer, so here it
is some of them, evenly spread; `ICHOR_TEST_KILLS` is how many of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, CALL, Boundary, read_trace
from tests.lives.running_cluster import LONGEST, Cluster, a_running_cluster, writes
from tests.nursery.client import Ended
from tests.scenarios.playing import wait_for

KILLS = int(os.environ.get("ICHOR_TEST_KILLS", "4"))
REBOOT, REMOVAL, SEND = "Reboot", "EtcdRemoveMemberByID", "ApplyConfiguration"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_running_cluster(Path(tmp_path_factory.mktemp("killed")), __name__) as cluster:
        yield cluster


def drift_with_reboot(cluster: Cluster) -> None:
    """Somebody changes a rule of udev, which Talos 1.13 takes only with a reboot."""
    boots = cluster.lab.state(node="w-1")["boots"]
    cluster.lab.edit(node="w-1", patch={"machine": {"udev": {"rules": ["by hand"]}}}, mode="reboot")
    wait_for(lambda: cluster.lab.state(node="w-1")["boots"] > boots, "the reboot by hand")
    cluster.lab.wait(node="w-1", stage="ready")


def wiped_control_plane(cluster: Cluster) -> None:
    cluster.wipe("cp-3")


def traced(cluster: Cluster, trace: Path, kill: Boundary | None = None) -> Ended:
    trace.unlink(missing_ok=True)
    told: dict[str, Any] = {"trace": str(trace), "store": str(cluster.store), "kill": vars(kill) if kill else None}
    return cluster.nursery.run("talos_controller", hook="tests.crash.boundaries:install", told=told, cluster="prod", discover=False, drain=False,
                               until="settled", max_runtime=LONGEST, **cluster.options)


def chosen(found: list[Boundary], last: str) -> list[Boundary]:
    """Some of the boundaries up to the end of the last call that matters, evenly spread, that end among them."""
    end = max(number for number, one in enumerate(found) if (one.kind, one.side) == (CALL, AFTER) and one.what.endswith(f"/{last}"))
    within = found[:end + 1]
    return [within[end * (number + 1) // KILLS] for number in range(KILLS)]


@pytest.mark.parametrize(("befalls", "last", "done"), [
    (drift_with_reboot, REBOOT, {REBOOT: 1}), (wiped_control_plane, SEND, {REMOVAL: 1, SEND: 1})], ids=["drift-with-reboot", "wiped-control-plane"])
def test_a_controller_that_is_killed_is_finished_by_the_next(
        cluster: Cluster, tmp_path: Path, befalls: Callable[[Cluster], None], last: str, done: dict[str, int],
        record_property: Callable[[str, object], None]) -> None:
    befalls(cluster)
    whole = traced(cluster, tmp_path / "trace")
    assert whole.status == 0 and set(cluster.reasons().values()) == {"Converged"}
    boundaries = read_trace(tmp_path / "trace")
    killed = 0
    for boundary in chosen(boundaries, last):
        befalls(cluster)
        mark = cluster.lab.mark()
        ended = traced(cluster, tmp_path / "trace", boundary)
        killed += ended.killed
        assert ended.killed or ended.status == 0, f"{boundary}: {ended.output} {ended.errors}"
        cluster.run()
        where = f"killed {boundary}"
        assert set(cluster.reasons().values()) == {"Converged"}, (where, cluster.reasons())
        accepted = writes(cluster.lab, mark)
        assert {name: accepted.get(name, 0) for name in done} == done, (where, accepted)
        assert cluster.members() == {f"cp-{number}": True for number in (1, 2, 3)}, where
    assert killed, "no run came to its boundary"
    what = befalls.__name__.replace("_", " ")
    record_property("told", f"the controller, {what}: killed at {killed} of {len(boundaries)} boundaries, each finished by the next run")
