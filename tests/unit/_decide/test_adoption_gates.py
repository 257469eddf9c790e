# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every refusal, warning and exception of adoption, and that each gate that is taken away is noticed (design section 15)."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide import adoption_gates
from tests.unit._decide import adoption_world as w
from tests.unit._decide.rows_adoption import ADOPTION, Row


@pytest.mark.parametrize("row", ADOPTION, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    found = w.adopt(row.seen(), **row.wish)
    told = {(one.rule, one.reason) for one in found.plan.refusals} | {(one.rule, "") for one in found.plan.warnings}
    assert told == row.says, [one.message for one in found.plan.refusals]
    assert bool(found.plan.steps) == row.steps
    assert all(one.message.endswith(".") and one.hint for one in found.plan.refusals)


@pytest.mark.parametrize("gate", adoption_gates.GATES, ids=lambda gate: gate[0])
def test_a_gate_that_is_taken_away_is_noticed(gate: adoption_gates.Row) -> None:
    rest = tuple(other for other in adoption_gates.GATES if other is not gate)
    cases = [w.case(row.seen(), **row.wish) for row in ADOPTION]
    assert any(adoption_gates.refusals(case) != adoption_gates.refusals(case, rest) for case in cases)
