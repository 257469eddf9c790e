# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No sentence of sections 10 and 11 of the design is without a row or a test, and no row without a sentence."""

from __future__ import annotations

import re

import pytest
from tests.unit._decide.proofs import is_there, section, without
from tests.unit._decide.rows_convergence import CONVERGENCE
from tests.unit._decide.sentences_converged import OTHERS, SENTENCES, Sentence

ROWS = {row.id for row in CONVERGENCE}


def rest_of(number: int, sentences: tuple[Sentence, ...]) -> str:
    """What of the section stands in no quote."""
    quotes = [entry.quote for entry in sentences if entry.section == number]
    return re.sub(r"\s+", " ", without(section(number), quotes).split("\n", 1)[1]).strip()


def test_every_quote_stands_in_its_section() -> None:
    assert [entry.quote for entry in SENTENCES if entry.quote not in section(entry.section)] == []


@pytest.mark.parametrize("number", [10, 11])
def test_no_sentence_is_left_out(number: int) -> None:
    assert rest_of(number, SENTENCES) == ""


def test_a_sentence_that_is_taken_out_is_missed() -> None:
    assert [entry.quote for entry in SENTENCES if not rest_of(entry.section, tuple(other for other in SENTENCES if other is not entry))] == []


def test_everything_that_is_named_is_there() -> None:
    assert [(entry.quote[:40], shown) for entry in SENTENCES for shown in entry.shown if not is_there(shown, ROWS)] == []
    assert all(entry.shown for entry in SENTENCES)


def test_every_row_stands_for_a_sentence() -> None:
    assert ROWS - {shown for entry in SENTENCES for shown in entry.shown} - set(OTHERS) == set()
