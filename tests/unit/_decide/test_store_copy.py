# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each row of the move of a store refuses alone, and a move that may go on does (design section 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._decide import store_copy
from ansible_collections.ichor.talos.plugins.module_utils._decide.store_copy import GATES, Seen, Side, copied, decide_store_copy
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import LeaseView
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Broken, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.store_place import StorePlace

from tests.unit._store.store_world import APPROVAL, machine

SENT = replace(machine(1, **APPROVAL), status={"recordUID": "u", "configStoredAt": "2026-09-21T14:13:20Z"}, uid="u")
SOURCE = Side("directory /a", StorePlace("a"), (SENT,))
TARGET = Side("namespace n of https://k", StorePlace("b"))
GOOD = Seen(SOURCE, TARGET)
MOVED = StorePlace("a", moved_to="namespace n of https://k", moved_to_id="b")
FILLED = StorePlace("b", filled_from="directory /a", filled_from_id="a")


def at(place, side=SOURCE):
    return replace(side, place=place)


#: Row: what makes it hold, with everything else well.
ROWS = {
    "4/copy-same": replace(GOOD, target=at(StorePlace("a"), TARGET)),
    "4/copy-moved-elsewhere": replace(GOOD, source=at(StorePlace("a", moved_to="directory /c", moved_to_id="c"))),
    "4/copy-source-unfinished": replace(GOOD, source=at(StorePlace("a", filled_from="directory /c", filled_from_id="c"))),
    "4/copy-target-foreign": replace(GOOD, target=at(StorePlace("b", filled_from="directory /c", filled_from_id="c"), TARGET)),
    "4/copy-target-in-use": replace(GOOD, target=replace(TARGET, records=(machine(2),))),
    "4/copy-no-lock": replace(GOOD, unlockable="Another folder locks the store."),
    "4/copy-lease-held": replace(GOOD, leases=(LeaseView("prod", "eve", "a reboot", 0.0, 0.0, 60.0, "1"),)),
    "4/copy-broken": replace(GOOD, source=replace(SOURCE, broken=(Broken(MACHINE, "m2", "/a/machines/m2.yaml", 3, "it is no mapping"),))),
    "4/copy-status-lost": replace(GOOD, source=replace(SOURCE, records=(replace(SENT, status={}),))),
    "4/copy-bundle-differs": replace(GOOD, unequal=("prod",)),
}


def rules(seen):
    return [refusal.rule for refusal in decide_store_copy(seen).refusals]


@pytest.mark.parametrize("rule", [name for name, dummy in GATES])
def test_each_row_refuses_and_nobody_does_it_for_it(rule, monkeypatch):
    plan = decide_store_copy(ROWS[rule])
    assert rules(ROWS[rule]) == [rule] and not plan.steps
    assert plan.refusals[0].message.endswith(".") and plan.refusals[0].hint.endswith(".")
    monkeypatch.setattr(store_copy, "GATES", tuple(row for row in GATES if row[0] != rule))
    assert rules(ROWS[rule]) == []


@pytest.mark.parametrize("seen", [
    replace(GOOD, source=replace(SOURCE, records=(replace(SENT, status={}, status_set_aside=True),))),
    replace(GOOD, source=replace(SOURCE, vanished=("m9",))),
])
def test_whatever_was_lost_is_not_forgotten(seen):
    assert rules(seen) == ["4/copy-status-lost"]


def test_a_good_move_is_one_step():
    plan = decide_store_copy(GOOD)
    assert [(step.action, str(step.target)) for step in plan.steps] == [("MoveStore", TARGET.description)]
    assert "1 record of directory /a" in plan.steps[0].why and not plan.warnings
    assert [warning.rule for warning in decide_store_copy(replace(GOOD, bundles=("prod",), clear=True)).warnings] == ["4/copy-bundle-clear"]


@pytest.mark.parametrize("source, target", [(SOURCE.place, FILLED), (MOVED, FILLED)])
def test_what_was_begun_goes_on_whatever_holds_a_lock(source, target):
    seen = replace(GOOD, source=at(source), target=replace(at(target, TARGET), records=(machine(5),)))
    assert rules(seen) == [] and len(decide_store_copy(seen).steps) == 1
    later = replace(seen, leases=ROWS["4/copy-lease-held"].leases, unlockable="x")
    assert bool(rules(later)) is source.live


def test_what_is_done_is_done():
    plan = decide_store_copy(replace(GOOD, source=at(MOVED), target=replace(TARGET, records=(machine(5),))))
    assert plan == store_copy.Plan()


def test_the_way_back_fills_what_was_left():
    back = Seen(Side("namespace n of https://k", StorePlace("b"), (SENT,)), Side("directory /a", MOVED, (machine(7),)))
    assert rules(back) == [] and len(decide_store_copy(back).steps) == 1


def test_who_copies_vouches_for_the_approval():
    assert copied(SENT, "system:admin").spec["approvedVia"] == "system:admin" and copied(SENT, "").spec["approvedVia"] == "ada"
    assert copied(machine(1), "x") == machine(1) and isinstance(copied(SENT, "x"), Record)
