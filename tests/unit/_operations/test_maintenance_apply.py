# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import asyncio

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._operations.maintenance_apply import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Job
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def job(name: str, role: str = "worker", hostname: str | None = None) -> Job:
    return Job(name, Present(bring(w.config(role, name if hostname is None else hostname))))


def apply(world: w.World, *jobs: Job, check: bool = False, holder: str = "run-1") -> Outcome:
    return asyncio.run(run(Request(jobs, single=len(jobs) == 1), world.ports(holder, check=check), w.OpenGate(check)))


def fresh() -> w.World:
    world = w.World()
    world.store.put(w.cluster_record())
    return world


def test_a_worker_is_sent_its_configuration_once() -> None:
    world = fresh()
    w.place(world, "w1", 1)
    outcome = apply(world, job("w1"))
    assert not outcome.refused and outcome.plan.changed and len(outcome.executed) == 1
    assert [(name, fingerprint) for name, dummy, fingerprint, dummy2, dummy3 in world.received] == [("w1", "FP-one")]
    status = world.machine("w1").status
    assert status["configStoredAt"] and status["storedConfigHash"] and "sending" not in status
    assert [event.reason for event in world.store.written] == ["ConfigApplied"]
    assert world.most_open[Endpoint("10.0.0.1")] == 1

    again = apply(world, job("w1"))
    assert not again.plan.changed and not again.refused and len(world.received) == 1
    assert again.machines[0].reason == "ConfigStored"
