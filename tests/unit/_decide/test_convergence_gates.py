# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every gate of a converged machine has a row and is noticed when it is taken away (design sections 10, 11 and 13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence import GATES, Gate, decide
from ansible_collections.ichor.talos.plugins.module_utils._decide.convergence_words import ApplyDrift, Converging, Found, Need, Verdict
from ansible_collections.ichor.talos.plugins.module_utils._decide.machine_edit_words import Etcd
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import LOCK_REASONS, PROVISIONED_REASONS, READY_REASONS
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Step
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import Budget, Hosting, Pod, Requirement
from tests.unit._decide import converging_case as case
from tests.unit._decide.rows_convergence import CONVERGENCE, MEMBERS, WEB, Row, drained, etcd, hosted, renamed, restarting, silent
from tests.unit._operations import world as w


def step_told(step: Step) -> str:
    mode = f" {step.mode}" if isinstance(step, ApplyDrift) else ""
    waits = " and ".join(wait.target or wait.what for wait in step.waits_for)
    return f"{step.action}{mode}{f' after {waits}' if waits else ''}"


def told(verdict: Verdict) -> tuple[str, str, str]:
    """(rule, reason of Ready, what follows) of a verdict."""
    if isinstance(verdict, Need):
        return "", "", f"read {verdict.reading}"
    rule = verdict.rule if verdict.rule not in ("11/apply", "11/reboot-not-allowed") else ""
    return rule, verdict.reason, ", ".join([*map(step_told, verdict.steps), *(refusal.reason for refusal in verdict.refusals)])


@pytest.mark.parametrize("row", CONVERGENCE, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    rule, ready, follows = told(decide(row.seen(), case.NOW))
    # The holds of a cluster carry the ids of the lock's own rows.
    assert (row.rule if row.rule == "11/lock" and rule.startswith("13/") else rule, ready, follows) == (row.rule, row.ready, row.follows)


@pytest.fixture(scope="module")
def judged() -> list[tuple[Converging, tuple[str, str, str]]]:
    """Every row's observation with what all gates together say of it."""
    return [(seen, told(decide(seen, case.NOW))) for seen in (row.seen() for row in CONVERGENCE)]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_a_gate_that_is_taken_away_is_noticed(gate: Gate, judged: list[tuple[Converging, tuple[str, str, str]]]) -> None:
    rest = tuple(other for other in GATES if other is not gate)

    def noticed(seen: Converging, before: tuple[str, str, str]) -> bool:
        try:
            return told(decide(seen, case.NOW, rest)) != before
        except ValueError:
            return True  # a later gate has no ground to stand on

    assert any(noticed(seen, before) for seen, before in judged)


def test_every_gate_has_a_row() -> None:
    ids = [row.id for row in CONVERGENCE]
    assert len(ids) == len(set(ids)) and {gate.id for gate in GATES} == {row.rule for row in CONVERGENCE if row.rule}


def test_every_reason_is_one_of_a_condition_but_for_a_machine_that_is_none_of_these() -> None:
    reasons = {row.ready for row in CONVERGENCE} - {"RecordChanged"}
    assert reasons <= READY_REASONS | PROVISIONED_REASONS | LOCK_REASONS


@pytest.mark.parametrize("seen, reading", [
    (replace(case.case(), wanted=None), "wanted"),
    (replace(case.case(), wanted=None, node=None, expected="abc"), "node"),
    (replace(case.case(), node=None), "node"),
    (restarting(None), "quorum"),
    (renamed(None), "members"),
    (case.case(change=case.hostname), "named"),
], ids=["render-first", "no-render-where-the-inputs-are-known", "authenticated", "quorum", "members", "names-of-the-others"])
def test_what_is_read_next_is_a_decision(seen: Converging, reading: str) -> None:
    assert decide(seen, case.NOW) == Need(reading)


@pytest.mark.parametrize("row", CONVERGENCE, ids=lambda row: row.id)
def test_what_is_under_way_is_looked_at_again_soon_and_what_is_over_is_settled(row: Row) -> None:
    found = decide(row.seen(), case.NOW)
    assert isinstance(found, Found)
    assert found.settled != found.soon and (not found.steps or found.soon)
    assert found.silent == (row.rule == "11/silent") and (found.ready == (found.reason == "Converged"))


@pytest.mark.parametrize("row", [row for row in CONVERGENCE if row.follows.startswith(("ApplyDrift", "Reboot"))], ids=lambda row: row.id)
def test_a_control_plane_takes_the_lock_for_every_step_and_a_worker_only_to_reboot(row: Row) -> None:
    seen = row.seen()
    found = decide(seen, case.NOW)
    assert isinstance(found, Found)
    for step in found.steps:
        assert step.locked == (step.action == "Reboot" or seen.machine.spec["role"] == "controlplane")
        assert step.disruption == ("reboot" if step.action == "Reboot" else "none")


def test_a_quorum_that_is_about_to_change_is_looked_at_again_soon() -> None:
    def found(seen: Converging) -> bool:
        verdict = decide(seen, case.NOW)
        assert isinstance(verdict, Found) and verdict.rule == "11/quorum"
        return verdict.soon

    seen = restarting(etcd(1))
    joining = w.machine_record("cp4", 4, "controlplane", status={"configStoredAt": "2023-11-14T00:00:00Z"})
    learner = Present(Etcd((*MEMBERS[:2], replace(MEMBERS[2], learner=True)), 1))
    nameless = Present(Etcd((*MEMBERS[:2], replace(MEMBERS[2], name="")), 0))
    assert [found(one) for one in (
        seen, replace(seen, siblings=(*seen.siblings[:2], joining)), replace(seen, quorum=learner), replace(seen, quorum=nameless),
    )] == [False, True, True, True]


def test_the_reboot_that_is_left_is_the_very_step_that_was_planned_before() -> None:
    first, left = decide(case.case(change=case.udev), case.NOW), decide(case.case(change=case.udev, kept=case.as_is), case.NOW)
    assert isinstance(first, Found) and isinstance(left, Found) and [step.id for step in left.steps] == [first.steps[1].id]


def test_what_is_sent_keeps_the_images_that_are_newer_on_the_node() -> None:
    compared = case.compared("worker", case.both(case.newer, case.sysctl))
    assert "kubelet:v1.35.3" in compared.text and "somaxconn" not in compared.text


def test_images_that_are_newer_in_what_is_staged_stay_as_well() -> None:
    compared = case.compared("worker", case.sysctl, case.newer)
    assert "kubelet:v1.35.3" in compared.text and "somaxconn" not in compared.text


def test_a_silent_node_is_named_with_endpoint_error_and_where_kubernetes_has_it() -> None:
    found = decide(silent(900, "10.0.0.7:50000"), case.NOW)
    assert isinstance(found, Found)
    for part in ("10.0.0.1:50000", "gives no answer", "spec.endpoint may need updating to 10.0.0.7:50000", "2023-11-14T"):
        assert part in found.message


def test_another_machine_at_the_address_is_told_with_what_to_edit() -> None:
    row = next(row for row in CONVERGENCE if row.id == "11/other-machine-answers")
    found = decide(replace(row.seen(), told="10.0.0.7:50000"), case.NOW)
    assert isinstance(found, Found) and "10.0.0.7:50000" in found.message and "all control planes" in found.message


@pytest.mark.parametrize("change", [
    case.insert("    env:\n        A: b\n"),
    lambda config: config.replace(b"cluster:\n", b"cluster:\n    etcd:\n        extraArgs:\n            a: b\n", 1),
], ids=["environment", "etcd"])
def test_what_has_effect_only_after_a_restart_is_warned_of(change: case.Change) -> None:
    found = decide(case.case(change=change, version="v1.14.0"), case.NOW)
    assert isinstance(found, Found) and [warning.rule for warning in found.warnings] == ["11/later"]


def test_an_install_setting_that_drifted_is_warned_of() -> None:
    found = decide(case.case(change=lambda config: config.replace(b"disk: /dev/sda", b"disk: /dev/sdb")), case.NOW)
    assert isinstance(found, Found) and [warning.rule for warning in found.warnings] == ["11/never"]


@pytest.mark.parametrize(("allowed", "rules"), [(True, ["11/not-drained"]), (False, [])])
def test_a_reboot_is_announced_to_come_without_a_drain(allowed: bool, rules: list[str]) -> None:
    found = decide(replace(case.case(change=case.udev), allow_reboot=allowed), case.NOW)
    assert isinstance(found, Found) and [warning.rule for warning in found.warnings] == rules


def silent_planes(*reachable: bool) -> Converging:
    """A control plane that is silent for long, beside others that answer or do not."""
    seen = silent(600.0, role="controlplane")
    others = tuple(
        w.machine_record(f"cp{number}", number, "controlplane", status={**case.JOINED, **({} if one else case.condition("NodeReachable", "False", 600.0))})
        for number, one in enumerate(reachable, 2))
    return replace(seen, siblings=(seen.machine, *others))


@pytest.mark.parametrize(("seen", "says"), [
    (silent_planes(False, False), True), (silent_planes(False, True), False), (silent_planes(), True),
    (replace(silent_planes(False, False), told="10.0.0.9:50000"), False), (silent(600.0), False),
], ids=["all-silent", "one-answers", "the-only-one", "kubernetes-tells", "a-worker"])
def test_when_all_control_planes_moved_at_once_the_message_says_what_to_edit(seen: Converging, says: bool) -> None:
    found = decide(seen, case.NOW)
    assert isinstance(found, Found) and found.reason == "NodeUnreachable"
    assert ("edit spec.endpoint of each with talos_machine" in found.message) is says


TIGHT = Budget("web", "web", (Requirement("app", "In", ("web",)),), 0)


@pytest.mark.parametrize(("hosting", "rules", "why"), [
    (hosted(WEB), [], "; Node m1 is drained first (1 pod to go)"),
    (hosted(WEB, elsewhere=0), ["11/drain-nowhere"], "after a reboot, which leaves what is on its disks"),
    (hosted(WEB, budgets=(TIGHT,)), ["11/drain-blocked"], "(1 pod to go)"),
    (hosted(Pod("web", "by-hand", "uid-1")), ["11/drain-unowned"], "(0 pods to go)"),
    (Absent("no Kubernetes"), [], "after a reboot, which leaves what is on its disks"),
], ids=["drained", "nowhere", "blocked", "unowned", "no-node"])
def test_what_a_drain_before_a_reboot_means_is_told(hosting: Observed[Hosting], rules: list[str], why: str) -> None:
    found = decide(drained(hosting), case.NOW)
    assert isinstance(found, Found) and [warning.rule for warning in found.warnings] == rules and found.steps[-1].why.endswith(why)
    assert found.steps[-1].id == decide(drained(Absent()), case.NOW).steps[-1].id  # type: ignore[union-attr]


def test_what_runs_on_it_is_read_only_where_it_is_drained() -> None:
    assert decide(drained(None), case.NOW) == Need("hosting")
    for seen in (replace(drained(None), drains=False), replace(drained(None), allow_reboot=False), replace(case.case(change=case.sysctl), drains=True)):
        assert isinstance(decide(seen, case.NOW), Found)
