# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan files: what was approved cannot be changed unseen, and nothing of anybody else's is written over."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible import saved_plan
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan, Step, Target

MODULE = "talos_maintenance_apply"


@dataclass(frozen=True)
class Send(Step):
    action: ClassVar[str] = "ApplyConfig"

    size: float = 1.5
    names: tuple[str, ...] = ("é", "b")


PLAN = Plan(steps=(Send(Target(name="one", uid="u1"), "it is new"), Send(Target(name="two", uid="u2"), "it is new")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    saved_plan.add(str(file), saved_plan.of_plan(MODULE, PLAN))
    return file


def reason(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(TalosError) as caught:
        call(*arguments)
    assert caught.value.message.endswith(".") and caught.value.hint.endswith(".")
    return caught.value.reason


def _describe(data: Any) -> None:
    data["plans"][0]["steps"][0]["description"]["why"] = "harmless"


def _rename(data: Any) -> None:
    data["plans"][0]["plan_id"] = "0" * 64


def _redirect(data: Any) -> None:
    data["plans"][0]["steps"][0]["canonical"]["target"]["uid"] = "u3"


def _forget(data: Any) -> None:
    data["plans"][0]["done"] = []


def _drop(data: Any) -> None:
    del data["plans"][0]["steps"][1]


def _add(data: Any) -> None:
    data["plans"].append(data["plans"][0])


CHANGES = [_describe, _rename, _redirect, _forget, _drop, _add]


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_file_that_somebody_changed_is_refused(path: Path, change: Callable[[Any], None]) -> None:
    saved_plan.record_done(str(path), MODULE, [PLAN.steps[0].id])
    assert saved_plan.read(str(path))[0].done == (PLAN.steps[0].id,)
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert reason(saved_plan.read, str(path)) == "PlanChanged"
    assert reason(saved_plan.refuse_target, str(path)) == "PlanChanged"


def _other_action(data: Any) -> None:
    data["plans"][0]["steps"][0]["description"]["action"] = "nothing"


@pytest.mark.parametrize("change", [_rename, _redirect, _drop, _other_action])
def test_ids_are_held_against_what_they_stand_for_also_under_a_right_digest(path: Path, change: Callable[[Any], None]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    data["digest"] = saved_plan._digest(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert reason(saved_plan.read, str(path)) == "PlanChanged"


def test_the_order_of_keys_and_white_space_are_nobodys_business(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(dict(reversed(data.items()))), encoding="utf-8")
    assert saved_plan.read(str(path))[0].plan_id == PLAN.id


@pytest.mark.parametrize("content", [
    b"", b"\xff\xfe\0", b"[" * 100_000, b'{"format": "ichor.talos/plan/v1", "plans": null}', b'{"format": "ichor.talos/plan/v1", "plans": {}}',
    b'{"format": "ichor.talos/plan/v1", "plans": [{"module": "x", "plan_id": "x", "steps": [{"id": 1, "description": 1, "canonical": []}]}]}', b"9" * 5000,
    b"-----BEGIN EC PRIVATE KEY-----\n", b"apiVersion: talos.ichor/v1alpha1\n"], ids=range(9))
def test_what_is_no_plan_file_is_neither_read_nor_written_over(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    for call in (lambda: saved_plan.read(str(file)), lambda: saved_plan.refuse_target(str(file)),
                 lambda: saved_plan.add(str(file), saved_plan.of_plan(MODULE, PLAN))):
        assert reason(call) == "InvalidInput"
    assert file.read_bytes() == content


def test_what_is_done_is_noted_behind_a_link(tmp_path: Path, path: Path) -> None:
    """Else a finished plan would run again under its other name."""
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "plan.json"
    link.symlink_to(path)
    saved_plan.record_done(str(link), MODULE, [step.id for step in PLAN.steps])
    assert link.is_symlink() and saved_plan.read(str(path))[0].finished
    assert [entry.name for entry in link.parent.iterdir()] == ["plan.json"]


def test_nor_is_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in (*(str(tmp_path / name) for name in ("pipe", "loop", "dangling", "", "none/plan.json")), "", " ", "/dev/null", "/dev/zero"):
        assert reason(saved_plan.refuse_target, path) == "InvalidInput"
    assert reason(saved_plan.read, str(tmp_path / "pipe")) == "InvalidInput"


def test_no_plan_is_saved_inside_a_store(tmp_path: Path, path: Path) -> None:
    for folder in ("ichor/machines", "unmarked/machines", "state"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ichor/.ichor-store").write_text("{}", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "ichor/machines")
    given = (str(tmp_path / "unmarked"), str(tmp_path / "state"), "")
    for name in ("ichor/plan.json", "ichor/machines/m1.yaml", "link/plan.json", "unmarked/plan.json", "unmarked/machines/../plan.json", "state/plan.json"):
        assert reason(saved_plan.refuse_target, str(tmp_path / name), given) == "InvalidInput"
    saved_plan.refuse_target(str(path), given)
    saved_plan.refuse_target(str(tmp_path / "new.json"), given)
