# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that are killed anywhere, run beside each other, or look at a node that flaps: one accepted configuration, and no lock left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Listing, Record
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._controller.fleet import Fleet


def two() -> Fleet:
    """A control plane that joins a running cluster, and a worker beside it."""
    fleet = Fleet(bootstrapped=True)
    fleet.runs("cp-1", 1, "controlplane")
    fleet.waits("cp-2", 2, "controlplane")
    fleet.waits("w-3", 3)
    return fleet


def lives(fleet: Fleet) -> None:
    """Whoever accepted a configuration runs from then on."""
    for node in fleet.nodes.values():
        if node.name in fleet.accepted and node.mode == "closed":
            node.mode, node.stage, node.ready = "running", "running", True
            if not node.worker:
                node.etcd, node.leader = "Running", "x"


def boundaries() -> int:
    fleet = two()
    fleet.hook = lambda count, what: lives(fleet)
    fleet.reconcile(until_settled=True, max_runtime=900.0)
    assert sorted(fleet.accepted) == ["cp-2", "w-3"]
    return len(fleet.trace)


def test_a_run_that_is_killed_anywhere_is_finished_by_the_next() -> None:
    count = boundaries()
    assert count > 60
    for number in range(1, count + 1):
        fleet = two()

        def kill(at: int, what: str, fleet: Fleet = fleet, number: int = number) -> None:
            if at >= number:
                fleet.dead.add("run-1")
                raise w.Killed(what)
            lives(fleet)

        fleet.hook = kill
        with pytest.raises(w.Killed):
            fleet.reconcile(until_settled=True, max_runtime=900.0, holder="run-1")
        fleet.hook = lambda at, what, fleet=fleet: lives(fleet)
        fleet.clock.time += 200
        outcome = fleet.reconcile(until_settled=True, max_runtime=3000.0, holder="run-2")
        assert sorted(fleet.accepted) == ["cp-2", "w-3"], (number, outcome)
        assert {row.name for row in outcome.machines if row.ready} == {"cp-1", "cp-2", "w-3"}, (number, outcome.machines)
        assert "disruption" not in fleet.cluster().status and {view.holder for view in fleet.store.leases.held.values()} <= fleet.dead


def is_write(what: str) -> bool:
    return what.startswith(("status ", "event ", "lease ", "renew ")) and not what.startswith("status written ")


def _restarting(number: int) -> tuple[Fleet, dict[str, float]]:
    """A fleet whose store is out of reach for a minute from that write on, and when that began."""
    fleet, away = two(), {"from": float("inf")}
    inner_get, inner_list = fleet.store.get, fleet.store.list

    def asked() -> None:
        if 0 <= fleet.clock.monotonic() - away["from"] < 60:
            raise TalosError("StoreUnreachable", "The API server does not answer.", "See to it.")

    def restarts(at: int, what: str) -> None:
        lives(fleet)
        if is_write(what):
            if sum(map(is_write, fleet.trace)) == number:
                away["from"] = fleet.clock.monotonic()
            asked()

    def get(kind: str, name: str) -> Record | None:
        asked()
        return inner_get(kind, name)

    def listing(kind: str) -> Listing:
        asked()
        return inner_list(kind)

    fleet.store.get, fleet.store.list = get, listing  # type: ignore[method-assign]
    fleet.hook = restarts
    return fleet, away


def test_a_store_that_is_out_of_reach_for_a_minute_ends_no_run(record_property: Callable[[str, object], None]) -> None:
    """An API server is restarted at every write of the run in turn: nothing can be read or written meanwhile, and the run goes on by itself."""
    whole = two()
    whole.hook = lambda count, what: lives(whole)
    whole.reconcile(until_settled=True, max_runtime=900.0)
    writes = sum(map(is_write, whole.trace))
    for number in range(1, writes + 1):
        fleet, away = _restarting(number)
        outcome = fleet.reconcile(until_settled=True, max_runtime=3000.0)
        assert away["from"] < float("inf") and sorted(fleet.accepted) == ["cp-2", "w-3"], (number, fleet.trace[-20:])
        assert {row.name for row in outcome.machines if row.ready} == {"cp-1", "cp-2", "w-3"}, (number, outcome.machines)
        assert "disruption" not in fleet.cluster().status, number
    record_property("told", f"the controller, an API server that is restarted at each of {writes} writes: the run goes on, every configuration accepted once")


@pytest.mark.parametrize("lasting", [True, False])
def test_a_store_that_fails_at_any_write_costs_no_second_send(lasting: bool, record_property: Callable[[str, object], None]) -> None:
    """Full at every other one, read-only at the rest; for the rest of the run, or at that write alone."""
    whole = two()
    whole.hook = lambda count, what: lives(whole)
    whole.reconcile(until_settled=True, max_runtime=900.0)
    writes = sum(map(is_write, whole.trace))
    assert writes > 15
    for number in range(1, writes + 1):
        fleet = two()

        def fails(at: int, what: str, fleet: Fleet = fleet, number: int = number) -> None:
            lives(fleet)
            done = sum(map(is_write, fleet.trace))
            if is_write(what) and (done >= number if lasting else done == number):
                raise TalosError("StoreFull" if number % 2 else "StoreReadOnly", "The store cannot be written.", "See to its file system.")

        fleet.hook = fails
        with suppress(TalosError):
            fleet.reconcile(until_settled=True, max_runtime=60.0, holder="run-1")
        fleet.hook = lambda at, what, fleet=fleet: lives(fleet)
        fleet.dead.add("run-1")
        fleet.clock.time += 200
        outcome = fleet.reconcile(until_settled=True, max_runtime=3000.0, holder="run-2")
        assert sorted(fleet.accepted) == ["cp-2", "w-3"], (number, fleet.trace[-20:])
        assert {row.name for row in outcome.machines if row.ready} == {"cp-1", "cp-2", "w-3"}, (number, outcome.machines)
        assert "disruption" not in fleet.cluster().status, number
    record_property("told", f"the controller, a store that fails {'from' if lasting else 'at'} each of {writes} writes: every configuration accepted once")


@pytest.mark.parametrize("start", [0.0, 7.0])
def test_two_at_once_send_once(start: float) -> None:
    fleet = two()
    fleet.hook = lambda count, what: lives(fleet)

    async def one(holder: str, after: float) -> Outcome:
        await fleet.clock.sleep(after)
        return await run(Request(until_settled=True, max_runtime=1500.0), fleet.ports(holder), w.OpenGate())

    async def both() -> tuple[Outcome, Outcome]:
        first, second = await asyncio.gather(one("run-1", 0.0), one("run-2", start))
        return first, second

    outcomes = asyncio.run(both())
    assert sorted(fleet.accepted) == ["cp-2", "w-3"] and not fleet.store.leases.held
    assert len({step for outcome in outcomes for step in outcome.executed}) == 2


def test_a_node_that_flaps_for_an_hour_is_told_and_sent_nothing() -> None:
    fleet = Fleet(bootstrapped=True)
    nodes = [fleet.runs(f"m-{number}", number, "controlplane" if number == 1 else "worker") for number in (1, 2, 3)]

    def flaps(count: int, what: str) -> None:
        nodes[2].mode = "closed" if int(fleet.clock.time - w.START) // 10 % 2 else "running"

    fleet.hook = flaps
    outcome = fleet.reconcile(max_runtime=3600.0)
    assert not fleet.received and not outcome.executed and not outcome.extra["later_plans"]
    assert {row.name: row.ready for row in outcome.machines}["m-2"] is True
    # A machine that comes and goes writes a handful of states, not one for each look of an hour.
    assert fleet.store.writes < 200
