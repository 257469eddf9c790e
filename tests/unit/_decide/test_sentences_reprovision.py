# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No sentence of section 12 of the design is without a row or a test, and no row without a sentence."""

from __future__ import annotations

import re

from tests.unit._decide.proofs import below_heading, is_there, without
from tests.unit._decide.rows_provisioning import PROVISIONING
from tests.unit._decide.rows_reprovision import REPROVISION
from tests.unit._decide.sentences_reprovision import REST, SENTENCES
from tests.unit._decide.sentences_sending import Sentence

ROWS = {row.id for row in REPROVISION} | {row.id for row in PROVISIONING if row.id.startswith("12/")}


def rest_of(sentences: tuple[Sentence, ...]) -> str:
    """What of the section stands in no quote."""
    return re.sub(r"[\s-]+", " ", without(below_heading(12), [*(entry.quote for entry in sentences), *REST])).strip()


def test_every_quote_stands_in_the_section() -> None:
    assert [quote for quote in (*(entry.quote for entry in SENTENCES), *REST) if quote not in below_heading(12)] == []


def test_no_sentence_is_left_out() -> None:
    assert rest_of(SENTENCES) == ""


def test_a_sentence_that_is_taken_out_is_missed() -> None:
    assert [entry.quote for entry in SENTENCES if not rest_of(tuple(other for other in SENTENCES if other is not entry))] == []


def test_everything_that_is_named_is_there() -> None:
    assert [(entry.quote[:40], shown) for entry in SENTENCES for shown in entry.shown if not is_there(shown, ROWS)] == []
    assert all(entry.shown for entry in SENTENCES)


def test_every_row_stands_for_a_sentence() -> None:
    assert ROWS - {shown for entry in SENTENCES for shown in entry.shown} == set()
