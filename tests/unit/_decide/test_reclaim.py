# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reclaims as a table: every gate and every warning has a row and is noticed when it is taken away; no plan costs an etcd its quorum."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim import WARNINGS, Verdict, WarningRow, decide_all, decide_reclaim, plan_order
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_gates import CONFIGURED_GATES, NODE_GATES, ReclaimGate
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_inspection import lease_of, still_there
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_page import lines, page
from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_words import Inspection, Owner, Reclaiming
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Partition, ServiceState
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present, Unknown
from ansible_collections.ichor.talos.tests.unit._decide import reclaim_case as c
from ansible_collections.ichor.talos.tests.unit._decide.rows_reclaim import CASES, Case
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from hypothesis import given, settings, strategies as st

GATES = (*NODE_GATES, *CONFIGURED_GATES)


def told(verdict: Verdict) -> tuple[object, ...]:
    refusal = verdict.refusal
    return (refusal.rule if refusal else "", refusal.reason if refusal else "", tuple(step.action for step in verdict.plan.steps),
            tuple(warning.rule for warning in verdict.plan.warnings), verdict.reset.graceful if verdict.reset else True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_row(case: Case) -> None:
    verdict = decide_reclaim(case.seen())
    rule, reason, actions, warned, graceful = told(verdict)
    assert (rule, reason, actions, graceful) == (case.rule, case.reason, case.actions, case.graceful)
    assert set(case.warns) <= set(warned) and not set(case.never) & set(warned)  # type: ignore[call-overload]
    texts = [step.why for step in verdict.plan.steps] + [warning.message for warning in verdict.plan.warnings] + [verdict.done]
    texts += [f"{refusal.message} {refusal.hint}" for refusal in verdict.plan.refusals]
    for text in case.says:
        assert text in "\n".join(texts)
    shown = page(case.seen(), verdict)
    assert shown["next"] and isinstance(lines(case.seen(), verdict), list)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: ReclaimGate) -> None:
    rest = tuple(other for other in GATES if other is not gate)
    assert any(told(decide_reclaim(case.seen(), rest)) != told(decide_reclaim(case.seen())) for case in CASES if case.rule == gate.id)


@pytest.mark.parametrize("row", WARNINGS, ids=lambda row: row.id)
def test_a_warning_that_is_taken_away_is_noticed(row: WarningRow) -> None:
    rest = tuple(other for other in WARNINGS if other is not row)
    assert any(set(case.warns) - {warning.rule for warning in decide_reclaim(case.seen(), rows=rest).plan.warnings} for case in CASES)


def test_every_gate_and_every_warning_has_a_row() -> None:
    assert {gate.id for gate in GATES} == {case.rule for case in CASES} - {""}
    assert {row.id for row in WARNINGS} == {rule for case in CASES for rule in case.warns} and len({case.id for case in CASES}) == len(CASES)


def test_a_reset_cannot_be_taken_back() -> None:
    step = decide_reclaim(c.worker()).reset
    assert step is not None and not step.reversible and step.disruption == "wipe" and step.locked and step.from_cluster == "id-of-old"
    assert decide_reclaim(c.worker()).plan.id != decide_reclaim(c.forced(c.stopped())).plan.id


def test_the_lease_is_the_record_s_of_a_managed_cluster_and_the_id_of_a_foreign_one() -> None:
    assert lease_of(c.managed(c.worker())) == "prod" and lease_of(c.worker()) == "id-of-old"
    assert lease_of(c.looking(c.worker(), owner=Present(Owner("", "old")))) == "old"


def test_of_a_volume_that_was_there_twice_one_goes() -> None:
    twice = (*c.SYSTEM, Partition("/dev/sdb1", "/dev/sdb", "STATE"))
    assert still_there(("STATE", "EPHEMERAL"), twice, c.SYSTEM[:3]) == ()
    assert still_there(("STATE", "EPHEMERAL"), twice, twice) == ("STATE", "EPHEMERAL") and still_there(("STATE",), (), c.SYSTEM) == ("STATE",)


def of(number: int, cluster: str = "old", count: int = 3, *, worker: bool = False, dead: tuple[int, ...] = ()) -> Reclaiming:
    """Machine <number> of that cluster; etcd's members are 1 to `count`."""
    seen = c.worker() if worker else c.plane(count, dead=dead, own=number)
    uuid = w.uuid(number + 16 * (ord(cluster[0]) - ord("a")) % 200)
    address = f"10.{ord(cluster[0])}.0.{number}"
    seen = c.looking(seen, owner=Present(Owner(f"id-of-{cluster}", cluster, "", "worker" if worker else "controlplane")),
                     identity=Present(replace(w.identity(number), uuid=uuid)))
    return replace(c.wishing(seen, confirm=uuid, address=address), target=replace(seen.target, uuid=uuid, address=f"{address}:50000"))


def test_all_of_a_cluster_at_once_leave_its_last_one() -> None:
    verdicts = decide_all([of(1), of(2), of(3)])
    # cp2 leads, so it goes last.
    assert [told(verdict)[0] for verdict in verdicts] == ["", "16/last", ""]
    assert [wait.what for step in verdicts[2].plan.steps[:1] for wait in step.waits_for] == [
        f"10.{ord('o')}.0.1:50000 in maintenance mode: of one cluster one machine at a time"]
    assert told(decide_all([of(1), of(2), of(3, dead=(2,))])[0])[0] == ""


def test_workers_go_first_and_cluster_by_cluster() -> None:
    seen = [of(1, "old"), of(1, "lab"), of(9, "old", worker=True), of(9, "lab", worker=True), of(2, "old"), of(3, "old")]
    assert [seen[index].wish.address for index in plan_order(seen)] == [
        seen[3].wish.address, seen[1].wish.address, seen[2].wish.address, seen[0].wish.address, seen[5].wish.address, seen[4].wish.address]
    verdicts = decide_all(seen)
    for index in (0, 1):
        assert [wait.what.partition(" in ")[0] for wait in verdicts[index].plan.steps[0].waits_for] == [str(seen[index + 2].target)]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[int, frozenset[int], frozenset[int], frozenset[int], frozenset[int], bool]:
    """A foreign etcd: so many members, learners, who is off, whose etcd alone is stopped, who is to be reclaimed, and whether by force."""
    count = draw(st.integers(1, 7))
    some = st.frozensets(st.integers(1, count))  # type: ignore[type-var]
    return count, draw(some), draw(some), draw(some), draw(some), draw(st.booleans())  # type: ignore[return-value]


def observed(number: int, count: int, learners: frozenset[int], silent: frozenset[int], stopped: frozenset[int], force: bool, quorum: bool) -> Reclaiming:
    """What an inspection reads of that world."""
    def says(one: int) -> object:
        return c.LATE if one in silent | stopped else c.status(one, leader=1 if quorum else 0, learner=one in learners)

    members = Present(tuple(c.member(one, one in learners) for one in range(1, count + 1))) if quorum else Unknown("TimedOut", "no answer")
    look = Inspection(
        Present(w.identity(number)), Present(Owner("id-of-old", "old", "", "controlplane")), hostname=Present(f"cp{number}"), boot_id=Present("boot"),
        partitions=Present(c.SYSTEM), services=Present((ServiceState("etcd", "Finished" if number in stopped else "Running"),)),
        etcd=says(number),  # type: ignore[arg-type]
        members=members, others=tuple((c.hex_of(one), says(one)) for one in range(1, count + 1) if one != number) if quorum else ())  # type: ignore[misc]
    base = c.worker()
    return replace(base, wish=replace(base.wish, address=f"10.0.0.{number}", confirm=w.uuid(number), force_ungraceful=force), node=Present(look),
                   target=replace(base.target, uuid=w.uuid(number), address=f"10.0.0.{number}:50000"))


@settings(max_examples=400, deadline=None)
@given(clusters())
def test_no_plan_costs_an_answering_etcd_its_quorum(world: tuple[int, frozenset[int], frozenset[int], frozenset[int], frozenset[int], bool]) -> None:
    count, learners, silent, stopped, chosen, force = world
    voters = set(range(1, count + 1)) - learners
    alive = voters - silent - stopped
    quorum = len(alive) > len(voters) // 2
    asked = sorted(chosen - silent)
    seen = [observed(number, count, learners, silent, stopped, force, quorum) for number in asked]
    verdicts = decide_all(seen)
    for index in plan_order(seen):
        verdict, number = verdicts[index], asked[index]
        if verdict.reset is None or not quorum:
            continue
        alive = alive - {number}
        voters = voters - {number} if verdict.reset.graceful else voters
        assert alive and len(alive) > len(voters) // 2, f"{number} of {world} costs the quorum"
