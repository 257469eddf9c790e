# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writes of one process: what a stop does to one that is under way (design section 18, "Stopping")."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

#: How long the answer of a write is waited for after its task was cancelled, in seconds; the node may have it already.
PATIENCE = 1.5


class Writes:
    """Shared by all sessions. `accepted`: whether a node answered OK to any write."""

    def __init__(self) -> None:
        self.accepted = False
        self._over = False

    def end(self) -> None:
        """No write begins from now on; those under way go on."""
        self._over = True

    async def whole(self, sending: Coroutine[object, object, T]) -> T:
        """Send. A task that is cancelled meanwhile ends only when the node has answered, or after `PATIENCE`: what was done is known then."""
        if self._over:
            sending.close()
            raise asyncio.CancelledError
        task = asyncio.ensure_future(sending)
        try:
            answer = await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=PATIENCE)
            self.accepted |= task.done() and not task.cancelled() and task.exception() is None
            task.cancel()
            raise
        self.accepted = True
        return answer
