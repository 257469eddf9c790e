# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded rows against the lab, by the runner that says what passes and what does not: all connections and timelines, and of the calls those in
maintenance mode. `make vectors` runs every row."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OWN = ROOT / "tests/vectors/protocol"


def run(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, "-m", "tests.lab.vectors", str(folder), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600,
                          check=False)
    return done.returncode, done.stdout.splitlines()


def rows(kind: str, talos: str, only: str) -> int:
    """How many rows of a kind were recorded of a version, with that in their id."""
    names = {"protocol": f"{talos}.jsonl", "tls": "tls.jsonl", "timelines": "timelines.jsonl"}
    found = (json.loads(line) for line in (OWN / names[kind]).read_text(encoding="utf-8").splitlines())
    return sum(row["talos"] == talos and only in (row.get("id") or row["scenario"]) for row in found)


@pytest.mark.parametrize("talos", ["v1.13.9", "v1.14.0-rc.1"])
@pytest.mark.parametrize(("kind", "only"), [("protocol", "maintenance/"), ("tls", ""), ("timelines", "")], ids=lambda value: value or "all")
def test_recorded_rows_pass_or_are_left_out_with_their_reason(
        kind: str, only: str, talos: str, record_property: Callable[[str, object], None]) -> None:
    code, lines = run(OWN, "--kind", kind, "--talos", talos, "--only", only)
    assert code == 0, lines
    (counts,) = (line for line in lines if line.startswith(f"{kind} {talos}: "))
    (left,) = (line for line in lines if line.startswith("left out: "))
    passed, omitted = int(counts.split(": ")[1].split()[0]), int(left.split(": ")[1])
    assert counts.endswith(", 0 failed") and passed > 20 and passed + omitted == rows(kind, talos, only)
    reasons = [line.strip() for line in lines if line.startswith("  ")]
    assert sum(int(line.split()[0]) for line in reasons) == omitted
    record_property("told", f"recorded rows, {counts}, {omitted} left out{f' ({only} only; make vectors runs all)' if only else ''}")
    for line in reasons:
        record_property("told", f"  left out: {line}")


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


def test_lines_that_are_no_rows_fail_with_a_line_each(tmp_path: Path) -> None:
    for name in ("v1.13.9.jsonl", "tls.jsonl", "timelines.jsonl"):
        (tmp_path / name).write_bytes(b'{"id": \n\n[1]\n{"id": "x"}\n\xff\n')
    code, lines = run(tmp_path)
    failed = [line for line in lines if line.startswith("FAIL row")]
    assert code == 1 and len(failed) == 12
    assert failed[0].startswith("FAIL row v1.13.9.jsonl:1: no recorded row: ")
