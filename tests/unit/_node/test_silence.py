# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which silence ends a stream: that of the node, and not that of whom its answers are written to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._node.silence import PARTS, Silence

SECONDS = 20.0


class Turns:
    """An event loop of which only the timers run, when the test says so."""

    def __init__(self) -> None:
        self.now, self.cut = 0.0, False
        self._due: tuple[float, Callable[[], None]] | None = None
        self.silence = Silence(cast(asyncio.AbstractEventLoop, self), SECONDS, self._end)

    def call_later(self, delay: float, call: Callable[[], None]) -> Any:
        self._due = self.now + delay, call
        return self

    def cancel(self) -> None:
        self._due = None

    def _end(self) -> None:
        self.cut = True

    def until(self, moment: float, stands_still: bool = False) -> None:
        """Time passes; a loop that stands still sees only the end of it."""
        self.now = moment if stands_still else self.now
        while self._due is not None and self._due[0] <= moment:
            (at, call), self._due = self._due, None
            self.now = max(self.now, at)
            call()
        self.now = moment


@pytest.mark.parametrize("since", [0.0, 3.0, 7 * SECONDS])
def test_a_node_that_says_nothing_is_given_up(since: float) -> None:
    turns = Turns()
    turns.until(since)
    turns.silence.wait()
    turns.until(since + SECONDS - 0.001)
    assert not turns.cut
    turns.until(since + SECONDS * (PARTS + 1) / PARTS)
    assert turns.cut


def test_who_takes_long_over_an_answer_ends_nothing() -> None:
    turns = Turns()
    for dummy in range(3):
        turns.silence.wait()
        turns.until(turns.now + SECONDS - 0.001)
        turns.silence.heard()
        turns.until(turns.now + 10 * SECONDS)
    assert not turns.cut


def test_a_loop_that_stood_still_gives_what_came_meanwhile_its_turn() -> None:
    turns = Turns()
    turns.silence.wait()
    turns.until(3 * SECONDS, stands_still=True)
    assert not turns.cut
    turns.silence.heard()


def test_after_the_end_nothing_is_cut() -> None:
    turns = Turns()
    turns.silence.wait()
    turns.silence.end()
    turns.until(10 * SECONDS)
    assert not turns.cut
