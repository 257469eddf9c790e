# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups as a table: every gate has a row and is noticed when it is taken away; what goes, when it is due, what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.backup import (
    GATES, Asked, BackingUp, DeleteBackups, Gate, TakeBackup, Taken, decide_backup, is_due, seconds_until_due, source_of, surplus, with_backup, with_told,
)
from ansible_collections.ichor.talos.plugins.module_utils._decide.inside_cluster import inside_cluster
from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination, Stored, backup_name, parsed_name
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import seconds_of
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdStatus
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.plugins.module_utils._model.records import BACKUP, CLUSTER, Record, condition_of

NOW = seconds_of("2026-11-30T06:55:30Z") or 0.0
CLUSTER_RECORD = Record(CLUSTER, "prod", {"endpoint": "https://10.0.0.10:6443"}, uid="c")
RECORD = Record(BACKUP, "nightly", {"clusterRef": "prod", "schedule": "0 3 * * *", "destination": {"s3": {
    "endpoint": "https://s3.example.com", "bucket": "etcd", "credentialsRef": {"name": "s3"}}}}, uid="u", generation=1)
BUCKET = Destination(endpoint="https://s3.example.com", bucket="etcd")


def member(name: str, *, leader: bool = False, learner: bool = False, sees: bool = True) -> Asked:
    number = "1" if leader else "2"
    return Asked(name, Present(EtcdStatus(number, "1" if sees else "", learner, 10, 4096, ())))


def seen(*asked: Asked, **changed: object) -> BackingUp:
    base = BackingUp(Target(kind=BACKUP, name="nightly", cluster="prod", uid="u"), BUCKET, Present(()), asked or (member("cp1", leader=True),), CLUSTER_RECORD,
                     RECORD, 0, NOW)
    return replace(base, **changed)  # type: ignore[arg-type]


def stored(*times: str, record: str = "nightly", uid: str = "u", cluster: str = "prod") -> tuple[Stored, ...]:
    return tuple(Stored(str(backup_name(cluster, record, uid, seconds_of(time) or 0.0)), 1) for time in times)


@dataclass(frozen=True)
class Case:
    id: str
    rule: str
    seen: Callable[[], BackingUp]
    reason: str = ""


SILENT = Unknown("TimedOut", "no answer")
CASES = (
    Case("17/backup", "", seen),
    Case("17/backup-one-of-three-answers", "", lambda: seen(Asked("cp1", SILENT), member("cp2"), Asked("cp3", SILENT))),
    Case("17/backup-without-a-place", "17/backup-nowhere", lambda: seen(destination=Destination()), "InvalidInput"),
    Case("17/backup-place-silent", "17/backup-place-unread", lambda: seen(stored=Unknown("ArchiveUnreachable", "no")), "ArchiveUnreachable"),
    Case("17/backup-no-control-plane", "17/backup-nobody-to-ask", lambda: seen(asked=()), "ControlPlaneUnreachable"),
    Case("17/backup-without-credentials", "17/backup-no-credentials", lambda: seen(Asked("cp1", Unknown("SecretsUnavailable", "none"))), "SecretsUnavailable"),
    Case("17/backup-other-cluster", "17/backup-other-authority", lambda: seen(Asked("cp1", Unknown("UnknownAuthority", "another"))), "UnknownAuthority"),
    Case("17/backup-all-silent", "17/backup-no-member", lambda: seen(Asked("cp1", SILENT), Asked("cp2", SILENT)), "ControlPlaneUnreachable"),
    Case("17/backup-only-a-learner", "17/backup-no-member", lambda: seen(member("cp1", learner=True)), "ControlPlaneUnreachable"),
    Case("17/backup-no-leader", "17/backup-no-member", lambda: seen(member("cp1", sees=False)), "ControlPlaneUnreachable"),
)


def told(case: Case, gates: tuple[Gate, ...] = GATES) -> tuple[str, str]:
    refusals = decide_backup(case.seen(), gates).refusals
    return (refusals[0].rule, refusals[0].reason) if refusals else ("", "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_row(case: Case) -> None:
    assert told(case) == (case.rule, case.reason)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate) -> None:
    rest = tuple(other for other in GATES if other is not gate)
    assert any(told(case, rest) != told(case) for case in CASES)


def test_every_gate_has_a_row() -> None:
    assert {gate.id for gate in GATES} <= {case.rule for case in CASES} and len({case.id for case in CASES}) == len(CASES)


def test_a_follower_gives_the_snapshot_before_the_leader() -> None:
    assert source_of(seen(member("cp1", leader=True), member("cp2"))) == "cp2" and source_of(seen(member("cp1", leader=True))) == "cp1"


def test_what_is_over_goes_the_oldest_first_and_the_id_of_the_plan_names_no_time() -> None:
    old = stored("2026-11-27T03:00:00Z", "2026-11-28T03:00:00Z", "2026-11-29T03:00:00Z")
    plan = decide_backup(seen(stored=Present(old), keep=2))
    take, delete = plan.steps
    assert isinstance(take, TakeBackup) and isinstance(delete, DeleteBackups) and delete.names == tuple(entry.name for entry in old[:2])
    later = decide_backup(seen(stored=Present(old), keep=2, now=NOW + 60))
    assert later.id == plan.id and not delete.reversible
    assert len(decide_backup(seen(stored=Present(old), keep=4)).steps) == 1 and len(decide_backup(seen(stored=Present(old))).steps) == 1


def test_only_what_this_product_wrote_for_this_very_record_goes() -> None:
    own = backup_name("prod", "nightly", "u", NOW)
    times = ("2026-11-27T03:00:00Z", "2026-11-28T03:00:00Z")
    others = (*stored(*times, record="weekly"), *stored(*times, uid="of another record of that name"), *stored(*times, cluster="test"),
              Stored("by-hand.snapshot", 1), Stored(f"copy-of-{stored(*times)[0].name}", 1), Stored(f"{stored(*times)[0].name}.old", 1))
    assert surplus((*stored(*times), *others), own, 1) == (stored(*times)[0].name,)


def test_a_name_is_read_as_it_was_given() -> None:
    name = backup_name("prod", "", "", NOW)
    assert parsed_name(str(name)) == name and str(name).startswith("prod__20261130T065530Z_") and parsed_name("db.snapshot") is None


@pytest.mark.parametrize(("endpoint", "inside"), [
    ("http://minio.storage.svc:9000", True), ("https://minio.storage.svc.cluster.local", True), ("https://MINIO.storage.SVC.", True),
    ("http://10.96.0.20:9000", True), ("http://10.244.3.4", True), ("http://[::ffff:10.96.0.20]", True), ("https://10.0.0.5", False),
    ("https://s3.example.com", False), ("https://svc.example.com", False), ("", False),
])
def test_a_store_inside_the_cluster(endpoint: str, inside: bool) -> None:
    assert bool(inside_cluster(Destination(endpoint=endpoint, bucket="b"), CLUSTER_RECORD.spec)) == inside


def test_the_ranges_are_those_of_the_cluster() -> None:
    spec = {"network": {"serviceSubnets": ["192.168.0.0/16"]}}
    assert inside_cluster(Destination(endpoint="http://192.168.1.1", bucket="b"), spec)
    assert not inside_cluster(Destination(endpoint="http://10.96.0.20", bucket="b"), spec) and not inside_cluster(Destination(path="/srv"), spec)


def test_a_store_inside_the_cluster_is_warned_of_and_the_backup_is_taken() -> None:
    plan = decide_backup(seen(destination=Destination(endpoint="http://a.b.svc", bucket="etcd")))
    assert plan.steps and [warning.rule for warning in plan.warnings] == ["17/store-in-cluster"]


def of_record(endpoint: str) -> Record:
    return replace(RECORD, spec={**RECORD.spec, "destination": {"s3": {"endpoint": endpoint, "bucket": "etcd", "credentialsRef": {"name": "s3"}}}})


def test_the_condition_goes_when_the_endpoint_moves_and_ready_is_unaffected() -> None:
    inside, outside = of_record("http://a.b.svc"), of_record("https://s3.example.com")
    status = with_told({}, inside, CLUSTER_RECORD, None, NOW, done=True)
    found = condition_of(replace(inside, status=status), "StoreInCluster")  # type: ignore[arg-type]
    ready = condition_of(replace(inside, status=status), "Ready")  # type: ignore[arg-type]
    assert found is not None and found.status == "True" and ready is not None and (ready.status, ready.reason) == ("True", "Converged")
    moved = with_told(status, outside, CLUSTER_RECORD, None, NOW + 60)
    assert condition_of(replace(outside, status=moved), "StoreInCluster") is None  # type: ignore[arg-type]
    assert condition_of(replace(outside, status=moved), "Ready") == ready  # type: ignore[arg-type]
    assert with_told(moved, outside, CLUSTER_RECORD, None, NOW + 120) == moved


@pytest.mark.parametrize(("taken", "due"), [
    ((), True), (("2026-11-29T03:00:10Z",), True), (("2026-11-01T03:00:10Z",), True), (("2026-11-30T03:00:10Z",), False),
    (("2026-11-30T03:00:10Z", "2026-11-29T03:00:00Z"), False),
    (("2027-03-01T03:00:00Z",), True), (("2027-03-01T03:00:00Z", "2026-11-30T03:00:10Z"), False),
])
def test_when_a_backup_is_due(taken: tuple[str, ...], due: bool) -> None:
    record = replace(RECORD, status={"backups": [{"name": "x", "time": time} for time in taken]})
    assert is_due(record, NOW) == due


def test_one_overdue_run_is_made_up_and_no_more() -> None:
    record = replace(RECORD, status={"backups": [{"name": "x", "time": "2026-11-01T03:00:10Z"}]})
    status = with_backup(dict(record.status), Taken("y", NOW, 1, "0" * 64, 5), ())
    assert is_due(record, NOW) and not is_due(replace(record, status=status), NOW)  # type: ignore[arg-type]
    assert is_due(replace(record, status=status), NOW + 86400) and seconds_until_due(record, NOW) == 86400 - (3 * 3600 + 55 * 60 + 30)  # type: ignore[arg-type]


def test_a_record_without_a_schedule_waits_for_a_person() -> None:
    assert not is_due(replace(RECORD, spec={**RECORD.spec, "schedule": ""}), NOW)


def test_the_status_tells_the_last_ones_and_none_that_were_deleted() -> None:
    status = with_backup({"backups": [{"name": "a"}, {"name": "b"}]}, Taken("c", NOW, 7, "f" * 64, 5), ("a",))
    assert [entry["name"] for entry in status["backups"]] == ["c", "b"]  # type: ignore[attr-defined,index]
    assert status["backups"][0] == {"name": "c", "time": "2026-11-30T06:55:30Z", "size": 7, "sha256": "f" * 64, "raftIndex": 5}  # type: ignore[index]
