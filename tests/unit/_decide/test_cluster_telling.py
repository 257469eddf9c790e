# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person is told of a cluster: one row at a time, and that each row is needed."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide import cluster_telling
from ansible_collections.ichor.talos.plugins.module_utils._decide.cluster_telling import ROWS, Seen, count, tell_cluster
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdStatus
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Json, Record
from tests.unit.machine_world import cluster, machine

BOOTSTRAPPED: dict[str, Json] = {"bootstrappedAt": "2026-01-01T00:00:00Z"}
READY: dict[str, Json] = {"appliedConfigHash": "aa", "configStoredAt": "2026-01-01T00:00:00Z", "stage": "running",
                          "conditions": [{"type": "Ready", "status": "True", "reason": "Converged", "message": ""}]}
LATE: dict[str, Json] = {"configStoredAt": "2025-12-31T00:00:00Z", "stage": "booting",
                         "conditions": [{"type": "Ready", "status": "False", "reason": "NodeStarting", "message": ""}]}


def record(status: dict[str, Json] | None = None, **spec: Json) -> Record:
    made = cluster(**spec)
    return Record(made.kind, made.name, made.spec, status or {}, uid=made.uid)


def planes(number: int, status: dict[str, Json]) -> tuple[Record, ...]:
    return tuple(machine(index, "approved", role="controlplane", status=status) for index in range(1, number + 1))


CASES: dict[str, tuple[Seen, str]] = {
    "3/operation": (Seen(record({**BOOTSTRAPPED, "operation": {"name": "restore", "since": "2026-01-02T00:00:00Z"}}), planes(3, READY)),
                    "restore is being done"),
    "9/bootstrapping": (Seen(record({"bootstrapping": {"machine": "prod-1", "time": "2026-01-01T00:00:00Z"}}), planes(3, LATE)),
                        "being bootstrapped on prod-1"),
    "13/no-lock": (Seen(record(BOOTSTRAPPED), planes(3, READY), no_lock="another folder has the lock."), "There is no lock here"),
    "13/disruption": (Seen(record({**BOOTSTRAPPED, "disruption": {"machine": "prod-2", "step": "reboot", "time": "2026-01-02T00:00:00Z"}}), planes(3, READY)),
                      "Machine prod-2 was disrupted"),
    "9/lost": (Seen(record(), planes(3, READY)), "does not say that etcd was bootstrapped"),
    "12/etcd-lost": (Seen(record(BOOTSTRAPPED), planes(3, {**READY, "conditions": [
        {"type": "Ready", "status": "False", "reason": "ReprovisionBlocked", "message": ""}]})), "its etcd is lost"),
    "13/lock": (Seen(record(BOOTSTRAPPED, hold="shutdown"), planes(3, READY)), "being shut down"),
    "9/empty": (Seen(record(), (machine(1),)), "No control plane is approved"),
    "9/unsent": (Seen(record(), planes(2, {})), "2 of 3 control planes are approved, and none"),
    "9/bootstrap": (Seen(record(), planes(3, LATE)), "was not bootstrapped yet"),
    "9/fewer": (Seen(record(BOOTSTRAPPED), planes(1, READY)), "1 of 3 control planes are approved"),
    "11/running": (Seen(record(BOOTSTRAPPED), (*planes(3, READY), machine(9, "approved", status=LATE))), "3 of 4 approved machines are Ready"),
}


@pytest.mark.parametrize("rule", CASES)
def test_each_row_says_what_a_cluster_is_doing(rule: str) -> None:
    seen, says = CASES[rule]
    assert says in tell_cluster(seen).what


def test_every_row_has_a_case() -> None:
    assert [row.id for row in ROWS] == list(CASES)


@pytest.mark.parametrize("rule", [row.id for row in ROWS[:-1]])
def test_without_its_row_a_cluster_is_told_wrongly(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, says = CASES[rule]
    monkeypatch.setattr(cluster_telling, "ROWS", tuple(row for row in ROWS if row.id != rule))
    assert says not in tell_cluster(seen).what


def test_machines_are_counted() -> None:
    counts = count((*planes(2, READY), machine(3, "approved", status=LATE), machine(4), machine(5, "rejected")))
    assert counts.approval == {"approved": 3, "pending": 1, "rejected": 1} and counts.role == {"controlplane": 2, "worker": 1}
    assert counts.stage == {"booting": 1, "running": 2} and counts.reason == {"Converged": 2, "NodeStarting": 1} and counts.ready == 2


def test_who_waits_and_what_etcd_says() -> None:
    seen = Seen(record(BOOTSTRAPPED), (*planes(3, READY), machine(9, "approved", status=LATE)),
                etcd=(("prod-1", Present(EtcdStatus("a", "a"))), ("prod-2", Present(EtcdStatus("b", "a"))), ("prod-3", Unknown("TimedOut", "no answer"))))
    told = tell_cluster(seen)
    assert "2 of 3 control planes are members of etcd that see a leader; prod-3 did not say." in told.what and told.waiting_for == "prod-9"
