# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's clock: waits can be shorter than on hardware, time stamps stay those of the wall.

Everything a node waits for (an install, a reboot, the promotion of a learner) is given in lab seconds and slept through
`Clock.sleep`, which divides by the speed. Time stamps and certificate validity use the wall clock, since clients compare
them with theirs; a node adds its own offset, so that one node's clock can be wrong.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timezone


class Clock:
    """Lab time. `speed` 10 makes every wait ten times shorter."""

    def __init__(self, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError("speed must be greater than zero")
        self.speed = speed

    def now(self) -> float:
        """Seconds since the epoch, by the wall."""
        return time.time()

    def real(self, seconds: float) -> float:
        """Wall seconds that a wait of `seconds` lab seconds takes."""
        return seconds / self.speed

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(self.real(seconds))


def utc(seconds: float) -> datetime:
    """An aware datetime of seconds since the epoch."""
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
