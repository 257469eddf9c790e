# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 10: an observation is present, absent or unknown, and unknown blocks whatever is disruptive."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning import decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Refused, Send
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._operations import stage
from ansible_collections.ichor.talos.tests.laws.sending import world_with
from ansible_collections.ichor.talos.tests.unit._decide import provisioning_case as case
from ansible_collections.ichor.talos.tests.unit._operations import world as w

UNKNOWN = Unknown("TimedOut", "no answer")


def test_the_case_itself_may_be_sent() -> None:
    assert isinstance(decide(case.controlplane(), case.NOW), Send) and isinstance(decide(case.worker(), case.NOW), Send)


@pytest.mark.parametrize("field", ["stage", "disks"])
@pytest.mark.parametrize("reading", [UNKNOWN, Absent()], ids=["unknown", "absent"])
def test_facts_that_are_not_there_block(field: str, reading: Unknown | Absent) -> None:
    seen = case.worker()
    assert isinstance(seen.maintenance, Present)
    blind = replace(seen, maintenance=Present(replace(seen.maintenance.value, **{field: reading})))  # type: ignore[arg-type]
    assert isinstance(decide(blind, case.NOW), Refused)


@pytest.mark.parametrize("reading", [UNKNOWN, Absent()], ids=["unknown", "absent"])
def test_secure_boot_that_cannot_be_read_is_not_on(reading: Unknown | Absent) -> None:
    seen = case.worker(cluster={"secureBoot": "Required"})
    assert isinstance(seen.maintenance, Present)
    blind = replace(seen, maintenance=Present(replace(seen.maintenance.value, secure_boot=reading)))
    verdict = decide(blind, case.NOW)
    assert isinstance(verdict, Refused) and verdict.refusal.reason == "SecureBootRequired"


@pytest.mark.parametrize("reading", [UNKNOWN, Absent()], ids=["unknown", "absent"])
def test_members_that_cannot_be_read_hold_a_control_plane_of_a_bootstrapped_cluster(reading: Unknown | Absent) -> None:
    verdict = decide(replace(case.controlplane(bootstrapped=True), members=reading), case.NOW)
    assert isinstance(verdict, Refused) and verdict.refusal.reason == "HostnameConflict"


def test_a_silent_machine_is_a_result_and_the_others_go_on() -> None:
    world, dummy = world_with("worker")
    node = w.place(world, "m2", 2)
    node.mode, node.stage, node.ready = "running", "running", True
    status = {"stage": "booting", "configStoredAt": "2023-11-14T22:00:00Z", "storedConfigHash": "a"}
    for name, number in (("m1", 1), ("m2", 2)):
        world.store.put(w.machine_record(name, number, status=status))
    world.store.put(w.cluster_record(status={"bootstrappedAt": "2023-11-14T00:00:00Z"}))
    world.nodes = {endpoint: found for endpoint, found in world.nodes.items() if found is node}
    outcome = asyncio.run(stage.run(stage.Request(("m1", "m2"), single=False), world.ports(), w.OpenGate()))
    assert not outcome.refused and outcome.unreachable == ("m1",)
    assert {row.name: row.reason for row in outcome.machines} == {"m1": "NodeRebooting", "m2": "NodeJoined"}
    assert world.machine("m2").status["appliedConfigHash"] == "a"
