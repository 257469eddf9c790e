# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A converged machine that fell back to maintenance mode, in memory: looks, steps, what is written, what is sent (design section 12)."""

from __future__ import annotations

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.records import condition_of
from ansible_collections.ichor.talos.tests.unit._operations import fallen_world as f
from ansible_collections.ichor.talos.tests.unit._operations import world as w


def reason(world: w.World, name: str) -> str:
    found = condition_of(world.machine(name), "Provisioned")
    return found.reason if found is not None else ""


@pytest.mark.parametrize("left", [w.Absent(), f.LEFT_OVER, f.KEPT, w.Present(()), f.Partition], ids=["blank", "efi", "state-only", "none", "unclear"])
def test_a_wiped_worker_is_sent_its_configuration_once_and_followed(left: object) -> None:
    world, node = f.worker()
    node.partitions = left if not isinstance(left, type) else w.Present((f.Partition("/dev/sda3", "/dev/sda", "STATE", "luks"),))  # type: ignore[assignment]
    planned = f.checked(world, "w9")
    life = f.Life(world, "w9").run()
    assert planned is not None and life.done == [step.id for step in planned.plan.steps] and len(life.done) == 1
    assert world.accepted == ["w9"] and not world.unpinned and world.removed == []
    status = world.machine("w9").status
    assert "appliedConfigHash" not in status and "observedInputsHash" not in status and "sending" not in status
    assert status["configStoredAt"] != f.JOINED["configStoredAt"] and status["storedConfigHash"] == world.received[0][3]
    assert status["maintenanceFingerprint"] == "FP-two" and reason(world, "w9") == "ConfigStored"
    event = [event for event in world.store.written if event.reason == "NodeReinstalled"]
    assert [one.type for one in event] == ["Warning"] and "Ichor re-installed this node" in event[0].message
    assert str(status["storedConfigHash"])[:12] in event[0].message and not world.store.leases.held


def test_a_machine_that_does_not_answer_in_maintenance_mode_is_not_this_file_s() -> None:
    world, node = f.worker()
    for mode in ("closed", "running"):
        node.mode = mode
        assert f.checked(world, "w9") is None
    assert "maintenance 10.0.0.9:50000" not in world.trace
