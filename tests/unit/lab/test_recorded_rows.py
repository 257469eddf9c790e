# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runner of recorded rows says what passes and what does not; `make vectors` runs every row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OWN = ROOT / "tests/vectors/protocol"


def run(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, "-m", "tests.lab.vectors", str(folder), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600,
                          check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("talos", ["v1.13.9", "v1.14.0-rc.1"])
def test_rows_of_a_maintenance_node_pass(talos: str) -> None:
    code, lines = run(OWN, "--kind", "protocol", "--talos", talos, "--only", "maintenance/none/cosi/get")
    assert code == 0, lines
    counts = [line for line in lines if line.startswith(f"protocol {talos}: ")]
    assert len(counts) == 1
    assert counts[0].endswith(", 0 failed")
    assert int(counts[0].split(": ")[1].split()[0]) > 20


def test_a_row_with_another_code_fails_with_one_line(tmp_path: Path) -> None:
    rows = (json.loads(line) for line in (OWN / "v1.13.9.jsonl").read_text().splitlines())
    row = next(row for row in rows if row["state"] == "maintenance" and row["credentials"] == "none" and row["code"] == "PERMISSION_DENIED")
    (tmp_path / "v1.13.9.jsonl").write_text(json.dumps({**row, "code": "NOT_FOUND"}) + "\n")
    code, lines = run(tmp_path, "--kind", "protocol")
    assert code == 1
    failed = [line for line in lines if line.startswith("FAIL")]
    assert len(failed) == 1
    assert row["id"] in failed[0]
    assert "PERMISSION_DENIED" in failed[0]
    assert "NOT_FOUND" in failed[0]
