# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No sentence of section 4 of the design is without a row or a test, and no row without a sentence."""

from __future__ import annotations

import re

from ansible_collections.ichor.talos.plugins.module_utils._decide.store_copy import GATES
from ansible_collections.ichor.talos.plugins.module_utils._model.access_policies import POLICIES

from tests.unit._decide.proofs import below_heading, is_there, without
from tests.unit._decide.rows_edits import EDITS
from tests.unit._decide.rows_records import RECORDS
from tests.unit._decide.sentences_stores import OTHERS, SENTENCES, Sentence

ROWS = ({row.id for row in (*RECORDS, *EDITS) if row.id.startswith("4/")} | {name for name, dummy in GATES}
        | {rule.id for policy in POLICIES for rule in policy.rules})


def rest_of(sentences: tuple[Sentence, ...]) -> str:
    """What of the section stands in no quote."""
    return re.sub(r"\s+", " ", without(below_heading(4), (entry.quote for entry in sentences))).strip()


def test_every_quote_stands_in_the_section_and_no_sentence_is_left_out() -> None:
    assert [entry.quote for entry in SENTENCES if entry.quote not in below_heading(4)] == []
    assert rest_of(SENTENCES) == ""


def test_a_sentence_that_is_taken_out_is_missed() -> None:
    assert [entry.quote for entry in SENTENCES if not rest_of(tuple(other for other in SENTENCES if other is not entry))] == []


def test_everything_that_is_named_is_there() -> None:
    assert [(entry.quote[:40], shown) for entry in SENTENCES for shown in entry.shown if not is_there(shown, ROWS)] == []
    assert all(entry.shown for entry in SENTENCES)


def test_every_row_stands_for_a_sentence() -> None:
    assert ROWS - {shown for entry in SENTENCES for shown in entry.shown} - set(OTHERS) == set()
