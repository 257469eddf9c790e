# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Following as a table, what it writes, and that nothing but a member with a leader counts as joined."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._decide.following import ROWS, Following, Row, follow, is_member, is_settled, with_life
from ansible_collections.ichor.talos.plugins.module_utils._decide.stage import CONVERGED, FOLLOWED, NOTHING, asks_insecurely, kind_of, life_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import PROVISIONED_REASONS, READY_REASONS
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import STAGES, EtcdStatus
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide.rows_following import (
    LOOKS, MEMBER, NO_CREDENTIALS, NOW, SILENT, WANTS, Look, answers, etcd, followed, insecure,
)
from ansible_collections.ichor.talos.tests.unit._operations import world as w

JOINED = {"configStoredAt": "x", "appliedConfigHash": "a", "stage": "running"}


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.id)
def test_row(look: Look) -> None:
    life = follow(look.seen(), NOW)
    assert (life.rule, life.stage, life.observed, life.reason, life.joined, life.settled) == (
        look.rule, look.stage, look.observed, look.reason, look.joined, look.settled)
    assert look.says in life.message
    assert life.unread or life.reason in PROVISIONED_REASONS | READY_REASONS


def test_before_ten_minutes_nothing_is_said_of_slowness() -> None:
    assert "slow" not in follow(followed(minutes=9.9), NOW).message and "stuck" not in follow(followed(minutes=29.9), NOW).message


@pytest.mark.parametrize("row", ROWS[:-1], ids=lambda row: row.id)
def test_a_row_that_is_taken_away_is_noticed(row: Row) -> None:
    rest = tuple(other for other in ROWS if other is not row)
    assert any(follow(look.seen(), NOW, rest).rule != look.rule for look in LOOKS)


def test_every_row_is_shown() -> None:
    ids = [look.id for look in LOOKS]
    assert {row.id for row in ROWS} == {look.rule for look in LOOKS} and len(ids) == len(set(ids))


def test_the_static_address_at_which_the_machine_itself_answers_becomes_the_observed_one() -> None:
    seen = replace(followed(), elsewhere=(("10.0.0.50:50000", answers("booting")),))
    life = follow(seen, NOW)
    assert seen.machine is not None
    status = with_life(dict(seen.machine.status), life, seen.machine, NOW)
    assert (status["observedEndpoint"], status["observedEndpointFor"]) == ("10.0.0.50:50000", "10.0.0.1:50000")


def test_joining_makes_the_stored_hash_the_applied_one() -> None:
    seen = followed(answers("running"))
    assert seen.machine is not None
    before = {**seen.machine.status, "conditions": [{"type": "NodeReachable", "status": "False", "reason": "x", "message": ""}]}
    status = with_life(before, follow(seen, NOW), seen.machine, NOW)
    conditions = {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}  # type: ignore[attr-defined]
    assert status["appliedConfigHash"] == "a" and conditions == {"Provisioned": ("True", "NodeJoined"), "Ready": ("True", "Converged")}


def test_ready_carries_the_reason_of_provisioned_meanwhile() -> None:
    seen = followed(answers("booting"))
    assert seen.machine is not None
    status = with_life(dict(seen.machine.status), follow(seen, NOW), seen.machine, NOW)
    assert {(entry["status"], entry["reason"]) for entry in status["conditions"]} == {("False", "NodeStarting")}  # type: ignore[attr-defined]
    assert (status["stage"], status["stageObserved"]) == ("booting", True) and "appliedConfigHash" not in status


def test_another_machine_at_the_address_changes_no_stage() -> None:
    for seen in (followed(answers("running", number=9)), followed(SILENT, insecure(9))):
        assert seen.machine is not None
        status = with_life(dict(seen.machine.status), follow(seen, NOW), seen.machine, NOW)
        assert status["stage"] == "installing" and "appliedConfigHash" not in status


def test_a_second_equal_look_changes_nothing() -> None:
    seen = followed(answers("booting"))
    assert seen.machine is not None
    once = with_life(dict(seen.machine.status), follow(seen, NOW), seen.machine, NOW)
    assert with_life(once, follow(seen, NOW), seen.machine, NOW + 15) == once


@pytest.mark.parametrize("status, answered, kind, insecurely", [
    ({"stage": "x"}, True, NOTHING, True), ({"configStoredAt": "x"}, False, FOLLOWED, True),
    ({"configStoredAt": "x", "appliedConfigHash": "a"}, True, CONVERGED, False), ({"sending": {"hash": "a"}}, True, FOLLOWED, True),
    ({"sending": {"hash": "a"}}, False, NOTHING, True), ({}, True, NOTHING, False),
], ids=["never-sent", "stored", "joined", "sending-and-answered", "sending-and-silent", "status-lost"])
def test_what_a_look_may_write_and_ask(status: dict[str, object], answered: bool, kind: str, insecurely: bool) -> None:
    machine = w.machine_record("m1", 1, status=status)
    assert kind_of(machine, answered) == kind and asks_insecurely(machine) == insecurely
    pending = w.machine_record("m1", 1, status=status, approvalState="pending")
    assert kind_of(pending, answered) == NOTHING
    assert not asks_insecurely(w.machine_record("m1", 1, status={"stage": "x"}, approvalState="rejected"))


@pytest.mark.parametrize("seen, rule, reason", [
    (followed(SILENT, insecure(), status={"stage": "maintenance"}), "9/never-sent", "AwaitingInstall"),
    (followed(SILENT, insecure(), status={"stage": "maintenance"}, approvalState="pending"), "9/pending", "PendingApproval"),
    (followed(answers("running"), status={"stage": "maintenance"}, approvalState="pending"), "9/pending", "PendingApproval"),
    (followed(status={"sending": {"hash": "a"}}, approvalState="rejected"), "9/rejected", "Rejected"),
    (followed(status={"stage": "maintenance"}, approvalState="rejected"), "9/rejected", "Rejected"),
    (followed(status={"stage": "maintenance"}), "9/never-sent-silent", "CurrentConfigUnavailable"),
    (followed(status={"sending": {"hash": "a"}}), "9/sending", "SendingUnconfirmed"),
    (followed(answers("running"), status={}), "4/status-missing", "StatusMissing"),
    (followed(status={"configStoredAt": "x", "appliedConfigHash": "a", "stage": "running"}), "11/unreachable", "NodeUnreachable"),
    (followed(answers("running"), status={"configStoredAt": "x", "appliedConfigHash": "a"}), "9/follow-joined", "Converged"),
    (followed(record=False), "9/no-record-silent", "NodeUnreachable"),
    (followed(SILENT, insecure(), record=False), "9/no-record-maintenance", "AwaitingInstall"),
    (followed(NO_CREDENTIALS, WANTS, record=False), "9/follow-no-credentials", "SecretsUnavailable"),
    (followed(NO_CREDENTIALS, Absent(), status=JOINED), "9/follow-no-credentials", "SecretsUnavailable"),
    (followed(NO_CREDENTIALS, WANTS, status={"stage": "maintenance"}), "9/follow-no-credentials", "SecretsUnavailable"),
    (followed(NO_CREDENTIALS, Absent(), status={"stage": "maintenance"}, approvalState="rejected"), "9/rejected", "Rejected"),
    (followed(NO_CREDENTIALS, Absent(), status={}), "4/status-missing", "StatusMissing"),
    (followed(Unknown("UnknownAuthority", "x"), Absent(), status=JOINED), "9/follow-other-authority", "UnknownAuthority"),
    (followed(Unknown("TimedOut", "x"), Absent(), status=JOINED), "11/unreachable", "NodeUnreachable"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_life_in_the_words_of_its_past(seen: Following, rule: str, reason: str) -> None:
    life = life_of(seen, NOW)
    assert (life.rule, life.reason) == (rule, reason)


def test_settled_until_running_wants_more() -> None:
    waits = follow(followed(answers("booting", services=etcd("Preparing")), role="controlplane", bootstrapped=False), NOW)
    assert is_settled(waits, None, until_running=False) and not is_settled(waits, None, until_running=True)


_ANSWERS = st.builds(
    lambda stage, unattended, state, learner, leader, number, there: answers(
        stage, unattended=unattended, services=etcd(state), number=number,
        status=Present(EtcdStatus("a1", leader, learner)) if there else Unknown("TimedOut")),
    st.sampled_from(STAGES), st.sampled_from(["", "pending", "installing", "waiting-for-reboot", "installed", "failed"]),
    st.sampled_from(["Preparing", "Running", "Waiting"]), st.booleans(), st.sampled_from(["", "0000000000000000", "a1"]), st.sampled_from([1, 1, 9]),
    st.booleans())
_LOOKS = st.builds(
    lambda answer, maintenance, role, bootstrapped, minutes: followed(answer, maintenance, role=role, bootstrapped=bootstrapped, minutes=minutes),
    st.one_of(_ANSWERS, st.sampled_from([SILENT, Unknown("TimedOut"), Unknown("UnknownAuthority")])),
    st.one_of(st.sampled_from([insecure(), insecure(9), SILENT, WANTS])), st.sampled_from(["worker", "controlplane"]), st.booleans(), st.integers(0, 100))


@settings(max_examples=400, deadline=None)
@given(_LOOKS)
def test_joined_is_only_a_machine_that_itself_runs_and_a_control_plane_that_is_a_member(seen: Following) -> None:
    life = follow(seen, NOW)
    if life.joined:
        assert isinstance(seen.answer, Present) and seen.machine is not None
        answer = seen.answer.value
        assert answer.identity == w.identity(1) and answer.stage.stage == "running" and answer.stage.unattended_install in ("", "installed")
        assert seen.machine.spec["role"] == "worker" or is_member(answer.etcd)
    assert (life.unread or life.reason in PROVISIONED_REASONS | READY_REASONS) and life.message
    assert not (life.joined and (life.wrong or life.silent)) and (life.settled or not life.joined)


def test_the_member_of_the_rows_is_one() -> None:
    assert is_member(MEMBER)
