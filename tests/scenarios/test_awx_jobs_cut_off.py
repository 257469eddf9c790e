# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of AWX that are cut off, on the Kubernetes store: each one's container is killed at another point of the life of a cluster, or its time is over, and
the next one goes on. And five jobs at once that all want to restart the same machines: one restart after the other (design sections 2, 13 and 18)."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.control import Lab
from tests.parts.apiserver import ApiServer
from tests.scenarios.awx_jobs import Awx, Begun
from tests.scenarios.playing import QUICK, Project, lab_of, machine, network_of, wait_for, writes
from tests.scenarios.sending import cluster

NETWORK = network_of(__name__)
HEADS = {"cp": "5a1f0c3e", "w-1": "7be2944d", "w-2": "8cf3a55e"}
NAMES = {host: f"prod-{head}" for host, head in HEADS.items()}
WANTED = {"ichor_bootstrap": NAMES["cp"], "ichor_approve": [
    {"machine": name, "role": "controlplane" if host == "cp" else "worker", "hostname": host, "install": {"disk": "/dev/sda"}} for host, name in NAMES.items()]}
#: A lock that a killed job held is free after so many seconds, and so is what it may still have been sending.
IMPATIENT = {**QUICK, "lock_duration": 4.0, "apply": 4.0, "sending_fresh": 4.0, "follow": 0.5, "reread": 1.0}
KEPT = {"reconcile_clusters": ["prod"], "reconcile_discover": False, "reconcile_drain": False, "reconcile_timing": IMPATIENT, "reconcile_allow_loopback": True}
#: Talos 1.13 takes it only with a restart.
PATCH = {"name": "Patch", "ichor.talos.talos_config_patch": {
    "name": "rules", "cluster": "prod", "layer": "cluster", "machine_selector": {"role": "worker"}, "documents": [{"machine": {"udev": {"rules": ["one"]}}}]}}
SEND, REBOOT, BOOTSTRAP = "ApplyConfiguration", "Reboot", "Bootstrap"
TOGETHER = 5


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    yield from lab_of({host: machine(number, NETWORK, head) for number, (host, head) in enumerate(HEADS.items(), 1)}, speed=20.0)


def items(server: ApiServer, kind: str, group: str = "ichor.maesh.dev/v1alpha1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.read(f"/apis/{group}/namespaces/ichor-system/{kind}"))["items"]
    return found


def machines(server: ApiServer) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in items(server, "talosmachines")}


def approvals(server: ApiServer) -> list[str]:
    return sorted(record["spec"]["approvalState"] for record in machines(server).values())


def received(lab: Lab, since: int = 0) -> list[tuple[str, str]]:
    """(node, call) of every call that writes to a node, in order, whatever came of it."""
    return [(str(entry["node"]), str(entry["rpc"]).rpartition("/")[2]) for entry in writes(lab, since) if entry["event"] == "call"]


def tried(lab: Lab, call: str, since: int = 0) -> bool:
    return any(called == call for unused, called in received(lab, since))


def nothing_is_left(server: ApiServer) -> None:
    """No lock, no announced restart or send, and no record without a status that belongs to it."""
    assert [lease["spec"].get("holderIdentity") or "" for lease in items(server, "leases", "coordination.k8s.io/v1")] == [""]
    assert all("disruption" not in record.get("status", {}) for record in items(server, "talosclusters"))
    for record in machines(server).values():
        assert record["status"]["recordUID"] == record["metadata"]["uid"] and "sending" not in record["status"], record["status"]
        assert {entry["type"]: entry["reason"] for entry in record["status"]["conditions"]}["Ready"] == "Converged"


def forgotten(server: ApiServer) -> bool:
    """Whether each send that a killed job may still have been making began so long ago that the next one makes it anew."""
    began = [record["status"]["sending"]["time"] for record in machines(server).values() if record["status"].get("sending")]
    latest = max((datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() for at in began), default=0.0)
    return time.time() - latest > 1.5 * IMPATIENT["apply"] + 1.0


def one_after_the_other(lab: Lab, since: int) -> list[str]:
    """Who was restarted, in order; none was told before the one before it ran again."""
    order: list[str] = []
    down = ""
    for entry in lab.log(since=since):
        if entry["event"] == "call" and str(entry["rpc"]).endswith(f"/{REBOOT}"):
            assert down in ("", entry["node"]), f"{entry['node']} is restarted before {down} is back"
            if entry["node"] not in order:
                order.append(entry["node"])
            down = entry["node"]
        elif entry["event"] == "node" and entry.get("what") == "stage" and entry["stage"] == "running" and entry["node"] == down:
            down = ""
    return order


def successful(job: Begun) -> str:
    """The output of a job that ends well."""
    ended = job.end()
    assert ended.status == "successful", ended.output
    return ended.output


def test_what_jobs_leave_that_are_cut_off_and_five_at_once(tmp_path_factory: pytest.TempPathFactory, own: ApiServer, lab: Lab,
                                                           record_property: Callable[[str, object], None]) -> None:
    environment = {"ICHOR_STORE": "kubernetes", "ICHOR_STORE_KUBECONFIG": str(own.kubeconfig)}
    project = Project(tmp_path_factory.mktemp("awx") / "project", environment=environment)
    project.play("cluster", [cluster(NETWORK), {"name": "Keys", "ichor.talos.talos_secrets": {"cluster": "prod"}}])
    awx = Awx(environment, {"ichor_allow_loopback": True, "ichor_timing": IMPATIENT})

    # Killed with the first record written, and whole with the next.
    awx.begin("discover.yml", ichor_cluster="prod").killed_at(lambda: machines(own), "the first record")
    successful(awx.begin("discover.yml", ichor_cluster="prod"))
    assert set(machines(own)) == set(NAMES.values()) and all(record["status"]["stage"] == "maintenance" for record in machines(own).values())

    # Killed between two approvals; the next job leaves the first as it is.
    awx.begin("approve_planned.yml", **WANTED).killed_at(lambda: "approved" in approvals(own), "the first approval")
    first = {name for name, record in machines(own).items() if record["spec"]["approvalState"] == "approved"}
    successful(awx.begin("approve_planned.yml", user="ben", **WANTED))
    assert approvals(own) == ["approved"] * 3
    assert {record["spec"]["approvedBy"] for name, record in machines(own).items() if name in first} == {"anna"}

    # Its time is over while a node is silent, before anything is sent; then killed as the node holds its answer back.
    lab.fault(node="cp", kind="call-hang")
    timed_out = awx.job("apply.yml", timeout=5, **{**WANTED, "ichor_timing": {**IMPATIENT, "call": 600.0, "maintenance_probe": 600.0}})
    assert timed_out.status == "timeout" and timed_out.artifacts == {} and received(lab) == [], timed_out.output
    lab.clear(node="cp")
    lab.fault(node="cp", kind="answer-hang", rpc=SEND)
    awx.begin("apply.yml", **WANTED).killed_at(lambda: tried(lab, SEND), "the first send")
    lab.clear(node="cp")
    wait_for(lambda: forgotten(own), "the sends of the killed job count no more")

    # Killed once etcd is bootstrapped, and the next one bootstraps nothing again.
    awx.begin("apply.yml", **WANTED).killed_at(lambda: tried(lab, BOOTSTRAP), "the bootstrap")
    wait_for(lambda: forgotten(own), "the sends of the killed job count no more")
    successful(awx.begin("apply.yml", **WANTED))
    assert sorted(received(lab)) == [("cp", SEND), ("cp", BOOTSTRAP), ("w-1", SEND), ("w-2", SEND)]

    # Killed as it restarts a machine; then five at once.
    project.play("patch", [PATCH])
    mark = lab.mark()
    awx.begin("reconcile.yml", user="", **KEPT).killed_at(lambda: tried(lab, REBOOT, mark), "the first restart")
    jobs = [awx.begin("reconcile.yml", user=user, **KEPT) for user in ("", "anna", "ben", "", "carla")]
    assert len(jobs) == TOGETHER
    for job in jobs:
        successful(job)
    assert sorted(one_after_the_other(lab, mark)) == ["w-1", "w-2"]
    done = received(lab, mark)
    assert sorted(done) == sorted((host, call) for host in ("w-1", "w-2") for call in (SEND, REBOOT))
    nothing_is_left(own)
    record_property("told", f"jobs that are cut off: 5 killed, 1 out of time, then {TOGETHER} at once: {len(done)} writes to 2 machines, one restart at a time")
