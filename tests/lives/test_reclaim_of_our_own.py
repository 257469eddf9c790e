# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine of a managed cluster that nobody has recorded is reclaimed while that cluster's own rolling reboot runs: it waits for its turn
(design sections 13 and 16)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.control import Lab
from tests.lives.records import chosen
from tests.lives.running_cluster import HEADS, LONGEST, QUICK, Cluster, writes
from tests.nursery.client import Nursery
from tests.scenarios.playing import machine, network_of, wait_for

NETWORK = network_of(__name__)
REBOOTED = ("w-1", "w-2")
FORGOTTEN = "w-3"
REBOOT, RESET, LOOK = "Reboot", "Reset", "ServiceList"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = Path(tmp_path_factory.mktemp("own"))
    with Lab.start({"nodes": {}}, speed=20.0) as lab, Nursery() as nursery, chosen(folder / "ichor") as records:
        yield Cluster(lab, nursery, folder, NETWORK, planes=1, workers=3, kept_in=records).create()


def disrupted(lab: Lab, mark: int) -> list[tuple[str, str]]:
    """What was done to whom, in order; nothing before the node before it had booted anew."""
    order: list[tuple[str, str]] = []
    down = ""
    for entry in lab.log(since=mark):
        method = str(entry.get("rpc", "")).rpartition("/")[2]
        if entry["event"] == "done" and method in (REBOOT, RESET) and entry["code"] == "OK":
            order.append((method, entry["node"]))
            down = entry["node"]
        elif entry["event"] == "node" and entry["what"] == "boot" and entry["node"] == down:
            down = ""
        elif entry["event"] == "call" and method in (REBOOT, RESET):
            assert down in ("", entry["node"]), f"{method} of {entry['node']} before {down} is back"
    return order


def test_it_waits_for_the_rolling_reboot_of_its_cluster(cluster: Cluster) -> None:
    lab, name = cluster.lab, cluster.names.pop(FORGOTTEN)
    cluster.records.lose_status("machines", name)
    cluster.records.remove("machines", name)
    # Talos 1.13 takes another rule of udev only with a reboot.
    cluster.records.put("patches", {
        "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosConfigPatch", "metadata": {"name": "rules"},
        "spec": {"clusterRef": "prod", "layer": "cluster", "machineSelector": {"role": "worker"},
                 "documents": [{"machine": {"udev": {"rules": ["rule"]}}}]}})
    board = machine(4, NETWORK, HEADS[3])["machine"]
    given = {**cluster.options, "timing": {**QUICK, "lock_wait": 120.0}, "cluster": "prod", "address": f"{NETWORK}.4", "confirm": board["uuid"]}
    mark = lab.mark()
    for host in REBOOTED:
        lab.hold(node=host, phase="apid")
    with Nursery() as other:
        cluster.nursery.start("talos_controller", cluster="prod", discover=False, drain=False, until="settled", max_runtime=LONGEST, **cluster.options)
        wait_for(lambda: writes(lab, mark).get(REBOOT), "the first reboot")
        other.start("talos_reclaim", **given)
        wait_for(lambda: [entry for entry in lab.log(since=mark, event="call") if entry["node"] == FORGOTTEN and entry["rpc"].endswith(LOOK)], "a look")
        assert RESET not in writes(lab, mark, accepted=False)
        for host in REBOOTED:
            lab.hold(node=host, phase="apid", held=False)
        reclaimed, controlled = other.finish(), cluster.nursery.finish()
    for ended in (reclaimed, controlled):
        assert ended.result and not ended.result.get("failed"), f"{ended.output} {ended.errors}"
    assert sorted(disrupted(lab, mark)) == [*((REBOOT, host) for host in REBOOTED), (RESET, FORGOTTEN)]
    assert "would keep it without a reset" in str(reclaimed.result["warnings"])
    assert reclaimed.result["registered"] == [{"address": f"{NETWORK}.4:50000", "uuid": board["uuid"], "machine": name}]
    assert lab.state(node=FORGOTTEN)["mode"] == "maintenance" and set(cluster.reasons().values()) == {"Converged"}
    assert "disruption" not in cluster.records.status("clusters", "prod") and not any(cluster.records.holders().values())
