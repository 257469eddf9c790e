# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Discovery by the controller: new machines become pending, every five minutes, and only where whole clusters are reconciled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit.machine_world import Gate, Node, Nodes, Store, cluster, facts, identity, machine, ports, uuid_of

NAMES = [f"prod-{uuid_of(1)[:8]}", f"prod-{uuid_of(2)[:8]}"]


def reconcile(store: Store, nodes: Nodes, *, check: bool = False, gate: Any = None, **options: Any) -> Outcome:
    given = ports(nodes, store, clock=w.JumpingClock(), check=check)  # type: ignore[arg-type]
    return asyncio.run(run(Request(**options), given, gate or Gate(check)))


def two_new() -> Nodes:
    return Nodes(*(Node(facts(f"10.0.0.{number}", identity(number), key=f"leaf-{number}")) for number in (1, 2)))


def test_new_machines_become_pending_in_one_pass() -> None:
    store = Store(cluster())
    planned = reconcile(Store(cluster(), check=True), two_new(), check=True)
    assert [step.action for step in planned.plan.steps] == ["CreateMachine"] * 2 and len(planned.would_be) == 2
    outcome = reconcile(store, two_new(), passes=1)
    assert outcome.plan.id == planned.plan.id and len(outcome.executed) == 2
    found = store.list("TalosMachine").records
    assert len(found) == 2 and all(record.spec["approvalState"] == "pending" for record in found)
    assert {row.reason for row in outcome.machines} == {"PendingApproval"} and len(outcome.machines) == 2
    again = reconcile(store, two_new(), passes=1)
    assert not again.plan.steps and not again.executed


def test_it_looks_again_every_five_minutes() -> None:
    store, nodes = Store(cluster()), Nodes()
    scans: list[int] = []
    scan = nodes.scan

    def counted(targets: Any, **options: Any) -> Any:
        scans.append(len(targets))
        if len(scans) == 3:
            nodes.at.update(two_new().at)
        return scan(targets, **options)

    nodes.scan = counted  # type: ignore[method-assign]
    outcome = reconcile(store, nodes, max_runtime=1000.0)
    # at 0, 300, 600 and 900 seconds, and once more for the two machines that were found
    assert len(scans) == 5 and len(outcome.executed) == 2
    # Nothing was called for at first, and something was done: the task has changed something.
    assert sorted(step.id for step in outcome.plan.steps) == sorted(outcome.executed)
    assert [step["action"] for step in outcome.extra["later_plans"][0]["plan"]] == ["CreateMachine"] * 2
    assert [row.reason for row in outcome.machines] == ["PendingApproval"] * 2


@pytest.mark.parametrize(("step", "soon"), [("reset", [15.0 * number for number in range(7)]), ("reboot", [0.0])])
def test_after_a_reset_it_looks_every_fifteen_seconds_for_half_an_hour(step: str, soon: list[float]) -> None:
    """The last 90 s of that half hour, and then every five minutes again."""
    began = w.START - 1800 + 90
    store, nodes = Store(replace(cluster(), status={"disruption": {"machine": "prod-9", "step": step, "time": moment(began)}})), Nodes()
    times: list[float] = []
    scan, clock = nodes.scan, w.JumpingClock()

    def noted(targets: Any, **options: Any) -> Any:
        times.append(clock.monotonic())
        return scan(targets, **options)

    nodes.scan = noted  # type: ignore[method-assign]
    asyncio.run(run(Request(max_runtime=500.0), ports(nodes, store, clock=clock), Gate(False)))  # type: ignore[arg-type]
    assert [at for at in times if at <= 90] == soon and len([at for at in times if at > 110]) == 1, times


@pytest.mark.parametrize("scope", [{"machines": ("prod-1",)}, {"select": "[].metadata.name"}, {"discover": False}, {"clusters": ("other",)}])
def test_a_narrower_scope_finds_nobody(scope: dict[str, Any]) -> None:
    store = Store(cluster(), cluster("other", discovery={}), machine(1))
    outcome = reconcile(store, two_new(), passes=1, **scope)
    assert not outcome.plan.steps and len(store.list("TalosMachine").records) == 1


def test_a_gate_that_holds_one_back_has_only_the_other_created() -> None:
    store = Store(cluster())

    def one(plan: Plan) -> Plan:
        return Plan(plan.steps[:1])

    outcome = reconcile(store, two_new(), passes=1, gate=one)
    assert len(outcome.plan.steps) == 2 and len(outcome.executed) == 1 and len(store.list("TalosMachine").records) == 1
