# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restores as a table: every gate has a row and is noticed when it is taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.bootstrap import cluster_target
from ansible_collections.ichor.talos.plugins.module_utils._decide.following import Answer
from ansible_collections.ichor.talos.plugins.module_utils._decide.restore import (
    GATES, Gate, Go, Refused, Restoring, Snapshot, Verdict, decide_restore, restore_warnings, with_restored, with_restoring, without_restoring,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._decide.rows_bootstrap import SENT, TWO, another, waiting
from ansible_collections.ichor.talos.tests.unit._decide.rows_following import MEMBER, answers, etcd
from ansible_collections.ichor.talos.tests.unit._operations import world as w

GOOD = Snapshot("prod.snapshot", 20512, "a" * 64)
SILENT = Unknown("TimedOut", "no answer within 20 s")
JOINED = {**SENT, "appliedConfigHash": "a"}


def seen(*, machine: Record | None = None, others: tuple[Record, ...] = (), status: Mapping[str, object] | None = None,
         answers_of: Mapping[str, Observed[Answer]] | None = None, cluster: Mapping[str, object] | None = None, **changed: object) -> Restoring:
    """The bootstrapped cluster's control plane m1 waits for etcd, alone unless `others` say more."""
    own = machine or another(1, status=JOINED)
    spec = dict(cluster or {})
    record = w.cluster_record(status={"bootstrappedAt": "2023-11-14T00:00:00Z", **(status or {})}, count=spec.pop("count", 3), **spec)  # type: ignore[arg-type]
    found = {"m1": waiting(), **(answers_of or {})}
    base = Restoring(cluster_target("prod", record.uid, own), record, own, (own, *others), Destination(path="/srv"), Present(GOOD), "prod", (), False,
                     tuple(found.items()))
    return replace(base, **changed)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    id: str
    rule: str
    seen: Callable[[], Restoring]
    says: str
    passing: bool = False


def _answer(answer: Observed[Answer], **changed: object) -> Restoring:
    return seen(answers_of={"m1": answer}, **changed)  # type: ignore[arg-type]


INSIDE = Destination(endpoint="http://minio.storage.svc", bucket="etcd")
CASES: tuple[Case, ...] = (
    Case("17/restore", "", seen, "Go"),
    Case("17/restore-asks", "", lambda: seen(answers=None), "NeedAnswers"),
    Case("17/restore-beside-two-that-wait", "", lambda: seen(others=TWO, answers_of={"m2": waiting(2), "m3": waiting(3)}), "Go"),
    Case("17/restore-with-two-lost", "", lambda: seen(others=TWO, answers_of={"m2": SILENT, "m3": SILENT}, lost=("m2", "m3")), "Go"),
    Case("17/restore-wiped", "", lambda: _answer(SILENT, wiped=True), "Install"),
    Case("17/restore-after-one-that-failed", "", lambda: _answer(answers("running", status=Unknown("TimedOut", "hangs"))), "Go"),
    Case("17/restore-again-on-the-same", "", lambda: seen(status={"operation": {"name": "restore on m1", "since": "x"}}), "Go"),
    Case("17/restore-lost-answer", "", lambda: _answer(
        answers("running", status=MEMBER), status={"operation": {"name": "restore on m1", "since": "x"}}), "Done"),
    Case("17/restore-unverified", "", lambda: seen(snapshot=Present(replace(GOOD, problem="it has no hash")), unverified=True), "Go"),
    Case("17/restore-no-confirm", "17/restore-unconfirmed", lambda: seen(confirm=""), "ConfirmationMissing"),
    Case("17/restore-another-name", "17/restore-unconfirmed", lambda: seen(confirm="m1"), "ConfirmationMissing"),
    Case("17/restore-from-inside", "17/restore-store-in-cluster", lambda: seen(source=INSIDE), "StoreInCluster"),
    Case("17/restore-from-inside-whatever-is-typed", "17/restore-store-in-cluster",
         lambda: seen(source=INSIDE, others=TWO, lost=("m2", "m3"), unverified=True, wiped=True), "StoreInCluster"),
    Case("17/restore-pending", "17/restore-not-approved", lambda: seen(machine=another(1, approvalState="pending")), "NotApproved"),
    Case("17/restore-worker", "17/restore-not-control-plane", lambda: seen(machine=w.machine_record("m1", 1, status=JOINED)), "NotControlPlane"),
    Case("17/restore-status-lost", "17/restore-status-missing", lambda: seen(others=(another(2, status={}), TWO[1]), answers_of={"m3": waiting(3)}),
         "StatusMissing"),
    Case("17/restore-never-sent", "17/restore-not-sent", lambda: seen(machine=another(1, status={"stage": "maintenance"})), "BootstrapNotAvailable"),
    Case("17/restore-lost-nobody", "17/restore-lost-unknown", lambda: seen(lost=("m9",)), "InvalidInput"),
    Case("17/restore-lost-itself", "17/restore-lost-unknown", lambda: seen(lost=("m1",)), "InvalidInput"),
    Case("17/restore-of-another-under-way", "17/restore-operation", lambda: seen(status={"operation": {"name": "restore on m2", "since": "x"}}),
         "OperationInProgress"),
    Case("17/restore-bootstrapping", "17/restore-bootstrap-elsewhere", lambda: seen(status={"bootstrapping": {"machine": "m2", "time": "x"}}),
         "BootstrapInProgress"),
    Case("17/restore-during-a-disruption", "17/restore-disruption", lambda: seen(
        status={"disruption": {"machine": "m9", "step": "reset", "time": "2023-11-14T00:00:00Z"}}), "OperationInProgress"),
    Case("17/restore-cut-off", "17/snapshot-invalid", lambda: seen(snapshot=Present(replace(GOOD, problem="it was cut off"))), "SnapshotInvalid"),
    Case("17/restore-not-what-was-saved", "17/snapshot-invalid", lambda: seen(snapshot=Present(replace(GOOD, expected="b" * 64))), "SnapshotInvalid"),
    Case("17/restore-not-found", "17/snapshot-invalid", lambda: seen(snapshot=Unknown("SnapshotNotFound", "no")), "SnapshotNotFound"),
    Case("17/restore-without-credentials", "17/restore-no-credentials", lambda: _answer(Unknown("SecretsUnavailable", "none")), "SecretsUnavailable"),
    Case("17/restore-other-cluster", "17/restore-other-authority", lambda: _answer(Unknown("UnknownAuthority", "another")), "UnknownAuthority"),
    Case("17/restore-another-node", "17/restore-other-node", lambda: _answer(waiting(9)), "EndpointIdentityMismatch"),
    Case("17/restore-onto-itself-running", "17/restore-live", lambda: _answer(answers("running", status=MEMBER)), "ControlPlaneAlive"),
    Case("17/restore-beside-a-living-one", "17/restore-live", lambda: seen(
        others=TWO, answers_of={"m2": answers("running", status=MEMBER, number=2), "m3": SILENT}, lost=("m3",)), "ControlPlaneAlive"),
    Case("17/restore-beside-one-without-a-leader", "17/restore-live", lambda: seen(
        others=TWO, answers_of={"m2": answers("booting", services=etcd("Running"), number=2), "m3": SILENT}, lost=("m3",)), "ControlPlaneAlive"),
    Case("17/restore-lost-that-waits", "17/restore-lost-answers", lambda: seen(others=TWO, answers_of={"m2": waiting(2), "m3": SILENT}, lost=("m2", "m3")),
         "ControlPlaneAlive"),
    Case("17/restore-beside-a-silent-one", "17/restore-unreachable", lambda: seen(others=TWO, answers_of={"m2": SILENT, "m3": waiting(3)}),
         "ControlPlaneUnreachable"),
    Case("17/restore-silent-itself", "17/restore-silent", lambda: _answer(SILENT), "ControlPlaneUnreachable", True),
    Case("17/restore-beside-one-that-installs", "17/restore-others-busy", lambda: seen(others=TWO, answers_of={
        "m2": answers("installing", number=2), "m3": waiting(3)}), "BootstrapNotAvailable", True),
    Case("17/restore-installing", "17/restore-not-fresh", lambda: _answer(answers("installing")), "BootstrapNotAvailable", True),
    Case("17/restore-no-etcd-service", "17/restore-not-fresh", lambda: _answer(answers("booting")), "BootstrapNotAvailable", True),
    Case("17/restore-shutdown", "13/shutdown", lambda: seen(cluster={"hold": "shutdown"}), "ClusterShuttingDown"),
    Case("17/restore-even", "13/transitioning", lambda: seen(others=TWO[:1], answers_of={"m2": waiting(2)}), "Transitioning"),
)


def told(verdict: Verdict) -> tuple[str, str, bool]:
    if isinstance(verdict, Refused):
        return verdict.refusal.rule, verdict.refusal.reason, verdict.passing
    return "", type(verdict).__name__, False


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_row(case: Case) -> None:
    assert told(decide_restore(case.seen())) == (case.rule, case.says, case.passing)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate) -> None:
    rest = tuple(other for other in GATES if other is not gate)
    assert any(told(decide_restore(case.seen(), rest)) != told(decide_restore(case.seen())) for case in CASES)


def test_every_gate_has_a_row() -> None:
    assert {gate.id for gate in GATES} <= {case.rule for case in CASES} and len({case.id for case in CASES}) == len(CASES)


def test_a_snapshot_is_judged_before_anybody_is_asked() -> None:
    assert told(decide_restore(seen(answers=None, snapshot=Absent())))[0] == "17/snapshot-invalid"


def test_the_step_cannot_be_taken_back_and_the_lost_are_warned_of() -> None:
    found = seen(others=TWO, answers_of={"m2": SILENT, "m3": SILENT}, lost=("m2", "m3"))
    verdict = decide_restore(found)
    assert isinstance(verdict, Go) and not verdict.step.reversible and verdict.step.lost == ("m2", "m3") and verdict.step.sha256 == "a" * 64
    assert [warning.rule for warning in restore_warnings(found)] == ["17/restore-lost"] * 2
    assert [warning.rule for warning in restore_warnings(seen(unverified=True))] == ["17/restore-unverified"]


def test_what_is_written_before_and_after() -> None:
    begun = with_restoring({"bootstrappedAt": "x"}, "m1", "ada", 0)
    assert begun["operation"] == {"name": "restore on m1", "by": "ada", "since": "1970-01-01T00:00:00Z"}
    assert without_restoring(begun, "m1") == {"bootstrappedAt": "x"} and without_restoring(begun, "m2") == begun
    assert with_restored({**begun, "bootstrapping": {}}, 60) == {"bootstrappedAt": "1970-01-01T00:01:00Z"}
