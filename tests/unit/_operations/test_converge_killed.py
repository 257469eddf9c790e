# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 8 for machines that run: killed at any call or write of a change that needs a reboot, the next run goes on (design sections 2, 11, 13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.ichor.talos.tests.unit._operations.converging_world import Node, World, with_rule, with_sysctl


class Killed(BaseException):
    """The process ends here."""


def kill_at(world: World, number: int) -> None:
    """From this boundary on nothing is called or written any more, until the hook is taken away."""
    def hook(count: int, what: str) -> None:
        if count >= number:
            raise Killed(what)
    world.hook = hook


def worker(folder: Path) -> tuple[World, Node]:
    world = World(folder)
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    world.watch_the_store()
    return world, node


def control_planes(folder: Path) -> tuple[World, Node]:
    world = World(folder)
    nodes = [world.joined(f"cp{number}", number, "controlplane") for number in (1, 2, 3)]
    nodes[0].active = with_sysctl(nodes[0].active)
    world.watch_the_store()
    return world, nodes[0]


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("made, name", [(worker, "w1"), (control_planes, "cp1")], ids=["reboot-of-a-worker", "apply-to-a-control-plane"])
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path, made: object, name: str, part: int) -> None:
    assert callable(made)
    world, node = made(tmp_path / "undisturbed")
    wanted, began = world.render(name), len(world.boundaries)
    world.run(name)
    moments = world.boundaries[began:]
    assert len(moments) > 30 and node.active == wanted
    for number in range(1 + part, len(moments) + 1, 3):
        world, node = made(tmp_path / str(number))
        kill_at(world, len(world.boundaries) + number)
        with pytest.raises(Killed):
            world.run(name)
        world.hook = lambda count, what: None
        ran = world.run(name)
        assert ran.last[name].row.reason == "Converged" and node.active == wanted, moments[number - 1]
        assert "disruption" not in world.cluster().status, moments[number - 1]
        sent = [mode for dummy, mode, unused in world.sent]
        assert sent.count("REBOOT") == (1 if name == "w1" else 0) and node.boot == 1 + sent.count("REBOOT"), moments[number - 1]
        assert len(sent) <= (3 if name == "w1" else 2), moments[number - 1]


def killed_at_the_reboot(count: int, what: str) -> None:
    if what == "reboot w1":
        raise Killed(what)


def test_a_run_that_stops_between_the_announcement_of_a_reboot_and_the_reboot_blocks_nobody_for_ever(tmp_path: Path) -> None:
    world, node = worker(tmp_path)
    other = world.joined("w2", 2)
    other.active = with_rule(other.active)
    world.hook = killed_at_the_reboot
    with pytest.raises(Killed):
        world.run("w1")
    world.hook = lambda count, what: None
    assert world.cluster().status["disruption"]["machine"] == "w1" and node.boot == 1  # type: ignore[index,call-overload]
    node.active = node.kept or node.active  # a person puts it right without a reboot
    ran = world.run("w2", "w1")
    assert {found.row.reason for found in ran.last.values()} == {"Converged"} and other.boot == 2 and node.boot == 1
