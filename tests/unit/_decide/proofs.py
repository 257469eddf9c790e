# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of the design, and what each names as its proof: the id of a row, or a test in its file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[3]


def section(number: int) -> str:
    """The text of one section of the design, from the end of its number on."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    return text.split(f"\n## {number}. ", 1)[1].split("\n## ", 1)[0]


def below_heading(number: int) -> str:
    """The text of one section without its heading."""
    return section(number).split("\n", 1)[1]


def without(text: str, quotes: Iterable[str]) -> str:
    """What of a text stands in no quote; longer quotes go first."""
    for quote in sorted(quotes, key=len, reverse=True):
        text = text.replace(quote, " ")
    return text


def is_there(shown: str, rows: Collection[str]) -> bool:
    """Whether the row, or the test in its file, exists."""
    path, separator, name = shown.partition("::")
    if not path.startswith("tests/"):
        return shown in rows
    file = ROOT / path
    return file.is_file() and (not separator or f"def {name}(" in file.read_text(encoding="utf-8"))
