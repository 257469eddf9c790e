# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module runs from the built archive, and ansible-doc shows it completely."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.artefact.conftest import Installed

MODULES = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "plugins/modules").glob("*.py"))

# What each module is asked for, and the reason in its answer. No node is there and no store either: the answer has to be the
# module's own, not Ansible's.
CALLS: dict[str, tuple[Mapping[str, object], str]] = {}

RESULT = {"changed", "reason", "msg", "plan", "plan_id", "machines", "transitions", "events", "blocked", "waiting_for", "requeue_after"}


def test_every_module_has_a_call() -> None:
    assert sorted(CALLS) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_runs_from_the_archive(installed: Installed, name: str, tmp_path: Path) -> None:
    options, reason = CALLS[name]
    outcome, result = installed.module(name, {"store_path": str(tmp_path / "ichor"), **options})
    assert "module_stdout" not in result and "exception" not in result, result
    assert result["reason"] == reason, result
    assert not RESULT - set(result)
    assert outcome == ("FAILED" if reason else "SUCCESS")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MODULES)
def test_the_documentation_is_complete(documentation: Callable[[str], dict[str, Any]], name: str) -> None:
    answer = documentation(name)
    doc = answer["doc"]
    assert doc["short_description"] and doc["description"] and doc["author"]
    assert {"check_mode", "diff_mode", "action_group"} <= set(doc["attributes"])
    for path, option in _options(doc["options"]):
        assert option["description"] and option["type"], path
    assert {"changed", "plan", "plan_id", "reason", "msg"} - {"changed"} <= set(answer["return"])
    examples = yaml.safe_load(answer["examples"])
    assert examples
    for task in examples:
        assert task["name"] and any(key.startswith("ichor.talos.") for key in task), task


def _options(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, option in options.items():
        yield before + name, option
        yield from _options(option.get("suboptions") or {}, f"{before}{name}.")


def test_the_archive_holds_what_runs_and_no_tests(installed: Installed) -> None:
    with tarfile.open(installed.archive) as archive:
        names = set(archive.getnames())
    assert {f"plugins/modules/{name}.py" for name in MODULES} <= names
    assert {"README.md", "COPYING", "LICENSES/GPL-3.0-or-later.txt", "LICENSES/MPL-2.0.txt", "CHANGELOG.md", "meta/runtime.yml"} <= names
    assert not [name for name in names if name.partition("/")[0] in ("tests", ".build", ".ci", ".git")]
