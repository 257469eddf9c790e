# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineReclaim records under the controller: carried out once, by one of two, never again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._controller import run as controller
from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import RECLAIM, Ref, condition_of, text_at
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.tests.unit._operations import reclaim_world as r
from ansible_collections.ichor.talos.tests.unit._operations import world as w

TAKE = Ref(RECLAIM, "take")


def run(world: r.World, *, holder: str = "run-1", check: bool = False, seconds: float = 3600.0) -> Outcome:
    return asyncio.run(_run(world, holder, check, seconds))


async def _run(world: r.World, holder: str, check: bool = False, seconds: float = 3600.0) -> Outcome:
    request = Request(until_settled=True, max_runtime=seconds, timing=Timing(settle=0.0), discover=False)
    return await controller.run(request, world.ports(holder, check=check), w.OpenGate(check))


def made(number: int = 4, **spec: object) -> r.World:
    world = r.foreign(r.empty())
    r.order(world, number, **spec)
    return world


def outcome_of(world: r.World) -> str:
    return text_at(world.store.records[TAKE].status, "outcome")


def test_an_order_is_carried_out_once_and_its_status_says_so() -> None:
    world = made()
    planned = run(world, check=True)
    assert [step.action for step in planned.plan.steps] == ["ReclaimMachine", "RegisterMachine"] and world.resets == [] and world.store.writes == 0
    done = run(world)
    assert [step.id for step in planned.plan.steps] == list(done.executed) and world.resets == ["w4"]
    status = world.store.records[TAKE].status
    ready = condition_of(world.store.records[TAKE], "Ready")
    assert outcome_of(world) == f"Pending as {r.pending(world)[0]}." and ready is not None and ready.status == "True"
    assert text_at(status, "inspection", "cluster", "name") == "old" and text_at(status, "finishedAt")
    again = run(world)
    assert again.executed == () and world.resets == ["w4"] and world.store.records[TAKE].status == status


def test_two_racing_controllers_carry_it_out_once() -> None:
    world = made()

    async def race() -> None:
        await asyncio.gather(*(_run(world, holder) for holder in ("run-1", "run-2")))

    asyncio.run(race())
    assert world.resets == ["w4"] and outcome_of(world).startswith("Pending as ") and not world.store.leases.held


def _lost(world: r.World) -> None:
    run(world)
    r.node(world, 4).mode = "running"
    world.store.records[TAKE] = replace(world.store.records[TAKE], status={})


def _lost_half_way(world: r.World) -> None:
    def kill(number: int, what: str) -> None:
        if what == "reset answered w4":
            raise w.Killed(what)

    world.hook = kill
    with pytest.raises(w.Killed):
        run(world)
    world.hook = lambda number, what: None
    world.dead.add("run-1")
    world.resets.clear()
    r.node(world, 4).mode = "running"
    world.store.records[TAKE] = replace(world.store.records[TAKE], status={})


def _late(world: r.World) -> None:
    world.store.put(replace(r.order(world, 4, notAfter="2023-11-14T00:00:00Z")))


def _anothers(world: r.World) -> None:
    world.store.records[TAKE] = replace(world.store.records[TAKE], status_set_aside=True)


def _mended(world: r.World) -> None:
    """Another order had the name; what was written of that took its status away."""
    _anothers(world)
    run(world)
    world.store.records[TAKE] = replace(world.store.records[TAKE], status_set_aside=False)


def _restored(world: r.World) -> None:
    world.store.records[TAKE] = replace(world.store.records[TAKE], labels={"velero.io/restore-name": "monday"}, uid="another")


@pytest.mark.parametrize(("lose", "rule"), [
    (_restored, "16/order-restored"),
    (_lost, "16/order-status-lost"), (_lost_half_way, "16/order-status-lost"), (_late, "16/order-expired"), (_anothers, "16/order-other-status"),
    (_mended, "16/order-other-status")],
    ids=lambda value: getattr(value, "__name__", ""))
def test_what_lost_its_status_or_is_late_is_no_new_order(lose: Callable[[r.World], None], rule: str) -> None:
    world = made()
    lose(world)
    world.resets.clear()
    done = run(world, holder="run-2")
    assert world.resets == [] and [(refusal.rule, refusal.reason) for refusal in done.plan.refusals] == [(rule, "StatusMissing")]
    ready = condition_of(world.store.records[TAKE], "Ready")
    assert ready is not None and ready.reason == "StatusMissing"
    assert run(world, holder="run-3").plan.refusals == done.plan.refusals and world.resets == []


def test_what_holds_an_order_stands_in_its_condition_and_it_goes_on_when_that_is_over() -> None:
    world = made(1)
    for number in (2, 3):
        r.node(world, number).mode = "closed"
    r.node(world, 1).leader = ""
    run(world)
    ready = condition_of(world.store.records[TAKE], "Ready")
    assert world.resets == [] and ready is not None and (ready.status, ready.reason) == ("False", "QuorumUnknown") and "etcdProblem" in ready.message
    for number in (2, 3):
        r.node(world, number).mode = "running"
    r.node(world, 1).leader = f"{2:016x}"
    run(world)
    assert world.resets == ["cp1"] and outcome_of(world).startswith("Pending as ")


def test_a_failed_reset_ends_the_order() -> None:
    world = made()
    r.node(world, 4).reset_fails = True

    run(world)
    assert world.resets == ["w4"] and outcome_of(world).startswith("ResetFailed") and "restarted and kept its data" in outcome_of(world)
    run(world)
    assert world.resets == ["w4"]


def test_killed_at_every_boundary_and_resumed() -> None:
    whole = made()
    run(whole)
    for at in range(1, len(whole.trace) + 1):
        world = made()

        def kill(number: int, what: str, at: int = at) -> None:
            if number == at:
                raise w.Killed(what)

        world.hook = kill
        with contextlib.suppress(w.Killed):
            run(world)
        world.hook = lambda number, what: None
        world.dead.add("run-1")
        for attempt in range(2):
            run(world, holder=f"run-{attempt + 2}")
        found = whole.trace[at - 1]
        assert world.resets == ["w4"], (at, found, world.resets)
        assert outcome_of(world).startswith(("Pending as ", "In maintenance mode")) and len(r.pending(world)) == 1, (at, found, outcome_of(world))


def test_an_order_that_has_gone_is_an_error_of_whoever_names_it() -> None:
    world = r.foreign(r.empty())
    with pytest.raises(TalosError, match="no MachineReclaim take"):
        r.reclaim(world, order="take")
