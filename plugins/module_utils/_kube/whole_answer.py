# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A limit for a whole exchange over TLS. urllib3 has one for each read alone, so a server that sends a byte now and then would never be given up."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _Limit(threading.local):
    """When what this thread reads has to be there, by the monotonic clock; None without a limit."""

    until: float | None = None
    monotonic: Callable[[], float] = time.monotonic


_LIMIT = _Limit()


@contextmanager
def within(seconds: float, monotonic: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """What is read in the block on sockets of this kind fails with TimeoutError once that many seconds are over. (To write is one call with one limit.)"""
    before = _LIMIT.until, _LIMIT.monotonic
    _LIMIT.until, _LIMIT.monotonic = monotonic() + seconds, monotonic
    try:
        yield
    finally:
        _LIMIT.until, _LIMIT.monotonic = before


class LimitedSocket(ssl.SSLSocket):
    """A TLS socket that minds the limit of its thread."""

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        self._mind()
        return super().recv_into(buffer, nbytes, flags)

    def _mind(self) -> None:
        if _LIMIT.until is None:
            return
        left = _LIMIT.until - _LIMIT.monotonic()
        if left <= 0:
            raise TimeoutError("the whole of it takes too long")
        own = self.gettimeout()
        if own is None or own > left:
            self.settimeout(left)
