# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that leave a running cluster of real etcd members: refused, dead, and replaced (design section 14)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, CALL
from tests.lives.running_cluster import HEADS, Cluster, a_running_cluster, steps, writes
from tests.scenarios.playing import machine

# The tests of this file go on from one another: one life of a cluster.
LEAVE, RESET, REMOVE = "EtcdLeaveCluster", "Reset", "EtcdRemoveMemberByID"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_running_cluster(Path(tmp_path_factory.mktemp("removal")), __name__, etcd=True) as cluster:
        yield cluster


def remove(cluster: Cluster, host: str, **more: Any) -> dict[str, Any]:
    name = cluster.names[host]
    return cluster.module("talos_machine_removal", **{"machine": name, "confirm": name, "skip_drain": True, **more})


def is_recorded(cluster: Cluster, host: str) -> bool:
    return cluster.records.record("machines", cluster.names[host]) is not None


def another(cluster: Cluster, host: str, number: int, **description: Any) -> None:
    """One more machine, found and approved as a control plane."""
    cluster.lab.add(name=host, description=machine(number, cluster.network, HEADS[number - 1], **description))
    cluster.names[host] = f"prod-{HEADS[number - 1]}"
    cluster.lab.wait(node=host, stage="maintenance")
    cluster.module("talos_discover", cluster="prod", addresses=[f"{cluster.network}.{number}"])
    cluster.module("talos_machine_approval", machine=cluster.names[host], role="controlplane", hostname=host, install={"disk": "/dev/sda"})


def member_id(cluster: Cluster, name: str) -> str:
    told = cluster.module("etcd_member_info", cluster="prod")
    return next(str(member["id"]) for member in told["members"] if member["name"] == name)


def test_the_life_of_removals(cluster: Cluster, tmp_path: Path) -> None:
    told = cluster.module("etcd_member_info", cluster="prod")
    assert told["agree"] and len(told["members"]) == 3 and sum(member["leader"] for member in told["members"]) == 1, told
    assert sorted(member["machine"] for member in told["members"]) == sorted(cluster.names[f"cp-{number}"] for number in (1, 2, 3))

    # A healthy control plane stays: by its machine, by its id, and without a confirmation.
    mark = cluster.lab.mark()
    refused = remove(cluster, "cp-3", fails=True)
    assert refused["reason"] == "ControlPlaneNeeded" and "or lower the count first (to 1)" in refused["msg"] and "it is healthy" in refused["msg"]
    assert remove(cluster, "cp-3", fails=True, check=True)["reason"] == "ControlPlaneNeeded"
    assert remove(cluster, "cp-3", fails=True, confirm="cp-3")["reason"] == "ConfirmationMissing"
    assert remove(cluster, "w-1", fails=True, skip_drain=False)["reason"] == "DrainRequired"
    number = member_id(cluster, "cp-3")
    assert cluster.module("etcd_member", cluster="prod", member=number, fails=True)["reason"] == "MemberAnswers"
    name = cluster.names["cp-3"]
    assert cluster.module("talos_reset", machine=name, confirm=name, fails=True)["reason"] == "ControlPlaneNeeded"

    # A route of ours that is lost is no death.
    cluster.lab.route(node="cp-3", there=False)
    refused = remove(cluster, "cp-3", fails=True)
    assert refused["reason"] == "MemberAnswers" and cluster.module("etcd_member", cluster="prod", member=number, fails=True)["reason"] == "MemberAnswers"
    cluster.lab.route(node="cp-3", there=True)
    assert writes(cluster.lab, mark, accepted=False) == {}

    # Dead: below the count, by its id, without a reset; a second run is no change.
    cluster.lab.power(node="cp-3", state="off")
    before = cluster.everything()
    planned = remove(cluster, "cp-3", check=True)
    assert steps(planned) == [("RemoveEtcdMember", name), ("DeleteRecord", name)] and cluster.everything() == before
    done = remove(cluster, "cp-3")
    assert steps(done) == steps(planned) and done["plan_id"] == planned["plan_id"] and done["changed"] and "replacement" in done["msg"]
    assert writes(cluster.lab, mark) == {REMOVE: 1} and not is_recorded(cluster, "cp-3")
    assert [event["type"] for event in cluster.events("DeadMemberRemoved")] == ["Warning"]
    assert cluster.members() == {"cp-1": True, "cp-2": True}
    assert not remove(cluster, "cp-3")["changed"] and not cluster.module("etcd_member", cluster="prod", member=number)["changed"]

    # From two none goes, dead or not.
    assert remove(cluster, "cp-2", fails=True)["reason"] == "ControlPlaneNeeded"
    cluster.lab.power(node="cp-2", state="off")
    assert remove(cluster, "cp-2", fails=True)["reason"] == "ControlPlaneNeeded"
    cluster.lab.power(node="cp-2", state="on")

    # A worker goes with its data, and comes back as pending.
    cluster.lab.wait(node="cp-2", stage="ready", seconds=60)
    mark, worker = cluster.lab.mark(), cluster.names["w-1"]
    planned = remove(cluster, "w-1", check=True)
    assert "wipes STATE, EPHEMERAL" in planned["plan"][0]["why"] and "META" in planned["plan"][0]["why"]
    assert steps(planned) == [("ResetMachine", worker), ("DeleteRecord", worker)]
    boundary = {"kind": CALL, "what": f"machine.MachineService/{RESET}", "side": AFTER, "occurrence": 1}
    killed = cluster.nursery.run("talos_machine_removal", hook="tests.crash.boundaries:install", told={
        "trace": str(tmp_path / "trace"), "store": str(cluster.store), "kill": boundary}, machine=worker, confirm=worker, skip_drain=True, **cluster.options)
    assert killed.killed and cluster.reason("w-1", "Removal") == "Removing"
    cluster.lab.wait(node="w-1", stage="maintenance", seconds=60)
    # A loop that runs beside it installs nothing.
    cluster.run(passes=2)
    assert writes(cluster.lab, mark) == {RESET: 1} and is_recorded(cluster, "w-1")
    assert steps(remove(cluster, "w-1")) == [("DeleteRecord", worker)]
    assert writes(cluster.lab, mark) == {RESET: 1} and not is_recorded(cluster, "w-1")
    assert cluster.lab.state(node="w-1")["partitions"] == ["EFI", "META"] and not remove(cluster, "w-1")["changed"]
    cluster.module("talos_discover", cluster="prod")
    assert (cluster.records.record("machines", worker) or {})["spec"]["approvalState"] == "pending"

    # A replacement joins; then one more, beside which a healthy one may go.
    del cluster.names["cp-3"], cluster.names["w-1"]
    another(cluster, "cp-5", 5, volumes=["ETCD"])
    cluster.run()
    assert cluster.members() == {"cp-1": True, "cp-2": True, "cp-5": True} and set(cluster.reasons().values()) == {"Converged"}
    cluster.lab.power(node="cp-3", state="on")
    cluster.lab.wipe(node="cp-3", what="disk")
    cluster.lab.power(node="cp-3", state="cycle")
    cluster.lab.wait(node="cp-3", stage="maintenance")
    cluster.names["cp-3"] = third = f"prod-{HEADS[2]}"
    cluster.module("talos_discover", cluster="prod")
    cluster.module("talos_machine_approval", machine=third, role="controlplane", hostname="cp-3", install={"disk": "/dev/sda"})
    cluster.run()
    assert cluster.members() == {"cp-1": True, "cp-2": True, "cp-3": True, "cp-5": True}

    # Reset alone: ETCD on its own partition goes too, and the machine comes back empty and joins.
    mark, fifth, number = cluster.lab.mark(), cluster.names["cp-5"], member_id(cluster, "cp-5")
    planned = cluster.module("talos_reset", machine=fifth, confirm=fifth, check=True)
    assert steps(planned) == [("LeaveEtcd", fifth), ("ResetMachine", fifth)] and "wipes STATE, EPHEMERAL, ETCD" in planned["plan"][1]["why"]
    done = cluster.module("talos_reset", machine=fifth, confirm=fifth)
    assert done["plan_id"] == planned["plan_id"] and writes(cluster.lab, mark) == {LEAVE: 1, RESET: 1}
    assert "ETCD" not in cluster.lab.state(node="cp-5")["partitions"] and not cluster.module("talos_reset", machine=fifth, confirm=fifth)["changed"]
    cluster.run()
    assert cluster.members() == {"cp-1": True, "cp-2": True, "cp-3": True, "cp-5": True} and member_id(cluster, "cp-5") != number

    # A healthy one leaves for good.
    mark, first = cluster.lab.mark(), cluster.names["cp-1"]
    planned = remove(cluster, "cp-1", check=True)
    assert steps(planned) == [("LeaveEtcd", first), ("ResetMachine", first), ("DeleteRecord", first)]
    done = remove(cluster, "cp-1")
    assert done["plan_id"] == planned["plan_id"] and writes(cluster.lab, mark) == {LEAVE: 1, RESET: 1} and not is_recorded(cluster, "cp-1")
    del cluster.names["cp-1"]
    cluster.run()
    assert cluster.members() == {"cp-2": True, "cp-3": True, "cp-5": True} and set(cluster.reasons().values()) == {"Converged"}
