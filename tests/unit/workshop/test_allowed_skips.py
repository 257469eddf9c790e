# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A skipped test fails the run unless the committed list has it for this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest

ROOT = Path(__file__).resolve().parents[3]
LIST = "# a comment\nnot-root tests/laws/test_a.py::test_owner*\nno-go tests/lab/test_client.py::*\n"


@pytest.mark.parametrize(
    ("node", "holding", "answer"),
    [
        ("tests/laws/test_a.py::test_owner[x]", "not-root", True),
        ("tests/laws/test_a.py::test_owner[x]", "no-go", False),
        ("tests/laws/test_a.py::test_other", "not-root", False),
        ("tests/lab/test_client.py::test_version", "no-go", True),
    ],
)
def test_a_line_counts_where_its_condition_holds(monkeypatch: pytest.MonkeyPatch, node: str, holding: str, answer: bool) -> None:
    monkeypatch.setattr(conftest, "CONDITIONS", {name: lambda name=name: name == holding for name in conftest.CONDITIONS})
    assert conftest.allowed(node, LIST) is answer


MODULE_SKIPPED = "import pytest\npytest.skip('why', allow_module_level=True)\n"
TEST_SKIPPED = "import pytest\ndef test_x():\n    pytest.skip('why')\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert False\n"


@pytest.mark.parametrize(
    ("body", "workers"),
    [(MODULE_SKIPPED, []), (MODULE_SKIPPED, ["-n", "1"]), (TEST_SKIPPED, ["-n", "1"]), (EXPECTED_FAILURE, [])],
    ids=["module", "module, with a worker", "test, with a worker", "expected failure"],
)
def test_a_run_with_an_unlisted_skip_fails(tmp_path: Path, body: str, workers: list[str]) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "allowed-skips.txt").write_text("", encoding="utf-8")
    (tmp_path / "test_skipping.py").write_text(body, encoding="utf-8")
    (tmp_path / "test_good.py").write_text("def test_good():\n    pass\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ))
    assert done.returncode == conftest.UNLISTED_SKIP, done.stdout + done.stderr
    assert "SKIPPED AND NOT IN" in done.stdout
