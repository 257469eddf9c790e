# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Twenty thousand random worlds of removals against a judge written apart; `make torture` tries a million."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import member_death, removal
from tests.torture import removals


def test_twenty_thousand_worlds(record_property: Callable[[str, object], None]) -> None:
    tally: Counter[str] = Counter()
    assert removals.many(random.Random("removals"), 20_000, tally) == 20_000
    told = ", ".join(f"{count} {what}" for what, count in sorted(tally.items()))
    record_property("told", f"removals: 20000 worlds without a violation, {told}")
    assert min(tally[what] for what in ("removed as dead", "removed by id", "left etcd")) > 200, f"worlds in which nothing is removed prove nothing: {told}"


@pytest.mark.parametrize("rule", ["14/nameless", "14/death-unproven", "14/node-ready", "14/two-members", "14/quorum"])
def test_the_judge_misses_each_gate_that_keeps_a_law(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is no rubber stamp: without any of the gates it finds something."""
    monkeypatch.setattr(member_death, "GATES", tuple(gate for gate in member_death.GATES if gate.id != rule))
    with pytest.raises(AssertionError):
        removals.many(random.Random("without"), 20_000)


def test_a_decision_that_never_removes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "decide_removal", lambda seen: removal.Verdict(removal.Plan()))
    with pytest.raises(AssertionError, match="safe to remove and not removed"):
        removals.many(random.Random("never"), 2000)
