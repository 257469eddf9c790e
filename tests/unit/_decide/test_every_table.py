# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No table of gates or rows is left out: each has a test that takes its rows away one at a time."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
DECIDE = HERE.parents[2] / "plugins" / "module_utils" / "_decide"

_NAME = re.compile(r"([A-Z]+_)?(GATES|ROWS|RULES|TABLE|COMMON|REJECTION|FIRST|APPROVAL|DELETION)\Z")
_TAKEN_AWAY = "test_gates_taken_away.py::test_without_this_gate_a_row_fails"
_NOTICED = "test_a_gate_that_is_taken_away_is_noticed"

#: How a test of these looks that leaves one row out after the other.
_LEAVES_OUT = ("is not gate", "gate.id != ", "row.id != ", "row[0] != ", "[:index]")
#: Each table, and the test that takes its rows away. A table that is part of another one is taken apart with that.
TABLES = {
    "approval_gates.COMMON": _TAKEN_AWAY, "approval_gates.REJECTION": _TAKEN_AWAY, "approval_gates.FIRST": _TAKEN_AWAY, "approval_gates.APPROVAL": _TAKEN_AWAY,
    "bootstrap.GATES": f"test_bootstrap.py::{_NOTICED}",
    "bundle.GATES": _TAKEN_AWAY,
    "cluster_edit.GATES": _TAKEN_AWAY, "cluster_edit.DELETION": _TAKEN_AWAY,
    "cluster_telling.ROWS": "test_cluster_telling.py::test_without_its_row_a_cluster_is_told_wrongly",
    "convergence.GATES": f"test_convergence_gates.py::{_NOTICED}",
    "credentials.GATES": _TAKEN_AWAY,
    "discovery_table.TABLE": "test_gates_taken_away.py::test_with_another_cell_of_the_table_a_row_fails",
    "disk_gates.GATES": _TAKEN_AWAY,
    "drain.ROWS": "test_drain.py::test_a_row_that_is_taken_away_is_noticed",
    "following.ROWS": "test_following.py::test_a_row_that_is_taken_away_is_noticed",
    "lock.LOCK_GATES": f"test_lock.py::{_NOTICED}",
    "machine_edit.GATES": _TAKEN_AWAY,
    "member_death.GATES": "test_removal_worlds.py",
    "member_gates.MEMBER_GATES": f"test_provisioning_gates.py::{_NOTICED}",
    "patch_edit.GATES": _TAKEN_AWAY, "patch_edit.DELETION": _TAKEN_AWAY,
    "provisioning.GATES": f"test_provisioning_gates.py::{_NOTICED}",
    "record_deletion.GATES": _TAKEN_AWAY,
    "rejoin.GATES": f"test_rejoin_gates.py::{_NOTICED}",
    "removal_gates.GATES": "test_removal_gates.py",
    "reprovision.GATES": f"test_reprovision_gates.py::{_NOTICED}",
    "reprovision_members.ETCD_GATES": f"test_reprovision_gates.py::{_NOTICED}",
    "store_copy.GATES": "test_store_copy.py::test_each_row_refuses_and_nobody_does_it_for_it",
    "telling.ROWS": "test_telling.py::test_without_its_row_a_machine_is_told_wrongly",
    "trust.GATES": _TAKEN_AWAY,
    "weak_identity.RULES": _TAKEN_AWAY,
}


def tables() -> set[str]:
    """Every table of the room, as file and name."""
    found = set()
    for path in DECIDE.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []
            found |= {f"{path.stem}.{target.id}" for target in targets if isinstance(target, ast.Name) and _NAME.match(target.id)}
    return found


def is_taken_apart(table: str) -> bool:
    """Whether a test beside this one names the table's file and leaves rows out."""
    texts = (path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py") if path != Path(__file__))
    return any(re.search(rf"\b{table.partition('.')[0]}\b", text) and any(mark in text for mark in _LEAVES_OUT) for text in texts)


def test_no_table_is_left_out() -> None:
    assert [table for table in sorted(tables() - set(TABLES)) if not is_taken_apart(table)] == []
    assert set(TABLES) - tables() == set()


def test_every_test_that_is_named_is_there_and_is_about_its_table() -> None:
    for table, shown in TABLES.items():
        name, dummy, test = shown.partition("::")
        text = (HERE / name).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text, shown
        assert table.partition(".")[0].removesuffix("_gates").removesuffix("_members") in text or table.startswith("member_gates"), (table, shown)
