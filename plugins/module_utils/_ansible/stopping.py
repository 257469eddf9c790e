# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stops a module within seconds, leases released (design section 18, "Stopping")."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

#: What is promised is five seconds; the rest is for the process to end.
GRACE_SECONDS = 4.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _leave() -> None:
    os._exit(143)


class Stop:
    """Cancels the one task of the module when asked to, and ends the process when that does not help in time."""

    def __init__(self, leave: Callable[[], None] = _leave, grace: float = GRACE_SECONDS) -> None:
        self.why = ""
        self._leave = leave
        self._grace = grace
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._timer: threading.Timer | None = None

    def on_signals(self) -> None:
        """Take SIGTERM, SIGINT and SIGHUP as requests to stop."""
        for number in SIGNALS:
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.request(signal.Signals(number).name)

    def request(self, why: str) -> None:
        """Stop; may be called from any thread and more than once."""
        if self.why:
            return
        self.why = why
        self._timer = threading.Timer(self._grace, self._leave)
        self._timer.daemon = True
        self._timer.start()
        if self._loop is not None and self._task is not None:
            try:
                self._loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:  # the loop has just been closed, so the work is over
                pass

    def attach(self) -> None:
        """Called inside the task that does the work; a request that came earlier takes effect at its first await."""
        self._loop = asyncio.get_running_loop()
        for number in SIGNALS:
            # The loop is woken whichever thread the kernel gives the signal to; grpc has threads of its own.
            self._loop.add_signal_handler(number, self.request, signal.Signals(number).name)
        self._task = asyncio.current_task()
        if self.why and self._task is not None:
            self._task.cancel()

    def done(self) -> None:
        """The result is about to be printed: nothing ends the process any more."""
        if self._timer is not None:
            self._timer.cancel()
