# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of reasons and the closed list in the code are the same list."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import ALL_REASONS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reasons.md"


def rows() -> list[tuple[str, str, str]]:
    return re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_reason_has_one_row_and_no_row_is_left_over() -> None:
    names = [name for name, meaning, action in rows()]
    assert sorted(names) == sorted(ALL_REASONS)


def test_meaning_and_action_are_sentences() -> None:
    for name, meaning, action in rows():
        assert meaning.endswith("."), name
        assert action.endswith("."), name
