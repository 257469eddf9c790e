# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose turn it is in a cluster: one machine at a time, in an order that does not depend on who answered first."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_words import RemoveEtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import ApplyConfig
from ansible_collections.ichor.talos.plugins.module_utils._decide.reprovision_words import Reinstall, Resume
from ansible_collections.ichor.talos.plugins.module_utils._decide.turns import Turn, awaited, in_turn, next_step, plan_order, waits_for_others
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Step, Target, Wait
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from tests.unit._operations import world as w

BOOTSTRAPPED = {"bootstrappedAt": "2023-11-01T00:00:00Z"}


@dataclass(frozen=True)
class Reboot(Step):
    action: ClassVar[str] = "Reboot"


def reboot(name: str, *waits: Wait, locked: bool = True) -> Reboot:
    return Reboot(Target(name=name, uid=name), "it has to", waits_for=waits, locked=locked)


def join(name: str) -> ApplyConfig:
    return ApplyConfig(Target(name=name, uid=name), "it is new", role="controlplane", locked=True)


def cluster(disrupted: str = "", bootstrapped: bool = True) -> Record:
    status = dict(BOOTSTRAPPED) if bootstrapped else {}
    more = {"disruption": {"machine": disrupted, "step": "reboot", "time": "2023-11-14T00:00:00Z"}} if disrupted else {}
    return w.cluster_record(status={**status, **more})


def waits(steps: dict[str, tuple[Step, ...]]) -> dict[str, list[str]]:
    return {name: [wait.what for step in found for wait in step.waits_for] for name, found in steps.items()}


def turns(*names: str) -> list[Turn]:
    return [Turn(name, name.startswith("cp"), (reboot(name),)) for name in names]


def test_one_machine_at_a_time_control_planes_first() -> None:
    found = in_turn(turns("w-1", "cp-2", "cp-1"), cluster())
    assert waits(found) == {"cp-1": [], "cp-2": ["cp-1 is Ready"], "w-1": ["cp-2 is Ready"]}


def test_the_disrupted_one_goes_first_and_holds_up_the_others() -> None:
    assert waits(in_turn(turns("cp-1", "cp-2"), cluster("cp-2"))) == {"cp-1": ["cp-2 is Ready"], "cp-2": []}
    # one that has no step of its own any more, or is not acted on in this run, is waited for all the same
    assert waits(in_turn(turns("cp-1", "w-1"), cluster("cp-9"))) == {"cp-1": ["cp-9 is Ready"], "w-1": ["cp-1 is Ready"]}


def test_what_needs_no_lock_waits_for_nobody() -> None:
    free = Turn("w-1", False, (reboot("w-1", locked=False),))
    both = Turn("cp-2", True, (reboot("cp-2", locked=False), reboot("cp-2")))
    found = in_turn([*turns("cp-1"), both, free], cluster())
    assert waits(found) == {"cp-1": [], "cp-2": ["cp-1 is Ready"], "w-1": []}
    assert next_step(found["cp-2"]) == reboot("cp-2", locked=False)


def test_a_cluster_without_etcd_has_nothing_to_lose() -> None:
    found = in_turn([Turn(name, True, (join(name),)) for name in ("cp-1", "cp-2")], cluster(bootstrapped=False))
    assert waits(found) == {"cp-1": [], "cp-2": []}
    assert waits(in_turn(turns("cp-1", "cp-2"), None)) == {"cp-1": [], "cp-2": []}


def test_etcd_takes_one_new_member_at_a_time() -> None:
    joins = [Turn(name, True, (join(name),)) for name in ("cp-4", "cp-5")]
    assert waits(in_turn(joins, cluster())) == {"cp-4": [], "cp-5": ["cp-4 is Ready"]}
    assert waits(in_turn(joins, cluster(), {"cp-3"})) == {"cp-4": ["cp-3 is Ready"], "cp-5": ["cp-4 is Ready", "cp-3 is Ready"]}
    # whoever joins does not keep a running one from its reboot: that is what the recorded disruption is for
    assert waits(in_turn(turns("cp-1"), cluster(), {"cp-3"})) == {"cp-1": []}


def test_a_machine_that_a_step_waits_for_already_is_named_once() -> None:
    turn = Turn("cp-1", True, (reboot("cp-1", Wait("a voter", target="cp-2")),))
    assert waits(in_turn([turn], cluster("cp-2"))) == {"cp-1": ["a voter"]}


@pytest.mark.parametrize(("step", "others"), [
    (reboot("a"), False), (reboot("a", Wait("b is Ready")), True), (reboot("a", Wait("a second reading", target="a")), False),
    (reboot("a", Wait("a voter", target="b"), Wait("b is Ready")), True), (reboot("a", Wait("b is Ready"), Wait("a second reading", target="a")), False)])
def test_who_waits_for_others_alone(step: Reboot, others: bool) -> None:
    assert waits_for_others((step,), "a") is others
    assert not waits_for_others((), "a")


def test_whom_a_step_waits_for() -> None:
    assert awaited((reboot("a", Wait("a voter", target="b"), Wait("c is Ready")),)) == ("b", "c") and awaited(()) == awaited((reboot("a"),)) == ()


def test_only_the_first_step_may_go() -> None:
    assert next_step(()) is None
    assert next_step((reboot("a"), reboot("b"))) == reboot("a")
    assert next_step((reboot("a", Wait("something")), reboot("b"))) is None


@given(st.sets(st.sampled_from(["cp-1", "cp-2", "cp-3", "w-1", "w-2"]), min_size=1), st.sampled_from(["", "cp-2", "w-1", "gone"]))
def test_never_two_at_once_and_never_in_another_order(names: set[str], disrupted: str) -> None:
    orders = {str(sorted(waits(in_turn(turns(*order), cluster(disrupted))).items()))
              for order in itertools.islice(itertools.permutations(sorted(names)), 6)}
    assert len(orders) == 1
    free = [name for name, waiting in waits(in_turn(turns(*sorted(names)), cluster(disrupted))).items() if not waiting]
    assert free == ([disrupted] if disrupted in names else [] if disrupted else free) and len(free) <= 1


@pytest.mark.parametrize("order", [("b", "a"), ("a", "b")])
def test_a_plan_does_not_depend_on_who_is_disrupted(order: tuple[str, str]) -> None:
    subjects = [("w-1", "b", False), ("cp-2", "b", True), ("cp-1", "b", True), ("w-1", "a", False)]
    assert sorted(subjects, key=lambda entry: plan_order(*entry)) == [("w-1", "a", False), ("cp-1", "b", True), ("cp-2", "b", True), ("w-1", "b", False)]
    found = in_turn(turns(*(f"cp-{name}" for name in order)), cluster(f"cp-{order[0]}"))
    assert sorted(found) == ["cp-a", "cp-b"]


def test_what_the_one_ahead_needs_to_become_ready_waits_for_nobody() -> None:
    """Two wiped control planes of five: etcd takes the first as a member only when the second's old one is gone too."""
    def wiped(name: str) -> Turn:
        target = Target(name=name, uid=name)
        return Turn(name, True, (RemoveEtcdMember(target, "it is stale", locked=True, member="a1"),
                                 Reinstall(target, "it was wiped", role="controlplane", locked=True)))

    found = in_turn([wiped("cp-1"), wiped("cp-2")], cluster())
    assert [[wait.what for wait in step.waits_for] for step in found["cp-2"]] == [[], ["cp-1 is Ready"]]
    kept = [Turn(name, True, (Resume(Target(name=name, uid=name), "it kept its data", role="controlplane", locked=True),)) for name in ("cp-1", "cp-2")]
    assert waits(in_turn(kept, cluster("cp-1"), {"cp-3"})) == {"cp-1": [], "cp-2": []}
