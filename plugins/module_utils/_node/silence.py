# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a stream on which nothing comes any more (design law 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: In how many parts a silence is counted.
PARTS = 4


class Silence:
    """Calls `cut` once nothing came for `seconds` while it was waited for: what an answer is used for takes its own time. It counts in
    parts, so that a loop that stood still for long has only missed one of them. `end` it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, cut: Callable[[], object]) -> None:
        self._loop, self._part, self._cut = loop, seconds / PARTS, cut
        self._waits = False
        self._missed = 0
        self._timer = loop.call_later(self._part, self._turn)

    def wait(self) -> None:
        """Something is waited for from now on."""
        self._waits = True

    def heard(self) -> None:
        """Something came."""
        self._waits, self._missed = False, 0

    def end(self) -> None:
        self._timer.cancel()

    def _turn(self) -> None:
        self._missed += self._waits
        if self._missed > PARTS:
            self._cut()
        else:
            self._timer = self._loop.call_later(self._part, self._turn)
