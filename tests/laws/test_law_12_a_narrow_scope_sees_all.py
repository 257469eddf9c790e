# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 12: a narrower scope never means a smaller view: counts, names, members and whose turn it is are those of the whole cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._controller.fleet import Fleet

SCOPES: dict[str, dict[str, Any]] = {
    "by name": {"machines": ("new",)},
    "by select": {"select": "[?metadata.name=='new'].metadata.name"},
    "by both": {"machines": ("new",), "select": "[?metadata.name=='new'].metadata.name"},
}


def reconcile(fleet: Fleet, scope: str) -> Outcome:
    options = dict(SCOPES[scope])
    return fleet.reconcile(*options.pop("machines", ()), passes=1, **options)


def too_many(fleet: Fleet) -> None:
    for number in (2, 3, 4):
        fleet.waits(f"cp-{number}", number, "controlplane")
    fleet.waits("new", 9, "controlplane")


def same_name(fleet: Fleet) -> None:
    fleet.runs("other", 2, hostname="twin")
    fleet.waits("new", 9, hostname="twin")


def somebody_is_disrupted(fleet: Fleet) -> None:
    for number in (1, 2, 3):
        fleet.runs(f"cp-{number}", number, "controlplane")
    fleet.waits("new", 9, "controlplane")
    fleet.store.put(replace(fleet.cluster(), status={
        **fleet.cluster().status, "disruption": {"machine": "cp-2", "step": "reboot", "time": "2023-11-14T22:00:00Z", "bootID": "boot-1"}}))
    next(node for node in fleet.nodes.values() if node.name == "cp-2").mode = "closed"


def no_member_answers(fleet: Fleet) -> None:
    fleet.runs("cp-1", 1, "controlplane").mode = "closed"
    fleet.waits("new", 9, "controlplane")


def recorded_twice(fleet: Fleet) -> None:
    fleet.waits("new", 9)
    fleet.store.put(replace(w.machine_record("other", 9), spec={**w.machine_record("other", 9).spec, "endpoint": "10.0.0.77:50000"}))


CASES: dict[str, tuple[Callable[[Fleet], None], str]] = {
    "more control planes than the count": (too_many, "ControlPlaneCapExceeded"),
    "a host name that another machine has": (same_name, "HostnameConflict"),
    "members that nobody can be asked for": (no_member_answers, "HostnameConflict"),
    "another record of the same machine": (recorded_twice, "TwinIdentity"),
    "another machine that is disrupted": (somebody_is_disrupted, ""),
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("case", CASES)
def test_what_holds_a_machine_holds_it_in_every_scope(case: str, scope: str) -> None:
    prepare, reason = CASES[case]
    fleet = Fleet(bootstrapped=case not in ("more control planes than the count",), count=1 if case.startswith("more") else 3)
    prepare(fleet)
    outcome = reconcile(fleet, scope)
    assert [row.name for row in outcome.machines] == ["new"] and not fleet.received and not outcome.executed
    if reason:
        assert outcome.machines[0].reason == reason
    else:
        assert any("cp-2" in wait.what or wait.target == "cp-2" for step in outcome.plan.steps for wait in step.waits_for)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_machine_that_nothing_holds_is_the_only_one_that_is_acted_on(scope: str) -> None:
    fleet = Fleet()
    fleet.waits("new", 9)
    fleet.waits("other", 2)
    fleet.waits("third", 3)
    outcome = reconcile(fleet, scope)
    assert fleet.accepted == ["new"] and {step.target.name for step in outcome.plan.steps} == {"new"}
