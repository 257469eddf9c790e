# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes each gate away, one at a time, and wants a row of the tables to fail without it."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import (
    approval, bundle, cluster_edit, credentials, discovery, discovery_table, discovery_targets, disk_gates, machine_edit, patch_edit, record_deletion, trust,
    weak_identity,
)
from tests.unit._decide.rows import Row
from tests.unit._decide.rows_approval import APPROVAL
from tests.unit._decide.rows_configuration import BUNDLES, CREDENTIALS, PATCHES
from tests.unit._decide.rows_discovery import DISCOVERY
from tests.unit._decide.rows_edits import EDITS
from tests.unit._decide.rows_records import RECORDS

#: Every table of gates: where it stands, its name, and the rows that have to notice.
TABLES: tuple[tuple[ModuleType, str, tuple[Row, ...]], ...] = (
    (approval, "COMMON", APPROVAL), (approval, "REJECTION", APPROVAL), (approval, "FIRST", APPROVAL), (approval, "APPROVAL", APPROVAL),
    (disk_gates, "GATES", APPROVAL), (machine_edit, "GATES", EDITS), (trust, "GATES", EDITS), (record_deletion, "GATES", EDITS),
    (cluster_edit, "GATES", RECORDS), (cluster_edit, "DELETION", RECORDS), (weak_identity, "RULES", DISCOVERY),
    (bundle, "GATES", BUNDLES), (patch_edit, "GATES", PATCHES), (patch_edit, "DELETION", PATCHES), (credentials, "GATES", CREDENTIALS),
)
GATES = [(module, name, index, rows) for module, name, rows in TABLES for index in range(len(getattr(module, name)))]


def a_row_fails(rows: tuple[Row, ...]) -> bool:
    """Whether any row fails, or runs into an error that the missing gate keeps away."""
    for row in rows:
        try:
            if row.faults():
                return True
        except Exception:  # a gate keeps later code from what it cannot bear
            return True
    return False


@pytest.mark.parametrize(("module", "name", "index", "rows"), GATES,
                         ids=[f"{module.__name__.rsplit('.', 1)[-1]}.{name}[{getattr(module, name)[index][0]}]" for module, name, index, dummy in GATES])
def test_without_this_gate_a_row_fails(module: ModuleType, name: str, index: int, rows: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    table = getattr(module, name)
    monkeypatch.setattr(module, name, table[:index] + table[index + 1:])
    assert a_row_fails(rows)


@pytest.mark.parametrize("index", range(len(discovery_table.TABLE)), ids=[row.rule for row in discovery_table.TABLE])
@pytest.mark.parametrize("flag", ["probed", "refresh", "moves"])
def test_with_another_cell_of_the_table_a_row_fails(index: int, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = discovery_table.TABLE[index]
    if cell.place == discovery_table.OTHER and flag in ("probed", "refresh") and not cell.moves:
        flag = "moves"  # refreshing and probing mean nothing where nothing is recorded
    if cell.place == discovery_table.OTHER and flag == "probed":
        flag = "moves"
    if cell.place == discovery_table.OWN and flag == "moves":
        flag = "refresh"
    changed = replace(cell, **{flag: not getattr(cell, flag)})
    table = discovery_table.TABLE[:index] + (changed,) + discovery_table.TABLE[index + 1:]

    def row_of(state: str, place: str) -> discovery_table.Row:
        return next(row for row in table if (row.state, row.place) == (state, place))

    monkeypatch.setattr(discovery, "row_of", row_of)
    monkeypatch.setattr(discovery_targets, "row_of", row_of)
    assert a_row_fails(DISCOVERY)
