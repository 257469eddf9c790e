# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sections 3, 6, 7 and 8 of the design as table tests, and that no sentence of them is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit._decide.rows import Row
from tests.unit._decide.proofs import section
from tests.unit._decide.rows_approval import APPROVAL
from tests.unit._decide.rows_configuration import CONFIGURATION
from tests.unit._decide.rows_discovery import DISCOVERY
from tests.unit._decide.rows_edits import EDITS
from tests.unit._decide.rows_records import RECORDS
from tests.unit._decide.sentence import Sentence
from tests.unit._decide.sentences_configuration import ELSEWHERE
from tests.unit._decide.sentences import NO_RULE, SENTENCES, WORDS

ROWS = (*RECORDS, *DISCOVERY, *APPROVAL, *EDITS, *CONFIGURATION)
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    assert row.faults() == []


def test_every_row_has_an_id_of_its_own() -> None:
    ids = [row.id for row in ROWS]
    assert sorted(ids) == sorted(set(ids))


def test_every_sentence_stands_in_its_section() -> None:
    missing = [f"{entry.section}: {entry.quote}" for entry in SENTENCES if entry.quote not in section(entry.section)]
    missing += [f"{number}: {quote}" for number, quote, dummy in NO_RULE if quote not in section(number)]
    assert missing == []


def uncovered(sentences: tuple[Sentence, ...], rows: tuple[Row, ...]) -> list[str]:
    """Sentences without a row or a test that is there."""
    known = {row.id for row in rows}
    return [
        entry.quote
        for entry in sentences
        if not (set(entry.rows) & known or entry.elsewhere) or set(entry.rows) - known or not all((ROOT / path).is_file() for path in entry.elsewhere)
    ]


def test_every_sentence_has_a_row() -> None:
    assert uncovered(SENTENCES, ROWS) == []


def test_a_sentence_without_a_row_is_seen() -> None:
    assert uncovered((Sentence(6, "invented"),), ROWS) == ["invented"]
    gone = tuple(row for row in ROWS if row.id != "6/twin-of-a-pending")
    assert any("twin" in quote for quote in uncovered(SENTENCES, gone))


def rest_of(number: int, sentences: tuple[Sentence, ...]) -> list[str]:
    """The clauses of a section that no sentence quotes and that speak as a refusal, a warning or an exception does."""
    text = section(number)
    for quote in sorted(
        [entry.quote for entry in sentences if entry.section == number] + [quote for of, quote, dummy in NO_RULE if of == number], key=len, reverse=True
    ):
        text = text.replace(quote, " QUOTED ")
    clauses = re.split(r"[.;|:]\s|\n\n", text)
    return [clause.strip() for clause in clauses if re.search(rf"\b({'|'.join(WORDS)})\b", clause, re.IGNORECASE)]


@pytest.mark.parametrize("number", [3, 6, 7, 8])
def test_no_refusal_warning_or_exception_of_the_section_is_left_out(number: int) -> None:
    assert rest_of(number, SENTENCES) == []


def test_a_sentence_that_is_taken_out_of_the_list_is_missed() -> None:
    missed = [
        entry.quote
        for entry in SENTENCES
        if "refused" in entry.quote and entry.section == 7 and not rest_of(7, tuple(other for other in SENTENCES if other is not entry))
    ]
    assert missed == []


#: Rows of the two sections that stand for section 20, "Run twice".
TWICE = {"7/approve-twice", "7/approve-twice-named", "7/reject-twice"}


def test_every_row_of_the_sections_is_named_by_a_sentence() -> None:
    named = {row for entry in SENTENCES for row in entry.rows}
    assert {row.id for row in ROWS if row.id.split("/")[0] in ("6", "7")} - named == TWICE


def test_every_row_of_section_8_is_named_by_a_sentence() -> None:
    named = {row for entry in SENTENCES for row in entry.rows}
    assert {row.id for row in ROWS if row.id.startswith("8/") and not row.id.startswith(ELSEWHERE)} - named == set()
