# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The torture in a form that always ends: the same seed, a few rounds of the long kinds, thousands of the short ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.torture import decisions, inputs
from tests.torture.__main__ import shares, torture
from tests.torture.configurations import KINDS
from tests.torture.tally import Tally

ROUNDS = 3


def test_a_few_rounds_of_everything(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    counts = {kind: 60 for kind in KINDS}
    tally = torture(tmp_path, "bounded", lambda number: number < ROUNDS, counts)
    record_property("told", f"torture: {tally.lines()[0]}")
    assert not tally.broke, "\n".join(tally.broke)
    assert set(tally.tried) == {"worlds", "inputs", "kills", "lives under faults", *KINDS}
    assert counts.items() <= tally.tried.items()
    assert shares(600) == {"mutated configurations": 100_000, "configurations against Talos": 20_000, "adoptions": 50_000, "worlds of removals": 1_000_000}


def test_ten_thousand_mutated_answers() -> None:
    assert inputs.many(random.Random("bounded"), 10_000) == 10_000


def test_two_thousand_worlds_of_which_some_are_sent_to() -> None:
    chance = random.Random("bounded")
    assert decisions.many(chance, 2000) == 2000
    sends = sum(isinstance(decisions.decide(decisions.world(chance), decisions.case.NOW), decisions.Send) for unused in range(200))
    assert sends > 4, "worlds in which nothing is ever sent prove nothing"


def test_a_decision_that_breaks_a_law_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is no rubber stamp: with a decision that always sends it finds something in a few worlds."""
    good = decisions.decide(decisions.case.worker(), decisions.case.NOW)
    monkeypatch.setattr(decisions, "decide", lambda seen, now: good)
    with pytest.raises(AssertionError, match="would send although not"):
        decisions.many(random.Random(1), 100)


def test_what_breaks_is_told_with_its_seed() -> None:
    tally = Tally()

    def breaks(chance: random.Random) -> int:
        raise ValueError("something")

    tally.round("worlds", "a/1", breaks)
    assert tally.broke and "seed a/1" in tally.broke[0] and tally.lines()[0] == "1 worlds; 1 broke"
