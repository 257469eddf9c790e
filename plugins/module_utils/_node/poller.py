# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of many sockets were connected or refused: epoll, or where there is none (not Linux) the best selector.

The bare epoll object costs half of what a selector around it does, and a /16 asks it 200,000 things.
"""

from __future__ import annotations

import functools
import select
import selectors
from typing import Protocol


class Poller(Protocol):
    """`fileno` becomes readable when `ready` has something to tell. `forgets`: a socket that is closed need not be
    unregistered."""

    forgets: bool

    def fileno(self) -> int: ...

    def register(self, descriptor: int) -> None: ...

    def unregister(self, descriptor: int) -> None: ...

    def ready(self) -> list[int]: ...

    def close(self) -> None: ...


class _Epoll:
    forgets = True

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.fileno = self._epoll.fileno
        self.register = functools.partial(self._epoll.register, eventmask=select.EPOLLOUT)
        self.unregister = self._epoll.unregister
        self.close = self._epoll.close

    def ready(self) -> list[int]:
        return [descriptor for descriptor, dummy in self._epoll.poll(0)]


class _Selector:
    forgets = False

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.close = self._selector.close

    def fileno(self) -> int:
        number: int = getattr(self._selector, "fileno")()
        return number

    def register(self, descriptor: int) -> None:
        self._selector.register(descriptor, selectors.EVENT_WRITE)

    def unregister(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)

    def ready(self) -> list[int]:
        return [key.fd for key, dummy in self._selector.select(0)]


def new_poller() -> Poller:
    """The poller of this platform."""
    return _Epoll() if hasattr(select, "epoll") else _Selector()
