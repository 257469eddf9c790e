# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removals that drain: the order, what holds them, and a run that is killed at each of its boundaries (design section 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import disruption_of
from ansible_collections.ichor.talos.plugins.module_utils._model.records import condition_of
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import Pod
from ansible_collections.ichor.talos.tests.unit._operations import removal_world as r
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._operations.kubernetes_world import Kubernetes

WEB = Pod("shop", "web-1", "uid-1", owner_kind="ReplicaSet")
OWN = Pod("shop", "agent", "uid-2", owner_kind="DaemonSet")


def made(name: str = "w9", number: int = 9) -> tuple[w.World, Kubernetes]:
    """Four control planes and a worker, each with its Node; pods on that of one."""
    world = r.planes(4, worker=True)
    kubernetes = Kubernetes(world.write)
    for other, board in (*((f"cp{one}", one) for one in (1, 2, 3, 4)), ("w9", 9)):
        kubernetes.add(other, w.uuid(board).upper(), *((WEB, OWN) if other == name else ()))
    return world, kubernetes


@pytest.mark.parametrize(("name", "wanted"), [
    ("w9", ["DrainNode", "ResetMachine", "DeleteNode", "DeleteRecord"]), ("cp1", ["DrainNode", "LeaveEtcd", "ResetMachine", "DeleteNode", "DeleteRecord"])])
def test_the_order_is_that_of_the_plan(name: str, wanted: list[str]) -> None:
    world, kubernetes = made(name)
    gate = w.OpenGate(True)
    r.remove(world, name, check=True, kubernetes=kubernetes, gate=gate)
    assert [step.action for step in gate.plans[0].steps] == wanted and kubernetes.written == []
    done = r.remove(world, name, kubernetes=kubernetes)
    assert not done.refused and done.executed == tuple(step.id for step in gate.plans[0].steps), done.message
    order = [what for what in world.trace if what in (
        f"cordon {name}", "evict shop/web-1", f"mark {name}", f"etcd_leave {name}", f"reset {name}", f"delete {name} is written", f"deleted {name}")]
    leaves = [f"etcd_leave {name}"] if "LeaveEtcd" in wanted else []
    assert order == [f"cordon {name}", "evict shop/web-1", f"mark {name}", *leaves, f"reset {name}", f"delete {name} is written", f"deleted {name}"]
    assert name not in kubernetes.known and r.remove(world, name, kubernetes=kubernetes).plan.steps == ()


def only_drained(name: str, kubernetes: Kubernetes) -> Callable[[int, str], None]:
    """The node is told nothing while a pod is on it that has to go."""
    def hook(number: int, what: str) -> None:
        if what in (f"reset {name}", f"etcd_leave {name}"):
            assert WEB not in kubernetes.running[name]
    return hook


@pytest.mark.parametrize("name", ["w9", "cp1"])
def test_killed_at_every_boundary_and_resumed(name: str) -> None:
    whole, kubernetes = made(name)
    r.remove(whole, name, kubernetes=kubernetes)
    count = len(whole.trace)
    assert count > 40
    for at in range(1, count + 1):
        world, kubernetes = made(name)

        def boundary(number: int, what: str, at: int = at, drained: Callable[[int, str], None] = only_drained(name, kubernetes)) -> None:
            drained(number, what)
            if number >= at:  # Kubernetes is asked beside the node, so that two calls may come as one
                raise w.Killed(what)

        world.hook = boundary
        with pytest.raises(w.Killed):
            r.remove(world, name, kubernetes=kubernetes)
        world.dead.add("run-1")
        world.store.leases.held.clear()
        world.hook = only_drained(name, kubernetes)
        for attempt in range(2):
            again = r.remove(world, name, holder=f"run-{attempt + 2}", kubernetes=kubernetes)
            assert not again.refused, (at, whole.trace[at - 1], again.message)
        assert r.record_of(world, name) is None and disruption_of(world.cluster()) is None and name not in kubernetes.known, whole.trace[at - 1]
        assert len(world.resets) <= 2, whole.trace[at - 1]


def untouched(world: w.World, kubernetes: Kubernetes, name: str = "w9") -> bool:
    """Nothing was sent, nothing is held, and its Node takes pods."""
    return (world.resets == [] and world.left == [] and condition_of(world.machine(name), "Removal") is None and disruption_of(world.cluster()) is None
            and not kubernetes.known[name].unschedulable)


def test_a_pod_that_stays_ends_it_with_nothing_sent() -> None:
    world, kubernetes = made()
    kubernetes.held = {"shop/web-1"}
    done = r.remove(world, "w9", kubernetes=kubernetes)
    assert done.refused and done.reason == "DrainRequired" and "shop/web-1 (the budget allows nothing)" in done.message
    assert untouched(world, kubernetes)
    kubernetes.held = set()
    assert not r.remove(world, "w9", kubernetes=kubernetes).refused


def test_a_kubernetes_that_is_lost_in_the_drain_ends_it_and_the_cordon_is_taken_back_later() -> None:
    world, kubernetes = made()

    def lose(number: int, what: str) -> None:
        kubernetes.away = kubernetes.away or what == "cordon w9 is written"

    world.hook = lose
    done = r.remove(world, "w9", kubernetes=kubernetes)
    assert done.refused and done.reason == "DrainRequired" and "stays cordoned" in done.message and world.resets == []
    world.hook = lambda number, what: None
    kubernetes.away = False
    assert not r.remove(world, "w9", kubernetes=kubernetes).refused and world.resets == ["w9"]


def test_what_changes_while_it_is_drained_is_decided_anew() -> None:
    """Another control plane dies during the drain: etcd could not bear that this one leaves."""
    world, kubernetes = made("cp1")

    def die(number: int, what: str) -> None:
        if what == "evict shop/web-1 is written":
            for dead in (2, 3):
                r.node(world, dead).mode = "closed"

    world.hook = die
    done = r.remove(world, "cp1", kubernetes=kubernetes)
    assert done.refused and done.reason in ("QuorumAtRisk", "QuorumUnknown") and untouched(world, kubernetes, "cp1"), done.message


def test_a_removal_that_is_called_off_gives_the_node_back() -> None:
    world, kubernetes = made()
    r.node(world, 9).reset_fails = True
    assert r.remove(world, "w9", kubernetes=kubernetes).reason == "ResetFailed" and kubernetes.known["w9"].cordoned_at
    assert not r.remove(world, "w9", kubernetes=kubernetes, lift=True).refused
    assert not kubernetes.known["w9"].unschedulable and condition_of(world.machine("w9"), "Removal") is None


def test_a_node_that_cannot_be_deleted_leaves_the_record_until_the_next_run() -> None:
    world, kubernetes = made()

    def lose(number: int, what: str) -> None:
        kubernetes.away = kubernetes.away or what == "reset w9"

    world.hook = lose
    done = r.remove(world, "w9", kubernetes=kubernetes)
    assert done.refused and r.record_of(world, "w9") is not None and world.resets == ["w9"]
    again = r.remove(world, "w9", kubernetes=kubernetes)
    assert not again.refused and r.record_of(world, "w9") is None and [warning.rule for warning in again.plan.warnings] == ["14/node-unread"]


def test_a_dead_one_s_node_is_marked_and_stays() -> None:
    world = r.planes(3, 1)
    kubernetes = Kubernetes(world.write)
    kubernetes.add("cp1", w.uuid(1), WEB)
    kubernetes.known["cp1"] = replace(kubernetes.known["cp1"], ready=False)
    assert not r.remove(world, "cp1", kubernetes=kubernetes).refused
    assert kubernetes.written == ["mark cp1"] and kubernetes.running["cp1"] == [WEB]


def test_a_dead_one_whose_node_is_ready_is_not_dead() -> None:
    world = r.planes(3, 1)
    kubernetes = Kubernetes(world.write)
    kubernetes.add("cp1", w.uuid(1))
    done = r.remove(world, "cp1", kubernetes=kubernetes)
    assert done.refused and done.reason == "DeathUnproven" and "Node is Ready" in done.message and kubernetes.written == []


def test_a_reset_alone_marks_the_node_and_drains_nothing() -> None:
    world, kubernetes = made()
    done = r.remove(world, "w9", record=False, kubernetes=kubernetes)
    assert not done.refused and world.resets == ["w9"] and kubernetes.written == ["mark w9"] and kubernetes.running["w9"] == [WEB, OWN]
