# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a sentence of the design names as its proof: the id of a row, or a test in its file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).parents[3]


def is_there(shown: str, rows: Collection[str]) -> bool:
    """Whether the row, or the test in its file, exists."""
    path, separator, name = shown.partition("::")
    if not path.startswith("tests/"):
        return shown in rows
    file = ROOT / path
    return file.is_file() and (not separator or f"def {name}(" in file.read_text(encoding="utf-8"))
