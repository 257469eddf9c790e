# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person is told of a machine: one row at a time, and that each row is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide import telling
from ansible_collections.ichor.talos.plugins.module_utils._decide.telling import ROWS, NodeNow, tell
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.records import HOLD_APPLY, Json, Record
from tests.unit.machine_world import cluster, facts, identity, machine

SENT: dict[str, Json] = {"configStoredAt": "2026-01-01T00:00:00Z", "stage": "installing"}
JOINED: dict[str, Json] = {"appliedConfigHash": "aa", "configStoredAt": "2026-01-01T00:00:00Z", "stage": "running",
                           "conditions": [{"type": "Ready", "status": "True", "reason": "Converged", "message": ""}]}
BLOCKED: dict[str, Json] = {**JOINED, "stage": "maintenance", "conditions": [
    {"type": "Provisioned", "status": "False", "reason": "ReprovisionBlocked", "message": "etcd cannot be read."}]}
HELD: dict[str, Json] = {"stage": "running", "conditions": [
    {"type": "Ready", "status": "False", "reason": "AdoptionHeld", "message": "It waits for its release."}]}
SILENT = NodeNow(Unknown("TimedOut", "no answer within 20 s"))

#: By the name of the row, in the order of the table: a machine, what its node says now, and a part of what is told.
CASES: dict[str, tuple[Record, NodeNow, str]] = {
    "_rejected": (machine(1, "rejected"), NodeNow(), "It is rejected"),
    "_twin": (machine(1, "approved"), NodeNow(twin=machine(1, "approved", name="other")), "other"),
    "_pending": (machine(1), NodeNow(), "It is pending"),
    "_lost": (replace(machine(1, "approved"), status={}), NodeNow(), "its status was lost"),
    "_other": (machine(1, "approved", status=JOINED), NodeNow(Present(facts("10.0.0.1", identity(2)))), "Another machine answers"),
    "_held": (machine(1, "approved", annotations={HOLD_APPLY: "true"}), NodeNow(), "It is held"),
    "_adopted": (machine(1, "approved", status=HELD), NodeNow(), "It was adopted and is held."),
    "_never_sent": (machine(1, "approved"), NodeNow(), "was sent nothing yet"),
    "_joining": (machine(1, "approved", status=SENT), NodeNow(), "on its way (installing)"),
    "_fell_back": (machine(1, "approved", status=BLOCKED), SILENT, "was in maintenance mode"),
    "_unread": (machine(1, "approved", status=JOINED), NodeNow(Unknown("UnknownAuthority", "another authority")), "with these credentials"),
    "_silent": (machine(1, "approved", status=JOINED), SILENT, "does not answer now"),
    "_running": (machine(1, "approved", status=JOINED), NodeNow(), "It runs."),
}


def told(name: str) -> str:
    record, now, dummy = CASES[name]
    return tell(record, cluster(), now).what


@pytest.mark.parametrize("name", CASES)
def test_each_row_says_what_a_machine_is_doing(name: str) -> None:
    assert CASES[name][2] in told(name)


def test_every_row_has_a_case() -> None:
    assert [row.__name__ for row in ROWS] == list(CASES)


@pytest.mark.parametrize("name", [row.__name__ for row in ROWS[:-1]])
def test_without_its_row_a_machine_is_told_wrongly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "ROWS", tuple(row for row in ROWS if row.__name__ != name))
    assert CASES[name][2] not in told(name)


@pytest.mark.parametrize("name", CASES)
def test_whoever_waits_is_told_for_what_and_what_to_do(name: str) -> None:
    record, now, dummy = CASES[name]
    doing = tell(record, cluster(), now)
    assert doing.advice and doing.advice.endswith(".") and doing.what.endswith(".")
