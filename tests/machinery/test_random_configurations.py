# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random inputs for generation, merging and validation: this product says what Talos's own machinery says.

`RANDOM_INPUTS` sets how many in all (2,000 without it), `RANDOM_SEED` the first seed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.machinery.random_rows import VERSIONS, generate_row, known, patch_row, trouble, validate_row
from tests.parts.oracle import MACHINERY, Oracle
from tests.vectors_config import Row

EACH = max(1, int(os.environ.get("RANDOM_INPUTS", "2000")) // 9)
FIRST = int(os.environ.get("RANDOM_SEED", "0"))


@pytest.mark.parametrize("make", [generate_row, patch_row, validate_row])
@pytest.mark.parametrize("contract", sorted(MACHINERY))
def test_random_inputs_are_judged_as_talos_does(
    contract: str, make: Callable[[int, Oracle], tuple[str, Row, str]], record_property: Callable[[str, object], None],
) -> None:
    wrong: list[str] = []
    counted: Counter[str] = Counter()
    with Oracle(contract) as oracle:
        for seed in range(FIRST, FIRST + EACH):
            name, row, said = make(seed, oracle)
            found = trouble(name, row)
            reason = known(contract, said + found) if found else ""
            counted[reason or ("equal" if not found else "wrong")] += 1
            if found and not reason:
                wrong.append(f"{make.__name__} of {contract}, seed {seed}: {found[:300]} (Talos: {' '.join(said.split())[:300]})")
    record_property("told", f"{make.__name__} of {contract}, seeds {FIRST} to {FIRST + EACH - 1}: {dict(counted)}")
    assert wrong == []
    assert counted["equal"] > EACH / 3


def test_a_difference_of_versions_has_a_reason() -> None:
    assert all(entry.reason and entry.contract in MACHINERY for entry in VERSIONS)
    assert known("1.13", "not registered") == "" and known("1.14", "\"X\" not registered")


def test_another_answer_is_seen() -> None:
    with Oracle("1.13") as oracle:
        name, row, dummy = next(made for seed in range(100) if not (made := generate_row(seed, oracle))[1]["error"])
        assert trouble(name, row) == ""
        assert trouble(name, {**row, "output": row["output"].replace("debug: false", "debug: true")})
