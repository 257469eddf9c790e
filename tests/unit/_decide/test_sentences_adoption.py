# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No sentence of section 15 of the design is without a row or a test, and no row without a sentence; but for container networks."""

from __future__ import annotations

from pathlib import Path

from tests.unit._decide.proofs import is_there
from tests.unit._decide.rows_adoption import ADOPTION
from tests.unit._decide.sentences_adoption import ELSEWHERE, REST, SENTENCES
from tests.unit._decide.sentences_sending import Sentence

ROOT = Path(__file__).parents[3]
ROWS = {row.id for row in ADOPTION}


def section() -> str:
    """The text of the section up to the paragraph on container networks, its lines joined."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    return " ".join(text.split("\n## 15. ", 1)[1].split("\n## ", 1)[0].split("\n", 1)[1].split(REST, 1)[0].split())


def rest_of(sentences: tuple[Sentence, ...]) -> str:
    """What of the section stands in no quote."""
    text = section()
    for quote in sorted((entry.quote for entry in sentences), key=len, reverse=True):
        text = text.replace(quote, " ")
    return text.strip()


def test_no_sentence_is_left_out() -> None:
    assert rest_of(SENTENCES) == ""


def test_a_sentence_that_is_taken_out_is_missed() -> None:
    assert [entry.quote for entry in SENTENCES if not rest_of(tuple(other for other in SENTENCES if other is not entry))] == []


def test_everything_that_is_named_is_there() -> None:
    assert [(entry.quote[:40], shown) for entry in SENTENCES for shown in entry.shown if not is_there(shown, ROWS)] == []


def test_every_row_stands_for_a_sentence() -> None:
    assert ROWS - {shown for entry in SENTENCES for shown in entry.shown} == set(ELSEWHERE)
