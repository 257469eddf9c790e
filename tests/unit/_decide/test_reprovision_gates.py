# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every gate of re-provisioning: a row that meets it, and that nobody misses it unnoticed (design section 12)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import provisioning
from ansible_collections.ichor.talos.plugins.module_utils._decide.fallen_back import told_of
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_row import Gate
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import (
    Follow, Need, Provisioning, Refused, Remove, Send, Unchanged, Verdict,
)
from ansible_collections.ichor.talos.plugins.module_utils._decide.reprovision import GATES, decide_again
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import LOCK_REASONS
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide import reprovision_case as again
from ansible_collections.ichor.talos.tests.unit._decide.rows_reprovision import REPROVISION, Row


def told(verdict: Verdict) -> tuple[str, str, tuple[str, ...]]:
    """(rule, reason or steps, what the first step waits for) of a verdict."""
    if isinstance(verdict, Refused):
        return verdict.refusal.rule, verdict.refusal.reason, ()
    if isinstance(verdict, (Follow, Unchanged)):
        return verdict.rule, type(verdict).__name__, ()
    if isinstance(verdict, Need):
        return "", f"needs {verdict.reading}", ()
    steps = told_of(verdict).plan.steps
    return "", ", ".join(step.action for step in steps), tuple(wait.what for wait in steps[0].waits_for)


@pytest.mark.parametrize("row", REPROVISION, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    rule, says, waits = told(decide_again(row.seen(), case.NOW))
    assert (says, waits) == (row.says, row.waits)
    #: The holds of a cluster carry the ids of the lock's own rows.
    assert rule == row.rule or (row.rule == "9/8-cluster" and rule.startswith("13/"))


@pytest.fixture(scope="module")
def judged() -> list[tuple[Provisioning, tuple[str, str, tuple[str, ...]]]]:
    """Every row's observation with what all gates together say of it."""
    return [(seen, told(decide_again(seen, case.NOW))) for seen in (row.seen() for row in REPROVISION)]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate, judged: list[tuple[Provisioning, tuple[str, str, tuple[str, ...]]]]) -> None:
    rest = tuple(other for other in GATES if other is not gate)

    def noticed(seen: Provisioning, before: tuple[str, str, tuple[str, ...]]) -> bool:
        try:
            return told(decide_again(seen, case.NOW, rest)) != before
        except ValueError:
            return True  # a later gate has no ground to stand on

    assert any(noticed(seen, before) for seen, before in judged)


def test_every_row_has_an_id_of_its_own() -> None:
    ids = [row.id for row in REPROVISION]
    assert sorted(ids) == sorted(set(ids))


def test_a_gate_that_provisioning_gains_holds_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [gate.id for gate in GATES]
    kept = [gate.id for gate in provisioning.GATES if gate.id in here]
    assert kept == [one for one in here if one in kept]
    gone = {gate.id for gate in provisioning.GATES} - set(kept)
    assert gone == {"9/5-record-twin", "9/5-same-address", "9/4-converged", "9/6-pin", "9/6-pin-missing", "9/6-no-pin", "9/7-disk", "9/8-hold-apply",
                    "9/8-hostname", "9/8-hostname-record", "12/send-state-present", "12/send-labels-unclear", "12/send-stale-member",
                    "15/held"}


def test_etcd_is_asked_only_for_a_wiped_control_plane_with_others() -> None:
    assert told(decide_again(again.controlplane(etcd=None), case.NOW))[1] == "needs etcd"
    assert told(decide_again(again.worker(etcd=None), case.NOW))[1] == "Reinstall"


def test_nothing_is_asked_of_a_node_before_the_gates_that_need_none() -> None:
    seen = replace(again.worker(), running=None, maintenance=None)
    assert told(decide_again(seen, case.NOW))[1] == "needs running"
    assert told(decide_again(replace(seen, running=case.SILENT), case.NOW))[1] == "needs maintenance"


def test_the_send_waits_for_the_removal_and_both_are_under_the_lock() -> None:
    verdict = decide_again(again.controlplane(), case.NOW)
    assert isinstance(verdict, Remove) and verdict.step.member == f"{1:016x}" and not verdict.step.reversible
    assert [wait.what for wait in verdict.send.waits_for] == ["its stale etcd member to be removed"]
    assert verdict.step.locked and verdict.send.locked and verdict.send.disruption == "wipe"


def test_a_member_that_is_kept_is_said_to_be_and_a_worker_takes_no_lock() -> None:
    kept = decide_again(again.keeps_data(again.controlplane()), case.NOW)
    assert isinstance(kept, Send) and "its etcd member is kept" in kept.step.why and kept.step.disruption == "none" and kept.step.locked
    worker = decide_again(again.worker(), case.NOW)
    assert isinstance(worker, Send) and not worker.step.locked and worker.step.disruption == "wipe"


def test_the_ids_of_the_steps_stay_over_the_readings() -> None:
    first, second = (decide_again(again.controlplane(seen_before=before), case.NOW) for before in ({}, None))
    assert isinstance(first, Remove) and isinstance(second, Remove)
    assert (first.step.id, first.send.id) == (second.step.id, second.send.id)
    third = decide_again(again.controlplane(etcd=again.view(again.member(2), again.member(3))), case.NOW)
    assert isinstance(third, Send) and third.step.id == first.send.id


def test_a_blocked_machine_without_others_points_to_the_restore() -> None:
    for seen in (again.controlplane(others=(), etcd=None), again.controlplane(etcd=case.SILENT)):
        verdict = decide_again(seen, case.NOW)
        assert isinstance(verdict, Refused) and "Restore etcd from a backup" in verdict.refusal.hint and "discard_etcd" in verdict.refusal.hint


def test_state_that_is_there_is_a_warning_and_a_lock_reason_passes() -> None:
    verdict = decide_again(again.shows(again.worker(), partitions=case.labels("STATE")), case.NOW)
    found = told_of(verdict)
    assert len(found.plan.warnings) == 1 and not found.plan.steps and found.settled
    busy = told_of(decide_again(next(row for row in REPROVISION if row.id == "12/sent-by-another-run").seen(), case.NOW))
    assert not busy.settled and busy.reason not in LOCK_REASONS
