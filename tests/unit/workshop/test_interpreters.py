# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interpreters a run uses: shims that run nothing are passed over, and under CI a missing one is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.workshop import interpreters
from tests.workshop.interpreters import Interpreter, MissingInterpreter


def _machine(monkeypatch: pytest.MonkeyPatch, *versions: str) -> None:
    found = {version: Interpreter(version, Path(f"/opt/{version}/python3")) for version in versions}
    monkeypatch.setattr(interpreters, "_found", lambda: found)
    monkeypatch.delenv("PYTHON", raising=False)


@pytest.mark.parametrize(
    ("ci", "versions", "used"),
    [
        ("", ("3.11",), ["3.11"]),
        ("", ("3.11", "3.12", "3.13"), ["3.13"]),
        ("false", ("3.12",), ["3.12"]),
        ("true", ("3.11", "3.12"), ["3.11", "3.12"]),
        ("true", ("3.11", "3.12", "3.13", "3.14"), ["3.11", "3.13"]),
        ("1", ("3.14", "3.11"), ["3.11", "3.14"]),
    ],
)
def test_the_interpreters_of_a_run(monkeypatch: pytest.MonkeyPatch, ci: str, versions: tuple[str, ...], used: list[str]) -> None:
    _machine(monkeypatch, *versions)
    monkeypatch.setenv("CI", ci)
    assert [interpreter.version for interpreter in interpreters.chosen()] == used


@pytest.mark.parametrize(
    ("ci", "versions", "missing"),
    [("true", ("3.11",), "ansible-core 2.21"), ("true", ("3.12", "3.13"), "ansible-core 2.19"), ("", (), "this collection")],
)
def test_a_missing_interpreter_is_named(monkeypatch: pytest.MonkeyPatch, ci: str, versions: tuple[str, ...], missing: str) -> None:
    _machine(monkeypatch, *versions)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(MissingInterpreter, match=missing):
        interpreters.chosen()


def test_a_name_that_runs_nothing_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\necho 'python3.13: command not found' >&2\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setattr(interpreters, "_candidates", lambda: iter([str(shim), str(tmp_path / "missing"), sys.executable]))
    found = interpreters._found()
    assert list(found) == [f"{sys.version_info[0]}.{sys.version_info[1]}"]
    assert found.popitem()[1].path.exists()


def test_the_python_that_the_user_names_is_used_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTHON", sys.executable)
    assert [interpreter.version for interpreter in interpreters.chosen()] == [f"{sys.version_info[0]}.{sys.version_info[1]}"]
    monkeypatch.setenv("PYTHON", str(tmp_path / "no-python"))
    with pytest.raises(MissingInterpreter, match="no-python"):
        interpreters.chosen()
