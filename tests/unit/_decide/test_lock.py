# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The refusals of the cluster lock, and the evidence that ends a disruption (design section 13)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import (
    LOCK_GATES, Disruption, Evidence, LockGate, LockView, disruption_of, disruption_over, held_by_other, lock_refusals,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import LOCK_REASONS
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.tests.unit._decide.rows_lock import LOCKS, LockRow
from ansible_collections.ichor.talos.tests.unit._operations import world as w

HERE = Target(name="m1")


@pytest.mark.parametrize("row", LOCKS, ids=lambda row: row.id)
def test_row(row: LockRow) -> None:
    found = lock_refusals(row.view, HERE)
    assert [refusal.reason for refusal in found] == list(row.reasons)
    assert {refusal.reason for refusal in found} <= LOCK_REASONS and all(refusal.hint for refusal in found)


@pytest.mark.parametrize("gate", LOCK_GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: LockGate) -> None:
    rest = tuple(other for other in LOCK_GATES if other is not gate)
    assert any(lock_refusals(row.view, HERE, rest) != lock_refusals(row.view, HERE) for row in LOCKS)


BEGAN, LATER, BEFORE = "2023-11-14T22:00:00Z", w.START, w.START - 10 ** 6


def disruption(step: str) -> Disruption:
    return Disruption("m1", step, BEGAN, "boot-1")


@pytest.mark.parametrize("step, evidence, over", [
    ("reset", Evidence(LATER, maintenance=True), True),
    ("reset", Evidence(LATER), False),
    ("reset", Evidence(LATER, ready_twice=True, member=True), False),
    ("reboot", Evidence(LATER, boot_id=Present("boot-2")), True),
    ("reboot", Evidence(LATER, boot_id=Present("boot-1")), False),
    ("reboot", Evidence(LATER, boot_id=Unknown("TimedOut")), False),
    ("reboot", Evidence(LATER, boot_id=Absent()), False),
    ("reboot", Evidence(LATER), False),
    ("reboot", Evidence(LATER, boot_id=Present("boot-2"), control_plane=True), False),
    ("reboot", Evidence(LATER, boot_id=Present("boot-2"), control_plane=True, ready_twice=True, member=True), True),
    ("reboot", Evidence(LATER - 300, boot_id=Present("boot-1"), stayed_up=True), False),
    ("reboot", Evidence(LATER, boot_id=Present("boot-1"), stayed_up=True), True),
    ("reboot", Evidence(LATER, boot_id=Present("boot-1"), stayed_up=True, control_plane=True), False),
    ("apply", Evidence(LATER, ready_twice=True, member=True), True),
    ("apply", Evidence(LATER, ready_twice=True), False),
    ("apply", Evidence(LATER, member=True), False),
    ("join", Evidence(LATER, ready_twice=True, member=True), True),
    ("join", Evidence(LATER, maintenance=True), False),
    ("apply", Evidence(BEFORE, ready_twice=True, member=True), False),
    ("reset", Evidence(BEFORE, maintenance=True), False),
], ids=lambda value: value if isinstance(value, str) else "")
def test_evidence(step: str, evidence: Evidence, over: bool) -> None:
    assert disruption_over(disruption(step), evidence) == over


def test_a_reboot_without_the_boot_id_before_it_is_never_proven() -> None:
    assert not disruption_over(Disruption("m1", "reboot", BEGAN), Evidence(LATER, boot_id=Present("boot-2")))


def test_a_disruption_whose_time_cannot_be_read_stays() -> None:
    assert not disruption_over(Disruption("m1", "reset", "soon"), Evidence(LATER, maintenance=True))


@pytest.mark.parametrize("status, machine, held", [
    ({}, "m1", False), ({"disruption": {"machine": "m1", "step": "join", "time": BEGAN}}, "m1", False),
    ({"disruption": {"machine": "m2", "step": "join", "time": BEGAN}}, "m1", True),
])
def test_a_disruption_holds_the_others(status: Mapping[str, object], machine: str, held: bool) -> None:
    assert held_by_other(disruption_of(w.cluster_record(status=status)), machine) == held


def test_no_cluster_has_no_disruption() -> None:
    assert disruption_of(None) is None and LockView(None, ()).count == 1
