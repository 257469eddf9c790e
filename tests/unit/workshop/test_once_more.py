# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failed is tried once more, alone, and named when it passes then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workshop import once_more

UNSTEADY = """
from pathlib import Path

def test_x():
    mark = Path(__file__).with_name("mark")
    there = mark.exists()
    mark.touch()
    assert there
"""
BROKEN = "import pytest\n@pytest.mark.parametrize('n', range({}))\ndef test_y(n):\n    assert False\n"
GOOD = "def test_z():\n    pass\n"


def outcome(folder: Path, body: str) -> tuple[int, list[list[str]]]:
    """The status of a run of two workers on `body` and a good test, and what was run after it."""
    (folder / "test_body.py").write_text(body, encoding="utf-8")
    (folder / "test_good.py").write_text(GOOD, encoding="utf-8")
    cache, again = folder / "cache", []

    def run(*arguments: str) -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120, env=dict(os.environ)).returncode

    def repeat(failed: list[str]) -> int:
        again.append(failed)
        return run(*failed)

    once_more.forget(cache)
    return once_more.settled(run("-n", "2", "--dist", "loadfile", "."), cache, repeat), again


def test_what_passes_alone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(tmp_path, UNSTEADY) == (0, [["test_body.py::test_x"]])
    assert "UNSTEADY: test_body.py::test_x failed among the others" in capsys.readouterr().out


def test_what_fails_again_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(tmp_path, BROKEN.format(1)) == (1, [["test_body.py::test_y[0]"]])
    assert "UNSTEADY" not in capsys.readouterr().out


def test_many_are_not_tried_again(tmp_path: Path) -> None:
    assert outcome(tmp_path, BROKEN.format(once_more.MOST + 1)) == (1, [])


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    assert outcome(tmp_path, "import nothing_of_that_name\n")[0]


def test_what_an_earlier_run_left_is_forgotten(tmp_path: Path) -> None:
    assert outcome(tmp_path, BROKEN.format(1))[0] == 1
    assert outcome(tmp_path, GOOD) == (0, [])
