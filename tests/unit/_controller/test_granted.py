# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run may do: the plan that was shown, later plans as they arise, and with a saved plan nothing beside it, each step once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._controller.granted import Granted
from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import ApplyConfig
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan, Target, Warn
from tests.unit._operations.world import OpenGate


def step(name: str) -> ApplyConfig:
    return ApplyConfig(Target(name=name, uid=name), "it is new")


class SavedGate(OpenGate):
    """A gate with a saved plan: other steps are refused."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._saved = {step(name).id for name in names}

    def __call__(self, plan: Plan) -> Plan:
        super().__call__(plan)
        if any(one.id not in self._saved for one in plan.steps):
            raise TalosError("PlanChanged", "The present plan is not the saved one.", "Save it.")
        return plan


def test_the_whole_plan_is_shown_once_and_only_new_steps_after_it() -> None:
    gate = OpenGate()
    granted = Granted(gate, False, 120.0)
    granted.begin(Plan((step("a"), step("b"))))
    granted.ask((step("a"),), (Warn(Target(name="a"), "beware"),))
    assert len(gate.plans) == 1 and granted.later == []
    granted.ask((step("a"), step("c")), ())
    assert [plan.steps for plan in gate.plans[1:]] == [(step("c"),)] == [plan.steps for plan in granted.later]
    assert all(one in granted for one in (step("a"), step("b"), step("c"))) and step("d") not in granted


def test_in_check_mode_nothing_is_granted() -> None:
    granted = Granted(OpenGate(check=True), False, 120.0)
    granted.begin(Plan((step("a"),)))
    assert step("a") not in granted and granted.first.steps == (step("a"),)


def test_a_saved_plan_only_filters() -> None:
    gate = SavedGate("a", "b")
    granted = Granted(gate, True, 120.0)
    granted.begin(Plan((step("a"),)))
    granted.ask((step("b"),), ())
    granted.ask((step("c"),), ())
    granted.ask((step("c"),), ())
    assert step("b") in granted and step("c") not in granted
    assert [one.target.name for one in granted.withheld] == ["c"] and len(gate.plans) == 3


def test_another_first_plan_than_the_saved_one_ends_the_run() -> None:
    granted = Granted(SavedGate("a"), True, 120.0)
    with pytest.raises(TalosError, match="PlanChanged"):
        granted.begin(Plan((step("a"), step("c"))))


@pytest.mark.parametrize(("bounded", "after", "rests"), [(False, 30.0, 90.0), (False, 120.0, 0.0), (True, 1e9, float("inf"))])
def test_a_step_that_was_done_rests(bounded: bool, after: float, rests: float) -> None:
    granted = Granted(OpenGate(), bounded, 120.0)
    granted.begin(Plan((step("a"),)))
    assert granted.rests(step("a"), 0.0) == 0.0
    granted.did(step("a").id, 0.0)
    assert granted.rests(step("a"), after) == rests and granted.executed == (step("a").id,)
    assert granted.rests(replace(step("a"), fingerprint="another"), after) == 0.0
