# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock while something is done under it: renewed, waited for, proven, released on every way out (design section 13)."""

from __future__ import annotations

import asyncio

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.lease import held
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def test_it_is_renewed_every_twenty_seconds_and_the_acquire_time_stays() -> None:
    world = w.World()

    async def body() -> None:
        async with held(world.ports(), "prod", "a test", Timing()):
            await world.clock.sleep(65)
            view = world.store.leases.read("prod")
            assert view is not None and (view.acquired_at, view.renewed_at) == (w.START, w.START + 60)

    asyncio.run(body())
    assert world.trace.count("renew prod") == 3 and not world.store.leases.held


@pytest.mark.parametrize("failure", [TalosError("ConnectionLost", "x"), ValueError("x"), asyncio.CancelledError()], ids=["refusal", "fault", "stop"])
def test_it_is_released_on_every_way_out(failure: BaseException) -> None:
    world = w.World()

    async def body() -> None:
        async with held(world.ports(), "prod", "a test", Timing()):
            raise failure

    with pytest.raises(type(failure)):
        asyncio.run(body())
    assert not world.store.leases.held


def test_a_lock_that_is_held_is_waited_for_and_the_person_hears_who_has_it() -> None:
    world = w.World()
    world.store.leases.acquire("prod", "run-2", "a removal", 60)

    async def body() -> None:
        with pytest.raises(TalosError) as caught:
            async with held(world.ports(), "prod", "a test", Timing(lock_wait=100)):
                raise AssertionError("it was not free")
        assert caught.value.reason == "LockHeld"

    asyncio.run(body())
    assert 98 <= world.clock.time - w.START <= 102
    assert len(world.lines) == 4 and "held by run-2 since 2023-11-14T22:13:20Z for a removal" in world.lines[0]


def test_a_store_without_a_lock_is_not_waited_for() -> None:
    world = w.World()
    world.store.leases.refuse = "NoLock"

    async def body() -> None:
        async with held(world.ports(), "prod", "a test", Timing()):
            raise AssertionError("there is none")

    with pytest.raises(TalosError) as caught:
        asyncio.run(body())
    assert caught.value.reason == "NoLock" and world.clock.time == w.START


def test_without_a_store_there_is_no_lock() -> None:
    world = w.World()

    async def body() -> None:
        async with held(world.ports(store=False), "prod", "a test", Timing()):
            raise AssertionError("there is none")

    with pytest.raises(TalosError) as caught:
        asyncio.run(body())
    assert caught.value.reason == "NoLock"


def test_a_lost_lock_is_found_out_before_the_send_and_never_given_back_to_another() -> None:
    world = w.World()

    async def body() -> None:
        async with held(world.ports(), "prod", "a test", Timing()) as lease:
            lease.confirm()
            world.store.leases.held.clear()
            world.store.leases.acquire("prod", "run-2", "another", 60)
            for unused in range(2):
                with pytest.raises(TalosError) as caught:
                    lease.confirm()
                assert caught.value.reason == "LockHeld"

    asyncio.run(body())
    view = world.store.leases.read("prod")
    assert view is not None and view.holder == "run-2"


def test_a_store_that_does_not_answer_is_asked_again_and_proves_nothing() -> None:
    world = w.World()

    def fail(count: int, what: str) -> None:
        if what.startswith("renew"):
            raise TalosError("StoreUnreachable", "The store does not answer.")

    async def body() -> None:
        async with held(world.ports(), "prod", "a test", Timing()) as lease:
            world.hook = fail
            await world.clock.sleep(45)
            with pytest.raises(TalosError):
                lease.confirm()
            world.hook = lambda count, what: None
            lease.confirm()

    asyncio.run(body())
    assert not world.store.leases.held and "could not be renewed" in world.lines[0]


def test_what_one_run_does_at_once_takes_turns() -> None:
    world = w.World()
    inside: list[str] = []

    async def one(name: str) -> None:
        async with held(world.ports(), "prod", name, Timing()) as lease:
            inside.append(name)
            await world.clock.sleep(5.0)
            lease.confirm()
            inside.append(name)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(name) for name in "abc"))

    world.dead.add("run-1")  # the fake frees a lease of a dead holder at once, as a store does for the holder itself
    asyncio.run(all_of_them())
    assert inside == list("aabbcc") and not world.store.leases.held
