# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 5: one disruptive step per cluster at a time, and never one that costs an answering etcd its quorum."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.lock import disruption_of
from ansible_collections.ichor.talos.tests.unit._operations import fallen_world as f
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from hypothesis import given, settings
from hypothesis import strategies as st

FATES = ("runs", "runs", "runs", "wiped", "wiped", "kept", "dead", "hidden")


@dataclass
class Witness:
    """Watches a world: which member goes while who answers, and who is sent a configuration while what stands open."""

    world: w.World
    fates: dict[int, str]
    faults: list[str] = field(default_factory=list)

    def __call__(self, number: int, what: str) -> None:
        if what.startswith("apply cp"):
            self._sent(int(what.removeprefix("apply cp")))
        for member in self.world.removed[self._seen:]:
            self._removed(int(member, 16))
        self._seen = len(self.world.removed)

    _seen: int = 0

    def _removed(self, number: int) -> None:
        if self.fates[number] != "wiped":
            self.faults.append(f"the member of cp{number}, which {self.fates[number]}, was removed")
        voters = [node for node in self.world.nodes.values() if node.mode == "running" and node.etcd == "Running"]
        left = max((len(node.members) for node in voters), default=0)
        if len(voters) < left // 2 + 1:
            self.faults.append(f"{len(voters)} of {left} voters answer after cp{number} went")

    def _sent(self, number: int) -> None:
        if self.fates[number] not in ("wiped", "kept"):
            self.faults.append(f"cp{number} was sent a configuration, and {self.fates[number]}")
        open_one = disruption_of(self.world.cluster())
        if self.fates[number] == "wiped" and (open_one is None or open_one.machine != f"cp{number}"):
            self.faults.append(f"cp{number} was sent a configuration while {open_one} stood open")
        listed = {member.id for node in self.world.nodes.values() if node.mode == "running" for member in node.members}
        if self.fates[number] == "wiped" and f"{number:016x}" in listed:
            self.faults.append(f"cp{number} was sent a configuration while its old member was listed")


def world_of(fates: dict[int, str]) -> w.World:
    world = f.planes(len(fates), tuple(number for number, fate in fates.items() if fate != "runs"))
    for number, fate in fates.items():
        node = f.node_of(world, number)
        if fate in ("kept", "hidden"):
            node.partitions = f.KEPT if fate == "kept" else f.NOT_WIPED
        elif fate == "dead":
            node.mode = "closed"
    return world


def reconcile(fates: dict[int, str], runs: int, order: tuple[int, ...]) -> tuple[w.World, Witness]:
    """Every machine that does not run is reconciled at once, by one or two runs."""
    world = world_of(fates)
    witness = Witness(world, fates)
    world.hook = witness

    async def everything() -> None:
        await asyncio.gather(*(f.Life(world, f"cp{number}", holder=f"run-{run}").live(6)
                               for run in range(runs) for number in order if fates[number] != "runs"))

    asyncio.run(everything())
    witness(0, "")
    return world, witness


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 3, 5, 7]).flatmap(lambda count: st.lists(st.sampled_from(FATES), min_size=count, max_size=count)), st.integers(1, 2),
       st.randoms(use_true_random=False))
def test_whatever_befell_the_control_planes(found: list[str], runs: int, shuffled: object) -> None:
    fates = dict(enumerate(found, 1))
    order = list(fates)
    shuffled.shuffle(order)  # type: ignore[attr-defined]
    world, witness = reconcile(fates, runs, tuple(order))
    assert witness.faults == []
    assert len(set(world.accepted)) == len(world.accepted) == len(world.received), "once per wipe"
    kept = {f"cp{number}" for number, fate in fates.items() if fate == "kept"}
    assert kept <= set(world.accepted), "a member that only comes back waits for nobody"
    assert not world.bootstraps and not world.store.leases.held


@pytest.mark.parametrize("count, wiped, removed", [(3, 1, 1), (3, 2, 0), (3, 3, 0), (5, 2, 2), (5, 3, 0), (7, 3, 3), (7, 4, 0), (1, 1, 0)])
def test_a_majority_that_is_left_is_what_counts(count: int, wiped: int, removed: int) -> None:
    fates = {number: "wiped" if number <= wiped else "runs" for number in range(1, count + 1)}
    world, witness = reconcile(fates, 1, tuple(fates))
    assert witness.faults == [] and len(world.removed) == removed
    assert len(world.accepted) == min(removed, 1), "the next waits until this one has joined"


def test_the_witness_sees_what_must_not_be() -> None:
    fates = {1: "wiped", 2: "runs", 3: "dead"}
    world = world_of(fates)
    witness = Witness(world, fates)
    world.removed.append(f"{2:016x}")
    witness(1, "apply cp3")
    assert len(witness.faults) == 3
