# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sentence of the design, with the rows that stand for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """A few words of the design, as they stand in that section."""

    section: int
    quote: str
    rows: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def sentence(section: int, quote: str, *rows: str, elsewhere: str = "") -> Sentence:
    return Sentence(section, quote, rows, (elsewhere,) if elsewhere else ())
