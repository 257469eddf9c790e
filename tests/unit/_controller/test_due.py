# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The queue: each name once, at its own time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._controller.due import Due


def test_a_name_is_due_once_at_its_last_time() -> None:
    due = Due()
    due.put("a", 5.0)
    due.put("b", 3.0)
    due.put("a", 10.0)
    assert due.next() == 3.0 and due.take(6.0) == ["b"] and due.take(9.9) == [] and len(due) == 1
    assert due.take(10.0) == ["a"] and due.next() is None and len(due) == 0


def test_sooner_never_makes_it_later_and_adds_nobody() -> None:
    due = Due()
    due.put("a", 5.0)
    due.sooner("a", 7.0)
    due.sooner("b", 1.0)
    assert due.next() == 5.0
    due.sooner("a", 2.0)
    assert due.take(2.0) == ["a"]
    due.put("a", 1.0)
    due.drop("a")
    due.drop("never there")
    assert due.take(9.0) == []


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 50)), max_size=60))
def test_it_gives_what_a_plain_dictionary_gives(entries: list[tuple[str, int]]) -> None:
    due, plain = Due(), {}
    for name, at in entries:
        due.put(name, at)
        plain[name] = at
    taken = []
    for now in range(51):
        taken += [(name, now) for name in due.take(now)]
    assert sorted(taken) == sorted(plain.items())
