# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that are drained before a reboot: in which order, what holds it, and a run that is killed at any boundary (design sections 11, 13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import Pod
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from ansible_collections.ichor.talos.tests.unit._operations.converging_world import Node, World, with_rule
from tests.unit._operations.kubernetes_world import Kubernetes

WEB = Pod("shop", "web-1", "uid-1", owner_kind="ReplicaSet")
BARE = Pod("shop", "by-hand", "uid-2")


class Killed(BaseException):
    """The process ends here."""


def restarting(folder: Path, watched: bool = False) -> tuple[World, Node, Kubernetes]:
    """A worker that has to restart, with pods, and another Node that takes them."""
    world = World(folder)
    node = world.joined("w1", 1)
    node.active = with_rule(node.active)
    kubernetes = Kubernetes(world.boundary)
    kubernetes.add("w1", w.uuid(1).upper(), WEB, BARE)
    kubernetes.add("w2")
    world.workloads = kubernetes
    if watched:
        world.watch_the_store()
    return world, node, kubernetes


def cordoned(kubernetes: Kubernetes) -> bool:
    return kubernetes.known["w1"].unschedulable


def test_it_is_drained_rebooted_and_uncordoned(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)
    seen: list[tuple[str, bool, str]] = []

    def look(number: int, what: str) -> None:
        if what in ("cordon w1", "reboot w1", "uncordon w1"):
            disruption = world.cluster().status.get("disruption")
            seen.append((what, cordoned(kubernetes), str(disruption.get("step")) if isinstance(disruption, dict) else ""))

    world.hook = look
    found = world.look("w1", check=True)
    assert "Node w1 is drained first (1 pod to go)" in found.plan.steps[-1].why and kubernetes.written == []
    ran = world.run("w1")
    assert ran.last["w1"].row.reason == "Converged" and node.boot == 2
    assert seen == [("cordon w1", False, "drain"), ("reboot w1", True, "reboot"), ("uncordon w1", True, "reboot")]
    assert kubernetes.written == ["cordon w1", "evict shop/web-1", "uncordon w1"] and kubernetes.running["w1"] == [BARE]
    assert not cordoned(kubernetes) and "disruption" not in world.cluster().status
    assert world.run("w1").done == [] and kubernetes.written[3:] == []


def test_a_drain_that_does_not_end_holds_the_reboot(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)
    kubernetes.held = {"shop/web-1"}
    ran = world.run("w1", rounds=6)
    refusals = [acted.refusal for *dummy, acted in ran.acted if acted.refusal is not None]
    assert refusals and {refusal.reason for refusal in refusals} == {"DrainRequired"} and "shop/web-1 (the budget allows nothing)" in refusals[0].message
    assert node.boot == 1 and not cordoned(kubernetes) and "disruption" not in world.cluster().status
    kubernetes.held = set()
    assert world.run("w1").last["w1"].row.reason == "Converged" and node.boot == 2


def test_a_kubernetes_that_cannot_be_read_holds_the_reboot_and_so_does_the_loss_of_it(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)
    kubernetes.away = True
    ran = world.run("w1")
    assert ran.acted == [] and ran.last["w1"].held and node.boot == 1 and world.sent == []
    kubernetes.away = False
    found = world.look("w1")
    kubernetes.away = True
    assert not world.act(found, world.around()).done  # it is decided anew under the lock
    assert node.boot == 1 and kubernetes.written == []


def test_a_cordon_of_a_person_stays(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)
    kubernetes._change("w1", unschedulable=True)
    assert world.run("w1").last["w1"].row.reason == "Converged" and node.boot == 2 and cordoned(kubernetes)


def test_where_no_other_node_takes_pods_nothing_is_evicted(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)
    del kubernetes.known["w2"]
    assert world.run("w1").last["w1"].row.reason == "Converged" and node.boot == 2 and kubernetes.written == []


def test_a_reboot_that_the_node_refuses_gives_the_pods_their_node_back(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)
    world.act(world.look("w1"), world.around())
    reboots = world.look("w1")
    node.refuse = [w.error("PermissionDenied")]
    acted = world.act(reboots, world.around())
    assert not acted.done and node.boot == 1 and not cordoned(kubernetes) and "disruption" not in world.cluster().status


def test_a_kubernetes_that_stays_away_after_the_reboot_holds_the_next_for_a_while(tmp_path: Path) -> None:
    world, node, kubernetes = restarting(tmp_path)

    def lose(booted: Node) -> None:
        kubernetes.away = True

    world.on_boot = lose
    ran = world.run("w1", rounds=30)
    assert node.boot == 2 and world.cluster().status["disruption"]["node"] == "w1"  # type: ignore[index, call-overload]
    assert ran.last["w1"].row.reason == "NodeStarting"
    ran = world.run("w1", rounds=60)
    assert ran.last["w1"].row.reason == "Converged" and any("stays cordoned" in line for line in world.lines)


@pytest.mark.parametrize("part", range(4))
def test_killed_at_every_boundary_no_node_stays_cordoned(tmp_path: Path, part: int) -> None:
    world, node, kubernetes = restarting(tmp_path / "undisturbed", watched=True)
    began = len(world.boundaries)
    world.run("w1")
    moments = world.boundaries[began:]
    assert {"cordon w1", "evict shop/web-1", "reboot w1", "uncordon w1"} <= set(moments)
    for number in range(1 + part, len(moments) + 1, 4):
        for mended in (False, True):
            world, node, kubernetes = restarting(tmp_path / f"{number}-{mended}", watched=True)

            def kill(count: int, what: str, last: int = len(world.boundaries) + number) -> None:
                if count >= last:
                    raise Killed(what)

            world.hook = kill
            with pytest.raises(Killed):
                world.run("w1")
            world.hook = lambda count, what: None
            if mended and node.boot == 1 and not node.silent:
                node.active, node.kept = world.render("w1"), None  # a person put it right meanwhile
            ran = world.run("w1")
            assert ran.last["w1"].row.reason == "Converged", moments[number - 1]
            assert not cordoned(kubernetes) and "disruption" not in world.cluster().status, (moments[number - 1], mended)
            assert [mode for dummy, mode, unused in world.sent].count("REBOOT") <= 1, moments[number - 1]
