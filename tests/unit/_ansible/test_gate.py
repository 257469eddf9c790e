# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate, saved plans, and what a person sees of a plan."""

from __future__ import annotations

import hashlib
import json
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible import saved_plan
from ansible_collections.ichor.talos.plugins.module_utils._ansible.gate import RunGate
from ansible_collections.ichor.talos.plugins.module_utils._ansible.plan_text import WIDTH, duration, parameter_difference, plan_lines
from ansible_collections.ichor.talos.plugins.module_utils._ansible.result import of_outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan, Refusal, Step, Target, Wait, Warn


@dataclass(frozen=True)
class Send(Step):
    action: ClassVar[str] = "ApplyConfig"
    disruption: ClassVar[str] = "wipe"
    reversible: ClassVar[bool] = False
    config: str = field(default="", metadata={"plan": "digest"})
    fingerprint: str = ""


def step(name: str, **more: str) -> Send:
    return Send(Target(name=name, cluster="c", uid=f"uid-{name}", address="10.0.0.1:50000"), f"{name} was never sent one", **more)


def gate(**options: object) -> tuple[RunGate, list[str]]:
    lines: list[str] = []
    values: dict[str, object] = {"check": False, **options}
    return RunGate("talos_maintenance_apply", show=lines.append, **values), lines  # type: ignore[arg-type]


PLAN = Plan(steps=(step("one", config="bytes"), step("two", config="bytes")),
            refusals=(Refusal(Target(name="three"), "LockHeld", "Somebody holds the lock.", "Wait."),),
            warnings=(Warn(Target(name="one"), "its disk carries ext4."),), waits=(Wait("the lease", 300.0, "two"),))


def test_a_plan_reads_as_lines() -> None:
    assert plan_lines(PLAN, check=True) == [
        f"Plan {PLAN.id[:12]}, 2 steps (check mode: nothing is done):",
        "  1. apply config: one at 10.0.0.1:50000 [wipe, cannot be undone]", "     because one was never sent one",
        "  2. apply config: two at 10.0.0.1:50000 [wipe, cannot be undone]", "     because two was never sent one",
        "  refused: three: Somebody holds the lock. Wait. [LockHeld]",
        "  What is refused is left out; a real run does the steps above all the same.",
        "  warning: one: its disk carries ext4.",
        "  would wait for two: the lease (up to 5 min)",
    ]
    assert "  What is refused is left out; this run does the steps above all the same." in plan_lines(PLAN, check=False)
    assert not any("left out" in line for line in plan_lines(replace(PLAN, steps=()), check=True)), "where nothing is done, nothing is promised"
    whole = replace(PLAN, refusals=(*PLAN.refusals, Refusal(Target(name="c"), "ConfirmationMissing", "Nobody has agreed.", "Agree.", whole=True)))
    for check, run in ((True, "a real run"), (False, "this run")):
        assert f"  As long as that is refused, {run} does none of the steps above." in plan_lines(whole, check=check)
        assert not any("left out" in line for line in plan_lines(whole, check=check))
    assert plan_lines(Plan(), check=False) == ["Nothing to do."]
    assert plan_lines(Plan(waits=PLAN.waits), check=False) == ["  waits for two: the lease (up to 5 min)"]


def test_long_texts_are_wrapped_and_no_fingerprint_is_cut() -> None:
    fingerprint = "t4gzgTmkTqJXUE8INabXHP/Vi/O+ED/4inEr2qoQGEA="
    lines = plan_lines(Plan(refusals=(Refusal(Target(name="one"), "MaintenanceIdentityChanged", f"It is {fingerprint}. " * 5),)), check=False)
    assert all(len(line) <= WIDTH for line in lines) and len(lines) > 2
    assert sum(line.count(fingerprint) for line in lines) == 5
    assert lines[1].startswith("    ")


@pytest.mark.parametrize(("seconds", "text"),
                         [(0.2, "0.2 s"), (5, "5 s"), (119, "119 s"), (120, "2 min"), (150, "2 min 30 s"), (7200, "2 h"), (7500, "2 h 5 min")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_check_mode_gives_no_steps_and_shows_the_same_plan() -> None:
    real, dummy = gate()
    check, lines = gate(check=True)
    assert real(PLAN) == PLAN
    assert check(PLAN).steps == ()
    assert check.plans == real.plans == [PLAN]
    assert any("apply config: two" in line for line in lines)


def test_a_plan_is_shown_again_only_when_it_is_another_one() -> None:
    checked, lines = gate()
    checked(PLAN)
    count = len(lines)
    checked(PLAN)
    assert len(lines) == count
    checked(Plan())
    assert lines[-1] == "Nothing to do."


def test_an_expected_id_is_held_against_the_first_plan_and_its_remainder() -> None:
    checked, dummy = gate(expect=PLAN.id)
    assert checked(PLAN) == PLAN
    assert checked(Plan(steps=PLAN.steps[1:])).steps == PLAN.steps[1:]
    with pytest.raises(TalosError, match="not the saved one") as caught:
        checked(Plan(steps=(step("four"),)))
    assert caught.value.reason == "PlanChanged"


@pytest.mark.parametrize("check", [False, True])
def test_another_id_is_refused_in_both_modes_and_the_message_names_the_present_one(check: bool) -> None:
    checked, lines = gate(expect="0" * 64, check=check)
    with pytest.raises(TalosError) as caught:
        checked(PLAN)
    assert caught.value.reason == "PlanChanged"
    assert PLAN.id in caught.value.text
    assert lines[0].startswith("The plan now would be "), "the present plan is shown, and not as one that is done"


def test_a_short_form_of_the_id_is_enough_but_not_a_few_digits() -> None:
    assert gate(expect=PLAN.id[:12])[0](PLAN) == PLAN
    with pytest.raises(TalosError):
        gate(expect=PLAN.id[:4])[0](PLAN)


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_blank_id_is_no_plans_id(blank: str) -> None:
    for plan in (PLAN, Plan()):
        with pytest.raises(TalosError) as caught:
            gate(expect=blank)[0](plan)
        assert caught.value.reason == "PlanChanged" and "not named" in caught.value.message


def test_an_approved_plan_of_which_nothing_is_left_is_no_failure() -> None:
    checked, dummy = gate(expect=PLAN.id)
    assert checked(Plan()) == Plan()
    with pytest.raises(TalosError) as caught:
        checked(PLAN)
    assert caught.value.reason == "PlanChanged", "what a later reading calls for was not in the plan that was begun with"


def test_the_plan_that_does_nothing_has_the_id_that_the_playbooks_take_where_none_was_handed_on() -> None:
    assert Plan().id == hashlib.sha256(b'{"steps":[]}').hexdigest()


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = str(tmp_path / "plan.json")
    saved_plan.add(path, saved_plan.of_plan("talos_maintenance_apply", PLAN))
    return path


def test_a_saved_plan_is_executed_in_parts_and_never_twice(saved: str) -> None:
    def held() -> RunGate:
        return gate(saved=saved_plan.read(saved))[0]

    first = Plan(steps=PLAN.steps[:1])
    assert held()(first) == first
    saved_plan.record_done(saved, "talos_maintenance_apply", [first.steps[0].id])
    assert not saved_plan.read(saved)[0].finished
    rest = Plan(steps=PLAN.steps[1:])
    assert held()(rest) == rest
    saved_plan.record_done(saved, "talos_maintenance_apply", [rest.steps[0].id])
    assert saved_plan.read(saved)[0].finished
    with pytest.raises(TalosError) as caught:
        held()(first)
    assert caught.value.reason == "PlanFinished"
    assert held()(Plan()) == Plan(), "a finished plan with nothing to do is no failure"


def refusal(name: str) -> Refusal:
    return Refusal(Target(name=name), "HoldApply", "A person holds it.", "Take the annotation away.")


def test_an_approved_step_that_is_refused_now_fails_the_task_and_another_machines_refusal_does_not(saved: str) -> None:
    checked = gate(saved=saved_plan.read(saved))[0]
    present = Plan(steps=PLAN.steps[1:], refusals=(refusal("one"), refusal("three")))
    checked(present)
    outcome = Outcome(plan=present, executed=(PLAN.steps[1].id,))
    assert checked.refused(outcome) == (present.refusals[0],)
    assert checked.refused(replace(outcome, unreachable=("one",))) == (), "a silent machine is a result"
    result = of_outcome(outcome, checked.plans, check=False, fail_on=(), held=checked.refused)
    assert result.failed and result.values["reason"] == "HoldApply" and result.values["changed"] is True
    assert result.values["msg"] == "Steps of the approved plan are refused. one: A person holds it. Take the annotation away."
    saved_plan.record_done(saved, "talos_maintenance_apply", [step.id for step in PLAN.steps])
    finished = gate(saved=saved_plan.read(saved))[0]
    finished(Plan(refusals=present.refusals))
    assert finished.refused(Outcome(plan=Plan(refusals=present.refusals))) == (), "what was done is not kept from being done"


@pytest.mark.parametrize(("expect", "fails"), [(PLAN.id, True), (PLAN.id[:12], True), (Plan().id, False), (None, False)])
def test_of_an_approved_id_nothing_is_left_but_refusals(expect: str | None, fails: bool) -> None:
    checked = gate(expect=expect)[0]
    present = Plan(refusals=(refusal("one"),))
    checked(present)
    result = of_outcome(Outcome(plan=present, blocked=("one",)), checked.plans, check=False, fail_on=(), held=checked.refused)
    assert result.failed is fails
    assert (result.values["reason"] == "HoldApply") is fails
    assert not of_outcome(Outcome(), checked.plans, check=False, fail_on=(), held=checked.refused).failed, "with nothing to do nothing is refused"


def test_a_refused_operation_keeps_its_own_words_under_an_approved_plan(saved: str) -> None:
    checked = gate(saved=saved_plan.read(saved))[0]
    present = Plan(refusals=(refusal("one"),))
    checked(present)
    result = of_outcome(Outcome(plan=present, refused=True), checked.plans, check=False, fail_on=(), held=checked.refused)
    assert result.failed and result.values["msg"] == "A person holds it. Take the annotation away."


def test_a_step_that_was_not_saved_is_refused_with_the_difference(saved: str) -> None:
    checked, lines = gate(saved=saved_plan.read(saved))
    with pytest.raises(TalosError) as caught:
        checked(Plan(steps=(PLAN.steps[0], step("four"))))
    assert caught.value.reason == "PlanChanged"
    assert "+ apply config: four is not in the saved plan" in caught.value.message
    assert "- apply config: two is only in the saved plan" in caught.value.message
    assert "  + apply config: four is not in the saved plan" in lines
    assert lines[0].startswith("The plan now would be ") and lines[0].endswith("2 steps (nothing is done):")
    assert not any(line.startswith("Plan ") for line in lines)


def test_other_bytes_are_another_step(saved: str) -> None:
    with pytest.raises(TalosError) as caught:
        gate(saved=saved_plan.read(saved))[0](Plan(steps=(step("one", config="other bytes"),)))
    assert "certificate" not in caught.value.message
    assert "apply config: one: the configuration differs (" in caught.value.message and "+ apply" not in caught.value.message
    assert caught.value.message.count("…") == 2, "digests are shortened"


def test_a_file_without_a_plan_of_the_module_lets_nothing_through_but_an_empty_plan() -> None:
    with pytest.raises(TalosError, match="one is not in the saved plan"):
        gate(saved=())[0](Plan(steps=(step("one"),)))
    assert gate(saved=())[0](Plan()) == Plan()


def test_every_parameter_that_differs_is_named(saved: str) -> None:
    checked, lines = gate(saved=saved_plan.read(saved))
    with pytest.raises(TalosError) as caught:
        checked(Plan(steps=(step("one", config="other", fingerprint="new"),)))
    assert "the configuration differs" in caught.value.message and "the certificate differs (new now, none in the plan)" in caught.value.message
    assert any(line.startswith("  apply config: one: the configuration differs") for line in lines)


def test_a_plan_of_another_task_of_the_module_is_not_told_as_a_difference(saved: str) -> None:
    saved_plan.add(saved, saved_plan.of_plan("talos_maintenance_apply", Plan(steps=(step("five"),))))
    with pytest.raises(TalosError) as caught:
        gate(saved=saved_plan.read(saved))[0](Plan(steps=(step("one", config="other"),)))
    assert "five" not in caught.value.message and "- apply config: two is only in the saved plan" in caught.value.message


def test_the_differences_inside_a_mapping_are_named_by_their_keys() -> None:
    def canonical(**spec: object) -> dict[str, object]:
        return {"parameters": {"spec": spec}}

    told = parameter_difference(canonical(role="worker", hostname="a"), canonical(role="controlplane", hostname="a"))  # type: ignore[arg-type]
    assert told == "the role differs (worker now, controlplane in the plan)"


def test_a_rotated_certificate_is_told_as_that(saved: str) -> None:
    with pytest.raises(TalosError) as caught:
        gate(saved=saved_plan.read(saved))[0](Plan(steps=(step("one", config="bytes", fingerprint="new"),)))
    assert caught.value.reason == "PlanChanged"
    assert "Only the certificate changed" in caught.value.message


def test_a_plan_file_holds_digests_is_private_and_keeps_the_plans_of_other_tasks(saved: str) -> None:
    saved_plan.add(saved, saved_plan.of_plan("talos_bootstrap", Plan()))
    saved_plan.add(saved, saved_plan.of_plan("talos_maintenance_apply", PLAN))
    text = Path(saved).read_text(encoding="utf-8")
    assert stat.S_IMODE(Path(saved).stat().st_mode) == 0o600
    assert "bytes" not in text
    assert [plan.module for plan in saved_plan.read(saved)] == ["talos_bootstrap", "talos_maintenance_apply"]


def test_another_run_starts_the_file_anew(saved: str) -> None:
    saved_plan.add(saved, saved_plan.of_plan("talos_bootstrap", Plan()), "another run")
    assert [plan.module for plan in saved_plan.read(saved)] == ["talos_bootstrap"]
    saved_plan.record_done(saved, "talos_maintenance_apply", ["unknown"])
    saved_plan.add(saved, saved_plan.of_plan("talos_discover", Plan()), "another run")
    assert [plan.module for plan in saved_plan.read(saved)] == ["talos_bootstrap", "talos_discover"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "other", "plans": []}', '{"format": "ichor.talos/plan/v1", "plans": [1]}'])
def test_what_is_no_plan_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TalosError) as caught:
        saved_plan.read(str(path))
    assert caught.value.reason == "InvalidInput" and str(path) in caught.value.message


def test_a_missing_plan_file_and_a_missing_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(TalosError, match="cannot be read"):
        saved_plan.read(str(tmp_path / "none"))
    with pytest.raises(TalosError, match="cannot be written"):
        saved_plan.add(str(tmp_path / "no" / "plan"), saved_plan.of_plan("m", PLAN))


def test_a_saved_plan_survives_a_change_of_texts_but_not_of_canonical_form(saved: str) -> None:
    data = json.loads(Path(saved).read_text(encoding="utf-8"))
    assert data["plans"][0]["steps"][0]["canonical"] == PLAN.steps[0].canonical()
    other = Send(PLAN.steps[0].target, "another reason", config="bytes")
    assert gate(saved=saved_plan.read(saved))[0](Plan(steps=(other,))).steps == (other,)
