# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long files of tests come first, and each file stays together and in its order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import conftest

ROOT = Path(__file__).resolve().parents[3]
FILES = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]


@dataclass
class Item:
    nodeid: str


@pytest.mark.parametrize("name", conftest.LONG)
def test_each_name_is_the_beginning_of_a_file(name: str) -> None:
    assert [file for file in FILES if file.startswith(name)]


def test_long_files_come_first_and_stay_whole() -> None:
    names = ["tests/unit/test_a.py::test_2", "tests/unit/test_a.py::test_1", "tests/scenarios/test_scans.py::test_b", "tests/scenarios/test_scans.py::test_a",
             "tests/crash/test_kills.py::test_x[b]", "tests/crash/test_kills.py::test_x[a]"]
    items = [Item(name) for name in names]
    conftest.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [item.nodeid for item in items] == [*names[4:], *names[2:4], *names[:2]]
