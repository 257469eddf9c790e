# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of converged machines: read, shown, brought back (design sections 10, 11 and 13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.ichor.talos.tests.unit._operations.converging_world import World, with_sysctl


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_machine_that_runs_what_the_records_say_is_converged(world: World) -> None:
    node = world.joined("w1", 1)
    found = world.look("w1")
    assert (found.row.ready, found.row.reason, found.plan.steps, found.settled, found.requeue_after) == (True, "Converged", (), True, 120.0)
    assert world.ready("w1") == ("True", "Converged") and not world.sent
    assert world.machine("w1").status["stage"] == "running"
    writes = world.machine("w1").status_version
    world.look("w1")
    assert world.machine("w1").status_version == writes, "a second look at the same writes nothing"
    assert node.boot == 1


def test_drift_of_a_worker_by_hand_is_sent_at_once_without_the_lock(world: World) -> None:
    node = world.joined("w1", 1)
    wanted = node.active
    node.active = with_sysctl(wanted)
    check = world.look("w1", check=True)
    assert [(step.action, step.mode, step.locked, step.waits_for) for step in check.plan.steps] == [("ApplyDrift", "NO_REBOOT", False, ())]
    assert "somaxconn" in str(check.differences[0].before) and not world.sent
    ran = world.run("w1")
    assert ran.done == [("w1", "ApplyDrift", "NO_REBOOT")] and ran.ids == [step.id for step in check.plan.steps]
    assert node.active == wanted and ran.last["w1"].row.reason == "Converged"
    assert world.machine("w1").status["appliedConfigHash"] != "a" and world.machine("w1").status["observedInputsHash"]
    assert not world.look("w1", check=True).plan.steps
