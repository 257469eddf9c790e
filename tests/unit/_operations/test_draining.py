# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draining Nodes of a real API server, whose kubelets the tests play (design section 14)."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.drain import REBOOT, REMOVAL
from ansible_collections.ichor.talos.plugins.module_utils._decide.drain_volumes import lost_with, told
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CORDONED_AT, RESET_AT, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.draining import delete_node, drain, hosting_of, mark_reset, ready_of
from ansible_collections.ichor.talos.plugins.module_utils._operations.managed_workloads import ManagedWorkloads
from ansible_collections.ichor.talos.plugins.module_utils._operations.node_cordon import take_back

from tests.parts.apiserver import ApiServer, running
from tests.parts.kubelet import Kubelets, kubelets
from tests.unit._operations import world as w
from tests.unit._operations.managed_world import Records, serving

MIRROR = {"kubernetes.io/config.mirror": "x"}
SCRATCH = {"name": "tmp", "emptyDir": {}}


class Clock:
    """Time as it is, but nobody sleeps for longer than a moment; a test may move it."""

    def __init__(self) -> None:
        self.moved = 0.0

    def now(self) -> float:
        return datetime.datetime.now(datetime.timezone.utc).timestamp()

    def monotonic(self) -> float:
        return time.monotonic() + self.moved

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.05))


class Lease:
    """A lock that counts how often it was proven; `lost` from some proof on."""

    def __init__(self, lost: int = 10 ** 9) -> None:
        self.proofs, self.lost = 0, lost

    def confirm(self) -> None:
        self.proofs += 1
        if self.proofs >= self.lost:
            raise TalosError("LockHeld", "The lock was lost.", "Run this again.")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with running(serving()) as started:
        (started.folder / "certs").mkdir(exist_ok=True)
        (started.folder / "certs" / "apiserver.crt").write_text((started.folder / "serving-authority.pem").read_text())
        yield started


@pytest.fixture(scope="module")
def played(server: ApiServer) -> Iterator[Kubelets]:
    with kubelets(server) as found:
        yield found


class World:
    """One Node of its own, and its machine."""

    def __init__(self, server: ApiServer, played: Kubelets, name: str) -> None:
        self.server, self.played, self.name = server, played, name
        self.clock, self.lines, self.lease = Clock(), list[str](), Lease()
        self.workloads = ManagedWorkloads(Records(f"https://127.0.0.1:{server.port}"), self.clock)  # type: ignore[arg-type]
        played.register(name, "192.0.2.1")
        self.records = w.World()
        self.records.store.put(w.cluster_record())

    def ports(self) -> Ports:
        return replace(self.records.ports(), clock=self.clock, progress=self.lines.append, workloads=self.workloads)

    @property
    def machine(self) -> Record:
        return w.machine_record(self.name, 1, status={"configStoredAt": "2023-11-14T00:00:00Z"})

    def node(self) -> NodePlace:
        return next(node for node in self.workloads.nodes("prod") if node.name == self.name)

    def drain(self, seconds: float = 60.0, purpose: str = REMOVAL) -> None:
        timing = Timing(drain=seconds)
        asyncio.run(drain(self.ports(), self.records.cluster(), self.machine, self.node(), purpose, self.lease, timing))  # type: ignore[arg-type]

    def asked(self, since: int) -> list[tuple[str, str]]:
        """What this product wrote, as verb and what it was about."""
        entries = [json.loads(line) for line in self.server.audit.read_text().splitlines()[since:]]
        return [(entry["verb"], f"{entry['objectRef']['resource']}/{entry['objectRef'].get('subresource') or entry['objectRef']['name']}")
                for entry in entries if entry["user"]["username"] == "ichor.talos" and entry["verb"] not in ("get", "list")]

    def mark(self) -> int:
        return len(self.server.audit.read_text().splitlines())


@pytest.fixture
def world(server: ApiServer, played: Kubelets, request: pytest.FixtureRequest) -> World:
    return World(server, played, request.node.name.removeprefix("test_").replace("_", "-")[:50].strip("-"))


def test_what_may_go_goes_and_the_rest_stays(world: World) -> None:
    for name, more in {"web": {}, "own": {"owner": "DaemonSet"}, "static": {"owner": "Node", "annotations": MIRROR}, "job": {"phase": "Succeeded"},
                       "bare": {"owner": ""}, "scratch": {"volumes": [SCRATCH]}}.items():
        world.played.run("goes", name, world.name, **more)  # type: ignore[arg-type]
    since = world.mark()
    world.drain()
    assert world.played.pods(world.name) == ["goes/job", "goes/own", "goes/static"]
    node = world.node()
    assert node.unschedulable and node.cordoned_at
    assert world.asked(since) == [("patch", f"nodes/{world.name}"), *[("create", "pods/eviction")] * 3]


def test_a_reboot_leaves_what_nobody_makes_again(world: World) -> None:
    world.played.run("reboot", "web", world.name)
    world.played.run("reboot", "bare", world.name, owner="")
    world.drain(purpose=REBOOT)
    assert world.played.pods(world.name) == ["reboot/bare"]
    assert asyncio.run(take_back(world.ports(), "prod", world.name)) == ""
    node = world.node()
    assert not node.unschedulable and node.cordoned_at == ""


def test_a_budget_that_allows_nothing_blocks_and_is_named_until_the_deadline(world: World) -> None:
    world.played.run("tight", "web", world.name, labels={"app": "web"})
    world.played.run("tight", "other", world.name)
    world.played.budget("tight", "web-budget", {"app": "web"}, 0)
    with pytest.raises(TalosError) as caught:
        world.drain(seconds=1.0)
    assert caught.value.reason == "DrainRequired" and "tight/web (The disruption budget web-budget needs 1 healthy pods" in caught.value.message
    assert world.played.pods(world.name) == ["tight/web"]
    assert not world.node().unschedulable, "the cordon that was made here is taken back"
    assert any("tight/web" in line for line in world.lines)

    # With room in the budget it goes.
    world.played.budget("tight", "web-budget", {"app": "web"}, 1)
    world.drain()
    assert world.played.pods(world.name) == [] and world.node().unschedulable


def test_a_budget_that_gets_room_meanwhile_is_asked_again(world: World) -> None:
    world.played.run("later", "web", world.name, labels={"app": "web"})
    world.played.budget("later", "web", {"app": "web"}, 0)
    refused: list[str] = []

    def line(text: str) -> None:
        if not refused and "disruption budget" in text:
            refused.append(text)
            world.played.budget("later", "web", {"app": "web"}, 1)

    world.lines = type("Lines", (list,), {"append": lambda self, text: line(text)})()
    world.drain()
    assert refused and world.played.pods(world.name) == []


def test_two_budgets_of_one_pod_are_named(world: World) -> None:
    world.played.run("twice", "web", world.name, labels={"app": "web"})
    for name in ("one", "two"):
        world.played.budget("twice", name, {"app": "web"}, 1)
    with pytest.raises(TalosError, match="more than one PodDisruptionBudget"):
        world.drain(seconds=0.5)


def test_a_pod_that_does_not_end_is_named(world: World) -> None:
    world.played.run("slow", "web", world.name)
    world.played.stubborn.add("slow/web")
    with pytest.raises(TalosError, match=r"slow/web \(it is still ending\)"):
        world.drain(seconds=1.0)
    world.played.stubborn.clear()


def test_somebody_s_own_cordon_stays(world: World) -> None:
    world.played.api.request("PATCH", f"/api/v1/nodes/{world.name}", {"spec": {"unschedulable": True}}, content_type="application/merge-patch+json")
    world.drain()
    assert asyncio.run(take_back(world.ports(), "prod", world.name)) == ""
    assert world.node().unschedulable and world.node().cordoned_at == ""


def test_a_lock_that_is_lost_ends_the_drain(world: World) -> None:
    world.played.run("lost", "web", world.name)
    world.lease = Lease(lost=2)
    with pytest.raises(TalosError, match="lock was lost"):
        world.drain()
    assert world.played.pods(world.name) == ["lost/web"]


def test_volumes_on_its_disks_are_told(world: World) -> None:
    world.played.local_volume("data", "claim-here", world.name)
    world.played.local_volume("data", "claim-there", "another-node")
    world.played.local_volume("data", "claim-of-none", world.name)
    volumes: list[dict[str, Any]] = [
        {"name": "here", "persistentVolumeClaim": {"claimName": "claim-here"}}, {"name": "there", "persistentVolumeClaim": {"claimName": "claim-there"}},
        SCRATCH, {"name": "memory", "emptyDir": {"medium": "Memory"}}, {"name": "folder", "hostPath": {"path": "/var/mnt/data"}},
        {"name": "socket", "hostPath": {"path": "/var/run/x.sock"}}]
    world.played.run("data", "db", world.name, volumes=volumes)
    found = asyncio.run(hosting_of(world.ports(), world.machine))
    assert isinstance(found, Present)
    assert [told(volume) for volume in lost_with(found.value)] == [
        "data/claim-here of data/db", "data/claim-of-none, which no pod has now", "/var/mnt/data of data/db", "emptyDir tmp of data/db"]


def test_marks_and_deletes_this_very_node(world: World) -> None:
    hosting = asyncio.run(hosting_of(world.ports(), world.machine))
    assert isinstance(hosting, Present)
    asyncio.run(mark_reset(world.ports(), world.machine, hosting))
    assert world.node().reset_at and world.played.node(world.name)["metadata"]["annotations"][RESET_AT] == world.node().reset_at
    before = world.node()
    with pytest.raises(TalosError, match="gone, or another one"):
        world.workloads.cordon("prod", replace(before, uid="11111111-2222-3333-4444-555555555555"), "2026-01-01T00:00:00Z")
    asyncio.run(delete_node(world.ports(), world.machine, replace(before, uid="11111111-2222-3333-4444-555555555555")))
    assert world.played.node(world.name)
    asyncio.run(delete_node(world.ports(), world.machine, before))
    assert world.played.node(world.name) == {}
    assert asyncio.run(hosting_of(world.ports(), world.machine)) == Absent("Kubernetes of prod")
    assert isinstance(asyncio.run(ready_of(world.ports(), world.machine)), Absent)
    asyncio.run(delete_node(world.ports(), world.machine, before))  # gone already is done


def test_a_foreign_node_is_not_marked(world: World) -> None:
    world.played.register(world.name, "192.0.2.1", w.uuid(9))
    hosting = asyncio.run(hosting_of(world.ports(), world.machine))
    asyncio.run(mark_reset(world.ports(), world.machine, hosting))
    assert world.node().reset_at == "" and CORDONED_AT not in str(world.played.node(world.name))


def test_what_cannot_be_asked_is_unknown_and_nothing_is_written_in_check_mode(world: World) -> None:
    away = ManagedWorkloads(Records("https://127.0.0.1:1"), world.clock)  # type: ignore[arg-type]
    ports = replace(world.ports(), workloads=away)
    found = asyncio.run(hosting_of(ports, world.machine))
    assert isinstance(found, Unknown) and found.reason == "TimedOut"
    assert isinstance(asyncio.run(ready_of(ports, world.machine)), Unknown)
    assert asyncio.run(hosting_of(replace(ports, workloads=None), world.machine)) is None
    with pytest.raises(TalosError):
        asyncio.run(drain(ports, world.records.cluster(), world.machine, world.node(), REMOVAL, world.lease, Timing(drain=0.2)))  # type: ignore[arg-type]
    checking = ManagedWorkloads(Records(f"https://127.0.0.1:{world.server.port}"), world.clock, True)  # type: ignore[arg-type]
    pod = checking.pods("prod", world.name)
    assert pod == ()
    for write in (lambda: checking.cordon("prod", world.node(), "now"), lambda: checking.uncordon("prod", world.node()),
                  lambda: checking.mark_reset("prod", world.node(), "now"), lambda: checking.delete_node("prod", world.node())):
        with pytest.raises(CheckModeWrite):
            write()
