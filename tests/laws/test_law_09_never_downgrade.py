# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 9: a failed authenticated call is never answered by trying the same write insecurely."""

from __future__ import annotations

import asyncio

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._operations import bootstrap, stage
from ansible_collections.ichor.talos.tests.laws.sending import run_once, world_with
from ansible_collections.ichor.talos.tests.unit._operations import world as w

STORED = {"stage": "installing", "configStoredAt": "2023-11-14T00:00:00Z", "storedConfigHash": "a", "maintenanceFingerprint": "FP-one"}
JOINED = {**STORED, "stage": "running", "appliedConfigHash": "a"}


@pytest.mark.parametrize("status", [STORED, JOINED], ids=["stored", "joined"])
@pytest.mark.parametrize("role", ["worker", "controlplane"])
def test_a_machine_whose_authenticated_read_fails_is_never_written_to_insecurely(status: dict[str, object], role: str) -> None:
    world, dummy = world_with(role)
    world.store.put(w.machine_record("m1", 1, role, status=status))
    run_once(world, role)
    assert not world.received
    asyncio.run(stage.run(stage.Request(("m1",), follow=True, timeout=200), world.ports("run-2"), w.OpenGate()))
    assert not world.received


def test_a_joined_machine_is_read_with_authentication_only() -> None:
    world, dummy = world_with("worker")
    world.store.put(w.machine_record("m1", 1, status=JOINED))
    asyncio.run(stage.run(stage.Request(("m1",)), world.ports(), w.OpenGate()))
    assert [what for what in world.trace if what.startswith("authenticated")]
    assert not [what for what in world.trace if what.startswith("maintenance")]


def test_a_machine_of_lost_status_is_read_with_authentication_only_and_nothing_is_written() -> None:
    world, dummy = world_with("worker")
    world.store.put(w.machine_record("m1", 1, status={}))
    outcome = asyncio.run(stage.run(stage.Request(("m1",)), world.ports(), w.OpenGate()))
    assert outcome.reason == "StatusMissing" and not world.machine("m1").status
    assert not [what for what in world.trace if what.startswith(("maintenance", "status"))]


def test_a_bootstrap_is_never_tried_insecurely() -> None:
    world, dummy = world_with("controlplane")
    world.store.put(w.machine_record("m1", 1, "controlplane", status=STORED))
    outcome = asyncio.run(bootstrap.run(bootstrap.Request("prod", "m1", wait=40), world.ports(), w.OpenGate()))
    assert outcome.reason == "UnknownAuthority" and not world.bootstraps
    assert not [what for what in world.trace if what.startswith("maintenance")]
