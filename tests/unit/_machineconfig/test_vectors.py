# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every row of real Talos code as a test of its own. What counts as equal stands in tests/vectors_config.py."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.vectors_config import CHECKS, HERE, Row, main, rows

ROWS = [(name, row) for name in CHECKS for row in rows(HERE, name)]
#: What this product once said otherwise than Talos.
KEPT = [(name, row) for name in CHECKS for row in rows(HERE / "kept", name)]


@pytest.mark.parametrize(("name", "row"), [pytest.param(name, row, id=f"{name.removesuffix('.jsonl')}:{row['id']}") for name, row in (*ROWS, *KEPT)])
def test_row(name: str, row: Row) -> None:
    assert CHECKS[name](row, HERE) == ""


def test_all_rows_are_there() -> None:
    counts = {name: sum(1 for of, dummy in ROWS if of == name) for name in CHECKS}
    assert counts == {"generate.jsonl": 140, "patch.jsonl": 99, "validate.jsonl": 105, "scalars.jsonl": 312}


def test_runner_fails_on_a_wrong_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = next(rows(HERE, "scalars.jsonl"))
    (tmp_path / "scalars.jsonl").write_text(json.dumps({**first, "output": "something else"}) + "\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    assert "FAIL scalars.jsonl" in capsys.readouterr().out


def test_a_text_that_talos_writes_and_cannot_read_is_written_readably() -> None:
    before, after = 'version: ""\nmachine:\n    type: ""\n    token: ""\n    certSANs: []\n    env:\n        K: ', "\ncluster: null\n"
    row = {"machinery": "v1.13.9", "config": 'machine:\n  env:\n    K: "\\n a"\n', "output": f"{before}|-\n\n             a{after}"}
    assert CHECKS["scalars.jsonl"](row, HERE) == ""
    assert "wrote" in CHECKS["scalars.jsonl"]({**row, "output": f"{before}|4-\n\n             b{after}"}, HERE)


@pytest.mark.parametrize(("length", "same"), [(6, True), (7, False)])
def test_a_secret_that_talos_quotes_is_masked_and_the_rest_has_to_be_equal(length: int, same: bool) -> None:
    text = "machine:\n  type: worker\n  network:\n    interfaces: [{interface: wg0, wireguard: {privateKey: c2VjcmV0}}]\n"
    other = ("cluster instructions are required", "issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)")
    said = "".join(f"\t* {line}\n" for line in (*other, f'private key is invalid: wrong key "c2VjcmV0" length: {length}'))
    row = {"machinery": "v1.13.9", "mode": "cloud", "config": text, "result": f"ERR: 1 error occurred:\n\t* v1alpha1.Config: 3 errors occurred:\n{said}"}
    found = CHECKS["validate.jsonl"](row, HERE)
    assert "c2VjcmV0" not in found.split("expected")[0] and bool(found) is not same, found


def test_the_length_of_a_wrong_cluster_secret_is_told() -> None:
    text = "apiVersion: v1alpha1\nkind: DiscoveryIdentityConfig\nclusterID: x\nclusterSecret: data\n"
    said = "ERR: 1 error occurred:\n\t* DiscoveryIdentityConfig: invalid clusterSecret: expected 32 bytes, got 3: data\n"
    assert CHECKS["validate.jsonl"]({"machinery": "v1.14.0-rc.1", "mode": "metal", "config": text, "result": said}, HERE) == ""


def test_a_row_that_breaks_is_a_failing_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scalars.jsonl").write_text('{"id": "half"}\n', encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("FAIL scalars.jsonl half: the row has no 'machinery'")


def test_no_row_at_all_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == main([str(tmp_path / "absent")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "there is no row in any of generate.jsonl" in said[0] and "no such folder" in said[1]


@pytest.mark.parametrize(("line", "words"), [
    ('{"id": "x", ', "line 1: it is not valid JSON"), ("[1, 2]", "line 1: it is not a JSON object"), ("null", "line 1: it is not a JSON object"),
    ('{"id": "p", "machinery": "v1.99.0", "config": "debug: true\\n", "patches": []}', "p: refused: InvalidInput: Talos 1.99 is not supported"),
    ('{"id": "p", "machinery": 5, "config": 5}', "p: AttributeError"),
])
def test_a_line_that_is_no_row_fails_and_the_others_are_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: str) -> None:
    good = json.dumps(next(rows(HERE, "patch.jsonl")))
    (tmp_path / "patch.jsonl").write_text(f"{line}\n\n{good}\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"FAIL patch.jsonl {words}") and said[1:] == ["patch.jsonl: 1 of 2 rows pass"]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "generate.jsonl").mkdir()
    assert main([str(tmp_path)]) == 2
    (tmp_path / "generate.jsonl").rmdir()
    (tmp_path / "generate.jsonl").write_bytes(b"\xff\xfe{}")
    assert main([str(tmp_path)]) == 2
    assert all("generate.jsonl: it cannot be read: " in line for line in capsys.readouterr().err.splitlines())


def test_kinds_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    row = next(rows(HERE, "generate.jsonl"))
    (tmp_path / "generate.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 0


def test_a_masked_secret_of_several_lines_and_a_mask_that_hides_nothing() -> None:
    text = "apiVersion: v1alpha1\nkind: DiscoveryIdentityConfig\nclusterID: x\nclusterSecret: \"l1\\nl2\"\n"
    said = "ERR: 1 error occurred:\n\t* DiscoveryIdentityConfig: invalid clusterSecret: expected 32 bytes, got 3: {}\n"
    row = {"machinery": "v1.14.0-rc.1", "mode": "metal", "config": text}
    assert CHECKS["validate.jsonl"]({**row, "result": said.format("l1\nl2")}, HERE) == ""
    assert CHECKS["validate.jsonl"]({**row, "result": said.format("l1") + "\t* another error\n"}, HERE)
    assert CHECKS["validate.jsonl"]({**row, "result": said.format("")}, HERE)
