# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The readable form of a saved plan: who has only this can say what will happen, and no text of a node draws, links or calls anybody."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible import saved_plan
from ansible_collections.ichor.talos.plugins.module_utils._ansible.plan_markdown import MARK, escaped
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan, Refusal, Step, Target, Wait, Warn


@dataclass(frozen=True)
class Send(Step):
    action: ClassVar[str] = "ApplyConfig"


@dataclass(frozen=True)
class Reboot(Step):
    action: ClassVar[str] = "Reboot"
    disruption: ClassVar[str] = "reboot"


@dataclass(frozen=True)
class Wipe(Step):
    action: ClassVar[str] = "ResetMachine"
    disruption: ClassVar[str] = "wipe"
    reversible: ClassVar[bool] = False


PLAN = Plan(
    steps=(Send(Target(name="prod-1", uid="1", address="10.0.0.1:50000"), "2 paths differ from the records"),
           Reboot(Target(name="prod-2", uid="2"), "its kernel arguments changed", waits_for=(Wait("prod-1 being Ready"),)),
           Wipe(Target(name="prod-3", uid="3"), "anna asked for it")),
    refusals=(Refusal(Target(name="prod-4"), "NodeUnreachable", "It does not answer.", "Look at its power."),),
    warnings=(Warn(Target(name="prod-5"), "It has no host name."),), waits=(Wait("a second look", 30.0, "prod-6"),))


def written(folder: Path, *plans: tuple[str, Plan]) -> str:
    for module, plan in plans:
        saved_plan.add(str(folder / "plan.json"), saved_plan.of_plan(module, plan), "run-1")
    return (folder / "plan.md").read_text(encoding="utf-8")


def test_a_plan_reads_well(tmp_path: Path) -> None:
    text = written(tmp_path, ("talos_controller", PLAN))
    identity = json.loads((tmp_path / "plan.json").read_text())["id"][:12]
    assert text.splitlines()[:6] == [
        MARK, f"# Plan `{identity}`: 3 steps", "",
        "**Of these, 1 wipes a machine, 1 restarts a machine, 1 cannot be undone.** 1 thing is refused and left out. Nothing else is done.", "",
        "1. **apply config**: `prod-1` at `10.0.0.1:50000`"]
    assert "2. **reboot**: `prod-2` (**restarts the machine**)" in text and "waits for prod\\-1 being Ready" in text
    assert "3. **reset machine**: `prod-3` (**wipes the machine, cannot be undone**)" in text
    assert "## Refused, and left out\n\n- prod\\-4: It does not answer. Look at its power. \\[NodeUnreachable\\]" in text
    assert "- prod\\-5: It has no host name." in text and "- prod\\-6: a second look \\(up to 30 s\\)" in text
    assert f"| talos\\_controller | `{PLAN.id[:12]}` | 3 |" in text and "`plan.json`" in text


def test_plans_without_steps_say_so(tmp_path: Path) -> None:
    text = written(tmp_path, ("talos_discover", Plan()), ("talos_controller", Plan()))
    assert ": nothing to do" in text and "| talos\\_discover |" in text
    assert json.loads((tmp_path / "plan.json").read_text())["changes"] is False


def test_steps_are_counted_on_over_tasks_and_those_that_are_done_are_told(tmp_path: Path) -> None:
    written(tmp_path, ("talos_discover", Plan(steps=PLAN.steps[:1])), ("talos_controller", Plan(steps=PLAN.steps[1:])))
    saved_plan.record_done(str(tmp_path / "plan.json"), "talos_discover", [PLAN.steps[0].id])
    text = (tmp_path / "plan.md").read_text()
    assert [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)] == [1, 2, 3]
    assert "1. **apply config**: `prod-1` at `10.0.0.1:50000` (**done**)" in text and text.count("**done**") == 1


def test_the_id_of_a_file_is_that_of_its_plans(tmp_path: Path) -> None:
    ids = []
    for name, plans in (("a", [("x", PLAN), ("y", Plan())]), ("b", [("x", PLAN), ("y", Plan())]), ("c", [("y", PLAN), ("x", Plan())])):
        (tmp_path / name).mkdir()
        written(tmp_path / name, *plans)
        ids.append(json.loads((tmp_path / name / "plan.json").read_text())["id"])
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize("text", [
    "<img src=x onerror=alert(1)>", "[click](http://evil.example)", "**bold** _it_ `code`", "| a | b |", "# head", "line\n# head", "@everyone", "~~gone~~",
    "![x](y)", "<!-- x -->", "www.evil.example", "\u202ereversed", "1. one", "&lt;", "a\\*b",
])
def test_nothing_in_a_text_means_something(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown and "\u202e" not in shown
    assert not re.search(r"(?<!\\)[*_`\[\]<>|#~!]", shown.replace("&#8203;", "")) and "@everyone" not in shown
    assert "http://" not in shown and "www.evil" not in shown


def test_a_name_with_fences_stays_code(tmp_path: Path) -> None:
    text = written(tmp_path, ("x", Plan(steps=(Send(Target(name="a`b", uid="1"), ""),))))
    assert "**: `` a`b ``" in text


def test_something_else_in_its_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("my notes")
    with pytest.raises(TalosError, match="something else"):
        saved_plan.refuse_target(str(tmp_path / "plan.json"))
    assert (tmp_path / "plan.md").read_text() == "my notes"


def test_a_run_that_is_only_given_the_json_makes_no_second_file(tmp_path: Path) -> None:
    written(tmp_path, ("x", PLAN))
    (tmp_path / "plan.md").unlink()
    saved_plan.record_done(str(tmp_path / "plan.json"), "x", [PLAN.steps[0].id])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json"]
