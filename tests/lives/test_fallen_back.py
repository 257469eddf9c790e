# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of a running cluster that lose their disk, or look like it, on real etcd: check, run, check, run (design section 12)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, CALL
from tests.lab.control import Lab
from tests.lives.running_cluster import LONGEST, QUICK, Cluster, steps, writes
from tests.nursery.client import Nursery
from tests.parts.build import build
from tests.scenarios.playing import network_of

# The tests share one cluster, and each leaves it running; each can also run alone.
NETWORK = network_of(__name__)
REMOVAL, SEND = "EtcdRemoveMemberByID", "ApplyConfiguration"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Lab.start({"nodes": {}}, speed=20.0, etcd=str(build("etcd-3.6"))) as lab, Nursery() as nursery:
        yield Cluster(lab, nursery, Path(tmp_path_factory.mktemp("running")), NETWORK).create()


def converged(cluster: Cluster) -> None:
    assert set(cluster.reasons().values()) == {"Converged"}
    assert cluster.members() == {f"cp-{number}": True for number in (1, 2, 3)}


def again_nothing(cluster: Cluster) -> None:
    """The second check and the second run."""
    mark = cluster.lab.mark()
    assert steps(cluster.run(check=True)) == [] and steps(cluster.run()) == [] and writes(cluster.lab, mark, accepted=False) == {}


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


def test_a_worker_whose_disk_was_wiped(cluster: Cluster) -> None:
    cluster.wipe("w-1")
    mark = planned(cluster, ("Reinstall", "w-1"))
    done(cluster, ("Reinstall", "w-1"))
    assert writes(cluster.lab, mark) == {SEND: 1}
    converged(cluster)
    assert [event["type"] for event in cluster.events("NodeReinstalled", "w-1")] == ["Warning"]
    again_nothing(cluster)


def test_a_control_plane_whose_disk_was_wiped(cluster: Cluster) -> None:
    cluster.wipe("cp-2")
    mark = planned(cluster, ("RemoveEtcdMember", "cp-2"), ("Reinstall", "cp-2"))
    done(cluster, ("RemoveEtcdMember", "cp-2"), ("Reinstall", "cp-2"))
    assert writes(cluster.lab, mark) == {REMOVAL: 1, SEND: 1}
    converged(cluster)
    assert len(cluster.events("StaleEtcdMemberRemoved", "cp-2")) == 1
    again_nothing(cluster)


def test_runs_of_one_pass_pair_their_readings(cluster: Cluster) -> None:
    cluster.wipe("cp-3")
    mark = cluster.lab.mark()
    first = cluster.run(passes=1)
    assert writes(cluster.lab, mark) == {} and "a second equal reading" in " ".join(first["waiting_for"])
    assert cluster.status("cp-3")["wipeSeen"]["labels"] == []
    time.sleep(QUICK["follow"])
    cluster.run(passes=1)
    assert writes(cluster.lab, mark)[REMOVAL] == 1
    cluster.run()
    assert writes(cluster.lab, mark) == {REMOVAL: 1, SEND: 1}
    converged(cluster)


def test_only_state_wiped_keeps_the_member(cluster: Cluster) -> None:
    before = {member["name"]: member["id"] for member in cluster.lab.state(node="cp-1")["etcd"]}
    cluster.wipe("cp-2", "STATE")
    mark = planned(cluster, ("Resume", "cp-2"))
    done(cluster, ("Resume", "cp-2"))
    assert writes(cluster.lab, mark) == {SEND: 1}
    converged(cluster)
    assert {member["name"]: member["id"] for member in cluster.lab.state(node="cp-1")["etcd"]} == before
    again_nothing(cluster)


def test_state_wiped_on_every_control_plane_at_once(cluster: Cluster) -> None:
    """etcd has no quorum then, and whoever comes back first cannot be Ready alone."""
    planes = ("cp-1", "cp-2", "cp-3")
    for host in planes:
        cluster.wipe(host, "STATE")
    mark = planned(cluster, *(("Resume", host) for host in planes))
    done(cluster, *(("Resume", host) for host in planes))
    assert writes(cluster.lab, mark) == {SEND: 3}
    converged(cluster)


def test_state_not_found_at_one_boot(cluster: Cluster) -> None:
    cluster.lab.hide_state(node="cp-3")
    cluster.restart("cp-3")
    mark = planned(cluster)
    result = done(cluster)
    assert writes(cluster.lab, mark, accepted=False) == {} and cluster.reason("cp-3") == "StateNotFound"
    assert cluster.names["cp-3"] in result["blocked"]
    cluster.lab.power(node="cp-3", state="cycle")
    cluster.lab.wait(node="cp-3", stage="ready")
    done(cluster)
    converged(cluster)
    assert cluster.reason("cp-3") == "NodeJoined" and writes(cluster.lab, mark, accepted=False) == {}


def test_a_twin_at_another_address_while_the_machine_is_down(cluster: Cluster) -> None:
    cluster.lab.power(node="cp-2", state="off")
    cluster.lab.twin(node="cp-2", name="twin", address=f"{NETWORK}.77")
    cluster.lab.wait(node="twin", stage="maintenance")
    mark = cluster.lab.mark()
    result = cluster.run()
    assert writes(cluster.lab, mark, accepted=False) == {} and cluster.names["cp-2"] in result["unreachable_machines"]
    assert not [entry for entry in cluster.lab.log(since=mark, node="twin") if entry["event"] == "connect"]
    cluster.lab.remove(node="twin")
    cluster.lab.power(node="cp-2", state="on")
    cluster.lab.wait(node="cp-2", stage="ready")
    cluster.run()
    converged(cluster)


def test_hold_apply_is_the_opt_out(cluster: Cluster) -> None:
    cluster.module("talos_machine", machine=cluster.names["w-1"], hold=True)
    cluster.wipe("w-1")
    mark = planned(cluster)
    done(cluster)
    assert writes(cluster.lab, mark, accepted=False) == {} and cluster.reason("w-1") == "ReprovisionBlocked"
    before = cluster.everything()
    done(cluster)
    assert cluster.everything() == before, "a second run writes nothing"
    cluster.module("talos_machine", machine=cluster.names["w-1"], hold=False)
    done(cluster, ("Reinstall", "w-1"))
    converged(cluster)


def test_wiped_again_before_it_converged(cluster: Cluster) -> None:
    cluster.wipe("w-1")
    mark = cluster.lab.mark()
    cluster.lab.hold(node="w-1", phase="install")
    cluster.run(passes=1)
    assert writes(cluster.lab, mark) == {SEND: 1}
    cluster.lab.hold(node="w-1", phase="install", held=False)
    cluster.wipe("w-1")
    for unused in range(2):
        result = cluster.run(passes=1)
        assert writes(cluster.lab, mark) == {SEND: 1} and cluster.reason("w-1") == "AwaitingInstall"
    assert "trust: true" in next(row["message"] for row in result["machines"] if row["name"] == cluster.names["w-1"])
    cluster.module("talos_machine", machine=cluster.names["w-1"], trust=True)
    cluster.run()
    assert writes(cluster.lab, mark) == {SEND: 2}
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
    killed = cluster.nursery.run("talos_controller", hook="tests.crash.boundaries:install", told={
        "trace": str(tmp_path / "trace"), "store": str(cluster.store), "kill": boundary}, cluster="prod", discover=False, until="settled",
        max_runtime=LONGEST, **cluster.options)
    assert killed.killed and writes(cluster.lab, mark) == {REMOVAL: 1}
    cluster.run()
    assert writes(cluster.lab, mark) == {REMOVAL: 1, SEND: 1}
    converged(cluster)


def test_the_only_control_plane_is_blocked_and_points_to_the_restore(cluster: Cluster, tmp_path: Path) -> None:
    alone = Cluster(cluster.lab, cluster.nursery, tmp_path, network_of(f"{__name__} alone"), 1, 0, prefix="x").create()
    alone.wipe("xcp-1")
    mark = planned(alone)
    assert "one machine" in alone.run(discard_etcd="prod", fails=True)["msg"]
    result = alone.run()
    assert writes(alone.lab, mark, accepted=False) == {} and alone.reason("xcp-1") == "ReprovisionBlocked"
    assert "Restore etcd from a backup" in next(iter(row["message"] for row in result["machines"]))
    assert "is prod" in alone.run(discard_etcd="other", machine=alone.names["xcp-1"], fails=True)["msg"]
    assert writes(alone.lab, mark, accepted=False) == {}
    alone.run(discard_etcd="prod", machine=alone.names["xcp-1"], passes=2)
    assert writes(alone.lab, mark) == {SEND: 1}
    refused = alone.module("talos_bootstrap", machine=alone.names["xcp-1"], fails=True)
    assert refused["reason"] == "AlreadyBootstrapped" and "--recover-from" in refused["msg"] and writes(alone.lab, mark) == {SEND: 1}
    alone.end()
