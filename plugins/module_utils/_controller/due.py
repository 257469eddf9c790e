# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When each subject is looked at next (design section 18)."""

from __future__ import annotations

import heapq


class Due:
    """Names with the time at which they are due, in seconds of one clock. A later `put` replaces an earlier one."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._current: dict[str, tuple[float, int]] = {}
        self._count = 0

    def put(self, name: str, at: float) -> None:
        """The name is due then, and at no other time."""
        self._count += 1
        self._current[name] = (at, self._count)
        heapq.heappush(self._heap, (at, self._count, name))

    def sooner(self, name: str, at: float) -> None:
        """The name is due then, where it is queued for later."""
        known = self._current.get(name)
        if known is not None and at < known[0]:
            self.put(name, at)

    def drop(self, name: str) -> None:
        """The name is not due any more."""
        self._current.pop(name, None)

    def next(self) -> float | None:
        """When the first name is due; None for an empty queue."""
        while self._heap and self._current.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> list[str]:
        """The names that are due, first those that are due longest; they leave the queue."""
        found: list[str] = []
        while (first := self.next()) is not None and first <= now:
            name = heapq.heappop(self._heap)[2]
            del self._current[name]
            found.append(name)
        return found

    def __len__(self) -> int:
        return len(self._current)
