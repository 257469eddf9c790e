# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backup records in a run of the controller: planned and taken when they are due, and only where whole clusters are reconciled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.records import BACKUP
from ansible_collections.ichor.talos.tests.unit._operations.test_etcd_backup import Clock, Node, database, ports, scheduled


class Busy(Node):
    """It gives snapshots, and is silent about everything else."""

    async def stage(self) -> StageReading:
        raise TalosError("TimedOut", "no answer")

    async def probe(self, endpoint: object, timeout: float) -> object:
        raise TalosError("TimedOut", "no answer")

    def maintenance(self, endpoint: object, pin: str = "") -> object:
        raise TalosError("TimedOut", "no answer")

    def end_writes(self) -> None:
        return None


def controlled(store: Any, clock: Any, node: Node, *, check: bool = False, **more: Any) -> Outcome:
    request = Request(**{"passes": 1, "discover": False, **more})
    return asyncio.run(run(request, ports(node, store, clock, check), lambda plan: Plan() if check else plan))


def actions(outcome: Outcome) -> list[str]:
    return [step.action for step in outcome.plan.steps]


def test_a_record_that_is_due_is_planned_and_taken_once(tmp_path: Path) -> None:
    store, clock = scheduled(tmp_path)
    node = Busy()
    planned = controlled(store, clock, node, check=True)
    assert actions(planned) == ["TakeBackup"] and not node.streams and not (tmp_path / "b").exists()
    done = controlled(store, clock, node)
    assert list(done.executed) == [step.id for step in planned.plan.steps] and node.streams == 1
    assert not actions(controlled(store, clock, node)) and node.streams == 1
    clock.at += 86400
    assert actions(controlled(store, clock, node)) == ["TakeBackup"] and node.streams == 2
    clock.at += 86400
    assert actions(controlled(store, clock, node)) == ["TakeBackup", "DeleteBackups"] and len(list((tmp_path / "b").iterdir())) == 2


@pytest.mark.parametrize("scope", [{"machines": ("cp1",)}, {"clusters": ("prod",), "select": "[].metadata.name"}])
def test_a_narrower_scope_takes_none(tmp_path: Path, scope: dict[str, Any]) -> None:
    store, clock = scheduled(tmp_path)
    assert "TakeBackup" not in actions(controlled(store, clock, Busy(), **scope))


def test_one_that_fails_is_listed_and_stops_nothing(tmp_path: Path) -> None:
    store, clock = scheduled(tmp_path)
    outcome = controlled(store, clock, Busy(database()[:-1]))
    assert not outcome.refused and not outcome.executed and "SnapshotInvalid" in {refusal.reason for refusal in outcome.plan.refusals}
    assert store.get(BACKUP, "nightly").status["conditions"]


@dataclass
class Passing(Clock):
    """Who sleeps waits until that time has come."""

    async def sleep(self, seconds: float) -> None:
        end = self.at + seconds
        while self.at < end:
            await asyncio.sleep(0)


@dataclass
class Slow(Busy):
    """A quarter of a minute for each piece that it sends."""

    clock: Clock = field(default_factory=Clock)

    async def etcd_snapshot(self) -> AsyncIterator[bytes]:
        async for piece in super().etcd_snapshot():
            self.clock.at += 15.0
            yield piece


def test_one_that_takes_longer_than_the_run_is_taken_to_its_end(tmp_path: Path) -> None:
    store, still = scheduled(tmp_path)
    clock = Passing(still.at)
    node = Slow(database(160), clock=clock)
    outcome = controlled(store, clock, node, max_runtime=60.0)
    (path,) = (tmp_path / "b").iterdir()
    assert outcome.executed and path.read_bytes() == node.data and clock.at > still.at + 300 and outcome.extra["ended"] == "time"
