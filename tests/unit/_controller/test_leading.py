# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One of several runs works, with locks in a folder and a clock that tests move."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._ansible.no_nodes import NoNodes
from ansible_collections.ichor.talos.plugins.module_utils._controller.leading import led, showing_life
from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Event, leader_lock

from tests.unit._store.store_world import StillClock, machine, made, stage

REQUEST = Request(leader="runner", max_runtime=3600.0)
LOCK = leader_lock("runner")


class Turns(StillClock):
    """Time goes on when everybody sleeps: each sleep gives the others their turn."""

    async def sleep(self, seconds: float) -> None:
        until = self.ticks + seconds
        while self.ticks < until:
            await asyncio.sleep(0)
            self.move(min(0.5, until - self.ticks))


class World:
    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Turns()
        self.lines: list[str] = []
        self.worked: list[str] = []

    def ports(self, name: str) -> Ports:
        store = made(self.folder, clock=self.clock)
        return Ports(NoNodes(), store, self.clock, self.lines.append, Actor("ada", "ada"), holder=name)

    def work(self, name: str, seconds: float) -> Callable[[Ports], Any]:
        async def working(ports: Ports) -> Outcome:
            self.worked.append(f"{name} began")
            try:
                await self.clock.sleep(seconds)
            except asyncio.CancelledError:
                self.worked.append(f"{name} stopped")
                return Outcome(interrupted=True)
            self.worked.append(f"{name} ended")
            return Outcome(message="done")
        return working

    def holder(self) -> str:
        view = self.ports("nobody").store.leases.read(LOCK)  # type: ignore[union-attr]
        return view.holder if view else ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def test_the_second_begins_when_the_first_has_ended(world: World) -> None:
    async def both() -> None:
        first = asyncio.ensure_future(led(REQUEST, world.ports("a"), world.work("a", 100)))
        await asyncio.sleep(0)
        await asyncio.gather(first, led(REQUEST, world.ports("b"), world.work("b", 10)))

    asyncio.run(both())
    assert world.worked == ["a began", "a ended", "b began", "b ended"] and world.holder() == ""
    assert any("standing by" in line and "held by a" in line for line in world.lines)


def test_who_stands_by_ends_with_its_time(world: World) -> None:
    world.ports("a").store.leases.acquire(LOCK, "a", "x", 1e6)  # type: ignore[union-attr]
    outcome = asyncio.run(led(Request(leader="runner", max_runtime=30.0), world.ports("b"), world.work("b", 1)))
    assert outcome.extra["ended"] == "time" and not world.worked


def test_who_was_frozen_past_its_lead_writes_no_record_when_it_wakes(world: World) -> None:
    refused: list[str] = []

    async def frozen(ports: Ports) -> Outcome:
        store = ports.store
        assert store is not None
        record = store.create(machine(1))
        store.patch_status(record.ref, record.uid, stage("booting"))
        world.clock.move(REQUEST.timing.lock_duration)
        for write in (lambda: store.patch_status(record.ref, record.uid, stage("installing")), lambda: store.create(machine(2)),
                      lambda: store.update(record, {**record.spec, "hostname": "x"}), lambda: store.delete(record),
                      lambda: store.write_bundle("prod", b"keys")):
            with pytest.raises(TalosError) as caught:
                write()
            refused.append(caught.value.reason)
        # What it did before is still told.
        store.record_event(Event(record.ref, "Normal", "ConfigApplied", "sent", "2026-09-21T14:13:20Z"))
        now = store.get(record.kind, record.name)
        assert now is not None and now.status["stage"] == "booting" and len(store.events()) == 1
        return Outcome()

    asyncio.run(led(REQUEST, world.ports("a"), frozen))
    assert refused == ["LockHeld"] * 5


@pytest.mark.parametrize("leads", [True, False])
def test_a_stop_ends_the_work_and_gives_the_lead_back(world: World, leads: bool) -> None:
    if not leads:
        world.ports("a").store.leases.acquire(LOCK, "a", "x", 1e6)  # type: ignore[union-attr]

    async def stopped() -> Outcome:
        run = asyncio.ensure_future(led(REQUEST, world.ports("b"), world.work("b", 1e5)))
        for dummy in range(50):
            await asyncio.sleep(0)
        run.cancel()
        return await run

    outcome = asyncio.run(stopped())
    assert outcome.interrupted
    assert world.worked == (["b began", "b stopped"] if leads else [])
    assert world.holder() == ("" if leads else "a")


def test_the_lead_is_renewed_and_who_lost_it_works_no_more(world: World) -> None:
    ports = world.ports("a")

    async def taken() -> None:
        run = asyncio.ensure_future(led(REQUEST, ports, world.work("a", 1e5)))
        while world.clock.ticks < 1200:
            await asyncio.sleep(0)
        assert world.holder() == "a"  # long past the duration of one lease
        view = ports.store.leases.read(LOCK)  # type: ignore[union-attr]
        assert view is not None
        ports.store.leases.release(view)  # type: ignore[union-attr]
        world.ports("b").store.leases.acquire(LOCK, "b", "x", 60.0)  # type: ignore[union-attr]
        await run

    with pytest.raises(TalosError) as caught:
        asyncio.run(taken())
    assert caught.value.reason == "LockHeld" and world.worked == ["a began", "a stopped"] and world.holder() == "b"


def test_a_store_out_of_reach_for_longer_than_the_lease_ends_the_lead(world: World) -> None:
    ports = world.ports("a")
    leases: Any = ports.store.leases  # type: ignore[union-attr]

    def silent(view: object) -> None:
        raise TalosError("StoreUnreachable", "The store does not answer.", "Wait.")

    leases.renew = silent
    began = world.clock.ticks
    with pytest.raises(TalosError) as caught:
        asyncio.run(led(REQUEST, ports, world.work("a", 1e5)))
    assert caught.value.reason == "StoreUnreachable" and world.worked == ["a began", "a stopped"]
    assert world.clock.ticks - began < 2 * REQUEST.timing.lock_duration


def test_an_answer_that_comes_late_makes_the_lead_no_longer(world: World) -> None:
    ports = world.ports("a")
    leases: Any = ports.store.leases  # type: ignore[union-attr]
    renew, duration = leases.renew, REQUEST.timing.lock_duration
    renewed: list[object] = []

    def slow(view: object) -> object:
        found = renew(view)
        world.clock.move(duration - 1.0)
        renewed.append(found)
        return found

    async def work(leading: Ports) -> Outcome:
        while not renewed:
            await asyncio.sleep(0)
        assert leading.store is not None
        leading.store.write_bundle("before", b"keys")
        world.clock.move(1.0)
        with pytest.raises(TalosError) as caught:
            leading.store.write_bundle("after", b"keys")
        assert caught.value.reason == "LockHeld"
        return Outcome()

    leases.renew = slow
    asyncio.run(led(REQUEST, ports, work))


def test_each_line_touches_the_file_of_who_is_well(world: World, tmp_path: Path) -> None:
    path = tmp_path / "run" / "alive"
    ports = showing_life(world.ports("a"), str(path))
    assert path.read_text() == f"{os.getpid()}\n"
    os.utime(path, (1, 1))
    ports.progress("still here")
    assert path.stat().st_mtime > 1 and world.lines == ["still here"]
    with pytest.raises(TalosError, match="alive_file"):
        showing_life(ports, str(path / "below"))
