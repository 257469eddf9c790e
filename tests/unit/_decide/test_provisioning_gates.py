# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every gate of provisioning has a row and is noticed when it is taken away (design section 9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning import GATES, Gate, decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import (
    Follow, Need, Pin, Provisioning, Refused, Send, Unchanged, Verdict,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._model.records import TRUST_FINGERPRINT
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._decide.rows_provisioning import (
    CONTROL_PLANES, PROVISIONING, UNATTENDED, Row, condition, disk, members, sending,
)
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def told(verdict: Verdict) -> tuple[str, str]:
    """(rule, reason or kind) of a verdict."""
    if isinstance(verdict, Refused):
        return verdict.refusal.rule, verdict.refusal.reason
    if isinstance(verdict, (Follow, Unchanged)):
        return verdict.rule, type(verdict).__name__
    return "9/6-no-pin" if isinstance(verdict, Pin) else "", type(verdict).__name__


@pytest.mark.parametrize("row", PROVISIONING, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    rule, says = told(decide(row.seen(), case.NOW))
    assert says == row.says
    #: The holds of a cluster carry the ids of the lock's own rows.
    assert rule == row.rule or (row.rule == "9/8-cluster" and rule.startswith("13/")) or row.id in ("9/runs-other-bytes", "9/no-pin-and-restless")


@pytest.fixture(scope="module")
def judged() -> list[tuple[Provisioning, tuple[str, str]]]:
    """Every row's observation with what all gates together say of it."""
    return [(seen, told(decide(seen, case.NOW))) for seen in (row.seen() for row in PROVISIONING)]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate, judged: list[tuple[Provisioning, tuple[str, str]]]) -> None:
    rest = tuple(other for other in GATES if other is not gate)

    def noticed(seen: Provisioning, before: tuple[str, str]) -> bool:
        try:
            return told(decide(seen, case.NOW, rest)) != before
        except ValueError:
            return True  # a later gate has no ground to stand on

    assert any(noticed(seen, before) for seen, before in judged)


def test_every_gate_has_a_row() -> None:
    ids = [row.id for row in PROVISIONING]
    assert len(ids) == len(set(ids)) and {gate.id for gate in GATES} == {row.rule for row in PROVISIONING if row.rule}


@pytest.mark.parametrize("seen, reading", [
    (replace(case.worker(), running=None, maintenance=None), "running"),
    (replace(case.worker(), maintenance=None), "maintenance"),
    (case.worker(status={"maintenanceFingerprint": None}), "settled"),
    (replace(case.controlplane(bootstrapped=True), members=None), "members"),
], ids=["authenticated-first", "insecure-second", "settled", "members"])
def test_what_is_read_next_is_a_decision(seen: Provisioning, reading: str) -> None:
    assert decide(seen, case.NOW) == Need(reading)


@pytest.mark.parametrize("seen", [
    case.worker(), case.controlplane(), case.controlplane(bootstrapped=True),
    case.shows(case.worker(annotations={TRUST_FINGERPRINT: "FP-two"}), certificate="two"),
    case.worker(machine={"acceptedFingerprint": w.certificate("one").sha256}),
    case.worker(status=sending()), case.worker(status=sending(age=1, by="run-1")),
    case.worker(others=(w.machine_record("m9", 9, hostname="m1", approvalState="pending"),)),
    case.controlplane(others=(w.machine_record("cp9", 9, "controlplane"),)), case.worker(cluster={"hold": ""}),
    case.worker(others=CONTROL_PLANES),
    case.shows(members(EtcdMember("a1", "m1", ("https://10.0.0.1:2380",))), partitions=case.labels("META", "EPHEMERAL")),
    case.worker(status=condition("Removal", "False")), case.shows(case.worker(config=UNATTENDED), version="v1.14.0"),
    case.shows(case.worker(cluster={"secureBoot": "Preferred"}), secure_boot=False),
    case.shows(case.worker(machine={"identity": {"serial": "SER-1"}}), identity=Identity(w.uuid(9), "SER-1", ("00:1c:42:00:00:99",))),
], ids=["worker", "control-plane", "joining", "annotation-accepts", "pin-in-hex", "second-attempt", "own-fresh-sending", "pending-namesake",
        "even-count-is-turned-odd", "no-hold", "cap-is-not-for-workers", "own-member-by-address-with-its-data", "removal-lifted", "newest",
        "secure-boot-preferred", "weak-resolved"])
def test_exceptions_that_may_be_sent(seen: Provisioning) -> None:
    verdict = decide(seen, case.NOW)
    assert isinstance(verdict, Send) and not verdict.step.waits_for


def test_a_second_attempt_is_counted() -> None:
    first, second = decide(case.worker(), case.NOW), decide(case.worker(status=sending()), case.NOW)
    assert isinstance(first, Send) and isinstance(second, Send)
    assert (first.attempt, second.attempt, first.step.id) == (1, 2, second.step.id)


def test_a_control_plane_of_a_bootstrapped_cluster_waits_for_the_one_that_joins() -> None:
    cluster = w.cluster_record(status={**case.BOOTSTRAPPED, "disruption": {"machine": "cp2", "step": "join", "time": "2023-11-14T00:00:00Z"}})
    verdict = decide(replace(case.controlplane(bootstrapped=True), cluster=cluster), case.NOW)
    assert isinstance(verdict, Send) and [wait.target for wait in verdict.step.waits_for] == ["cp2"]
    worker = decide(replace(case.worker(), cluster=cluster), case.NOW)
    assert isinstance(worker, Send) and not worker.step.waits_for


def test_without_a_store_uuid_and_pin_are_held_and_it_is_said_that_there_is_no_memory() -> None:
    alone = case.case("worker", stored=False)
    verdict = decide(alone, case.NOW)
    assert isinstance(verdict, Send) and [warning.rule for warning in verdict.warnings] == ["9/no-store"]
    assert told(decide(case.shows(alone, certificate="two"), case.NOW))[1] == "MaintenanceIdentityChanged"
    assert told(decide(case.shows(alone, identity=w.identity(9)), case.NOW))[1] == "IdentityMismatch"
    assert told(decide(case.silent(alone, "ClientCertificateRequired"), case.NOW))[1] == "AlreadyConfigured"
    assert told(decide(case.silent(alone, "ConnectionRefused"), case.NOW))[1] == "ConnectionRefused"
    assert told(decide(case.running(alone), case.NOW))[1] == "AlreadyConfigured"
    assert told(decide(case.running(alone, config=alone.config.value.sha256), case.NOW))[1] == "Unchanged"  # type: ignore[union-attr]


def test_a_changed_pin_says_everything_that_a_person_needs() -> None:
    verdict = decide(case.shows(case.worker(), certificate="two"), case.NOW)
    assert isinstance(verdict, Refused)
    for part in ("FP-one", "FP-two", "2023-11-14T00:00:00Z", "valid from", "identity is equal", "12 h"):
        assert part in verdict.refusal.message
    assert "talos_machine" in verdict.refusal.hint and "trust=true" in verdict.refusal.hint and "FP-two" in verdict.refusal.hint


def test_a_disk_that_is_not_blank_is_a_warning() -> None:
    verdict = decide(case.shows(case.worker(), disks=(disk(contents=("STATE xfs",)),)), case.NOW)
    assert isinstance(verdict, Send) and "STATE xfs" in verdict.warnings[0].message


def test_the_plan_of_a_pin_shows_the_send_of_a_later_round() -> None:
    verdict = decide(case.settled(case.worker(status={"maintenanceFingerprint": None})), case.NOW)
    assert isinstance(verdict, Pin) and verdict.send.waits_for and not verdict.record.waits_for
