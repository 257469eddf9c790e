# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of a running cluster that lose their disk while something else goes wrong, on real etcd: an answer is lost, a run is killed, etcd has
no quorum (design section 12). What goes well is told through ansible-playbook in tests/scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, CALL
from tests.lives.running_cluster import LONGEST, Cluster, a_running_cluster, steps, writes

# The tests share one cluster, and each leaves it running; each can also run alone.
REMOVAL, SEND = "EtcdRemoveMemberByID", "ApplyConfiguration"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_running_cluster(Path(tmp_path_factory.mktemp("running")), __name__, etcd=True) as cluster:
        yield cluster


def converged(cluster: Cluster) -> None:
    assert set(cluster.reasons().values()) == {"Converged"}
    assert cluster.members() == {f"cp-{number}": True for number in (1, 2, 3)}


def planned(cluster: Cluster, *wanted: tuple[str, str]) -> int:
    """A check run that shows exactly these steps and writes nothing; the mark of the log before it."""
    mark, before = cluster.lab.mark(), cluster.everything()
    assert steps(cluster.run(check=True)) == [(action, cluster.names[host]) for action, host in wanted]
    assert writes(cluster.lab, mark, accepted=False) == {} and cluster.everything() == before
    return mark


def done(cluster: Cluster, *wanted: tuple[str, str]) -> dict[str, Any]:
    """A run that does exactly these steps."""
    result = cluster.run()
    assert steps(result) == [(action, cluster.names[host]) for action, host in wanted]
    return result


def test_state_wiped_on_every_control_plane_at_once(cluster: Cluster) -> None:
    """etcd has no quorum then, and whoever comes back first cannot be Ready alone."""
    planes = ("cp-1", "cp-2", "cp-3")
    for host in planes:
        cluster.wipe(host, "STATE")
    mark = planned(cluster, *(("Resume", host) for host in planes))
    done(cluster, *(("Resume", host) for host in planes))
    assert writes(cluster.lab, mark) == {SEND: 3}
    converged(cluster)


def test_the_lost_answer_of_the_removal(cluster: Cluster) -> None:
    cluster.wipe("cp-3")
    mark = cluster.lab.mark()
    for host in ("cp-1", "cp-2"):
        cluster.lab.fault(node=host, kind="answer-lost", rpc=REMOVAL, times=1)
    cluster.run()
    assert writes(cluster.lab, mark, accepted=False) == {REMOVAL: 1, SEND: 1}
    converged(cluster)
    for host in ("cp-1", "cp-2"):
        cluster.lab.clear(node=host)


def test_killed_between_the_removal_and_the_send_and_started_again(cluster: Cluster, tmp_path: Path) -> None:
    cluster.wipe("cp-2")
    mark = cluster.lab.mark()
    boundary = {"kind": CALL, "what": f"machine.MachineService/{REMOVAL}", "side": AFTER, "occurrence": 1}
    for number in range(3):  # a run that finds etcd not whole again after the life before holds the machine and ends; it is started again
        killed = cluster.nursery.run("talos_controller", hook="tests.crash.boundaries:install", told={
            "trace": str(tmp_path / f"trace-{number}"), "store": str(cluster.store), "kill": boundary}, cluster="prod", discover=False, until="settled",
            max_runtime=LONGEST, **cluster.options)
        if killed.killed:
            break
    assert killed.killed, killed.output
    assert writes(cluster.lab, mark) == {REMOVAL: 1}
    cluster.run()
    assert writes(cluster.lab, mark) == {REMOVAL: 1, SEND: 1}
    converged(cluster)
