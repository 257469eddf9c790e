# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for a disk or a network in a thread that nobody has to wait for: a run that is told to stop ends while it hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The name of such a thread.
WORK = "ichor-work"


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` gives or raises."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(value: T | None, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(value)  # type: ignore[arg-type]

    def work() -> None:
        value, error = None, None
        try:
            value = call()
        except BaseException as caught:  # raised where it is waited for
            error = caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, value, error)

    threading.Thread(target=work, name=WORK, daemon=True).start()
    return await ended
