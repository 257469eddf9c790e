# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 1: observe, decide, act: what check mode prints is what a real run executes, and check mode writes nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._controller.fleet import Fleet

#: What a machine of a random fleet is: never sent, without a pin, with another certificate than the pinned one, silent, held, pending, running.
KINDS = ("waits", "no pin", "another certificate", "silent", "held", "pending", "runs")
FLEETS = st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=5)


def fleet_of(kinds: list[tuple[str, bool]], bootstrapped: bool) -> Fleet:
    fleet = Fleet(bootstrapped=bootstrapped, count=5)
    for number, (kind, control_plane) in enumerate(kinds, 1):
        name, role = f"m-{number}", "controlplane" if control_plane else "worker"
        if kind == "runs":
            fleet.runs(name, number, role)
            continue
        more = {"approvalState": "pending"} if kind == "pending" else {"status": {"stage": "maintenance"}} if kind == "no pin" else {}
        node = fleet.waits(name, number, role, **more)
        if kind == "another certificate":
            node.certificate = w.certificate("two")
        elif kind == "silent":
            node.mode = "closed"
        elif kind == "held":
            record = fleet.machine(name)
            fleet.store.put(replace(record, annotations={"ichor.maesh.dev/hold-apply": "true"}))
    return fleet


def joins(fleet: Fleet) -> None:
    """Whoever accepted a configuration runs at once."""
    def life(count: int, what: str) -> None:
        for node in fleet.nodes.values():
            if node.name in fleet.accepted and node.mode == "closed":
                node.mode, node.stage, node.ready = "running", "running", True
                if not node.worker:
                    node.etcd, node.leader = "Running", "x"

    fleet.hook = life


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLEETS, st.booleans())
def test_the_steps_of_a_run_are_exactly_those_of_the_plan(kinds: list[tuple[str, bool]], bootstrapped: bool) -> None:
    fleet = fleet_of(kinds, bootstrapped)
    records, trace = dict(fleet.store.records), len(fleet.trace)
    planned = fleet.reconcile(check=True)
    assert fleet.store.records == records and not fleet.received and not fleet.store.written
    assert not [what for what in fleet.trace[trace:] if what.startswith(("status", "event", "lease", "apply"))]

    joins(fleet)
    real = fleet.reconcile(until_settled=True, max_runtime=3600.0)
    assert real.plan.id == planned.plan.id and not real.extra["later_plans"]
    assert sorted(real.executed) == sorted(step.id for step in planned.plan.steps)
    again = fleet.reconcile(until_settled=True, max_runtime=600.0)
    assert not again.plan.steps and not again.executed
