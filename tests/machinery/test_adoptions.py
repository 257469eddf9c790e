# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random configurations that Talos accepts: each is adopted so that a render compares equal, or the plan names the paths (design section 15).

`RANDOM_ADOPTIONS` sets how many in all (1,000 without it), `RANDOM_SEED` the first seed. The share of adopted ones is told and guarded.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.machinery.adoptions import NAMED, Tried, judge, many, random_configuration
from tests.parts.oracle import MACHINERY, Oracle

EACH = max(1, int(os.environ.get("RANDOM_ADOPTIONS", "1000")) // len(MACHINERY) + 1)
FIRST = int(os.environ.get("RANDOM_SEED", "0"))
#: Of a hundred configurations so many are adopted; the rest holds key material, or what no render can have.
GOAL = 95


@pytest.mark.parametrize("contract", sorted(MACHINERY))
def test_random_configurations_are_adopted_or_named(contract: str, record_property: Callable[[str, object], None]) -> None:
    found: list[Tried] = []
    with Oracle(contract) as oracle:
        seed = FIRST
        while len(found) < EACH:
            found += many(range(seed, seed + 20), contract, oracle)
            seed += 20
    adopted = sum(one.adopted for one in found)
    counted = Counter(rule for one in found for rule in one.rules)
    record_property("told", f"adoption of {contract}, seeds {FIRST} to {seed - 1}: {adopted} of {len(found)} adopted "
                            f"({100 * adopted / len(found):.1f} %), blocked by {dict(counted)}")
    assert set(counted) <= NAMED
    assert 100 * adopted >= GOAL * len(found)


def test_a_kind_that_nobody_knows_is_not_taken_for_adopted() -> None:
    """The judge itself."""
    with Oracle("1.13") as oracle:
        role, text = next(made for seed in range(100) if (made := random_configuration(seed, oracle)) is not None)
    assert judge(role, text, "1.13").adopted or judge(role, text, "1.13").rules
    found = judge(role, f"{text}---\napiVersion: v1alpha1\nkind: NobodyKnowsConfig\n", "1.13")
    assert not found.adopted and found.rules == ("15/not-modelled",)
