# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bootstrap as a table: every gate has a row and is noticed when it is taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.bootstrap import (
    GATES, Done, Gate, Go, Refused, Verdict, decide_bootstrap, with_bootstrapped, with_bootstrapping, without_bootstrapping,
)
from ansible_collections.ichor.talos.tests.unit._decide import rows_bootstrap as rows
from ansible_collections.ichor.talos.tests.unit._decide.rows_bootstrap import CASES, Case


def told(verdict: Verdict) -> tuple[str, str, bool]:
    """(rule, reason or kind, whether it passes by itself)."""
    if isinstance(verdict, Refused):
        return verdict.refusal.rule, verdict.refusal.reason, verdict.passing
    return "", type(verdict).__name__, False


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_row(case: Case) -> None:
    assert told(decide_bootstrap(case.seen())) == (case.rule, case.says, case.passing)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate) -> None:
    rest = tuple(other for other in GATES if other is not gate)
    assert any(told(decide_bootstrap(case.seen(), rest)) != told(decide_bootstrap(case.seen())) for case in CASES)


def test_every_gate_has_a_row() -> None:
    assert {gate.id for gate in GATES} <= {case.rule for case in CASES}
    assert len({case.id for case in CASES}) == len(CASES)


def test_nothing_is_asked_of_nodes_before_the_records_allow_it() -> None:
    seen = replace(rows.seen(machine=rows.another(1, approvalState="pending")), answers=None)
    assert told(decide_bootstrap(seen))[1] == "NotApproved"


def test_the_step_cannot_be_taken_back_and_names_the_machine() -> None:
    verdict = decide_bootstrap(rows.seen())
    assert isinstance(verdict, Go) and not verdict.step.reversible and verdict.step.machine_uuid == rows.w.uuid(1)


def test_the_refusal_names_who_is_silent_and_why() -> None:
    silent = rows.seen(others=rows.TWO, answers_of={"m2": rows.Unknown("TimedOut", "no answer within 20 s")})
    verdict = decide_bootstrap(silent)
    assert isinstance(verdict, Refused) and "m2 does not (no answer within 20 s)" in verdict.refusal.message and "m3" in verdict.refusal.message


def test_a_bootstrapped_cluster_says_since_when() -> None:
    verdict = decide_bootstrap(rows.seen(cluster_status={"bootstrappedAt": "2023-11-14T00:00:00Z"}))
    assert isinstance(verdict, Done) and verdict.message == "Cluster prod is bootstrapped already, at 2023-11-14T00:00:00Z."


def test_what_is_written_before_and_after() -> None:
    begun = with_bootstrapping({"x": 1}, "m1", 0)
    assert begun["bootstrapping"] == {"machine": "m1", "time": "1970-01-01T00:00:00Z"}
    assert without_bootstrapping(begun, "m1") == {"x": 1} and without_bootstrapping(begun, "m2") == begun
    done = with_bootstrapped(begun, 60)
    assert done == {"x": 1, "bootstrappedAt": "1970-01-01T00:01:00Z"} and with_bootstrapped(done, 999) == done
