# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Holding the lock of a cluster while something is done under it (design section 13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from .._model.errors import TalosError
from .._model.moments import moment
from .._model.ports import LeaseView, Leases, Ports
from .._model.timing import Timing

#: How often a lease that somebody else holds is looked at, and how often a person is told that it is waited for.
_LOOK, _TELL = 2.0, 30.0


class Held:
    """The lease as held by this run. `confirm` is the last thing before each disruptive send."""

    def __init__(self, leases: Leases, view: LeaseView) -> None:
        self._leases = leases
        self._view: LeaseView | None = view
        self._lost: TalosError | None = None

    def renew(self) -> None:
        """Renew now. Raises `LockHeld` where the lease was lost, then and ever after."""
        if self._lost is not None or self._view is None:
            raise self._lost or TalosError("LockHeld", "The lock of the cluster is held no longer.", "Run this again.")
        try:
            self._view = self._leases.renew(self._view)
        except TalosError as error:
            if error.reason in ("LockHeld", "NoLock"):
                self._lost = error
            raise

    def confirm(self) -> None:
        """Prove that the lease is still held. Any error means that nothing may be sent."""
        self.renew()

    async def keep(self, ports: Ports, every: float) -> None:
        """Renew for ever; a store that does not answer is asked again at the next turn, `confirm` decides."""
        while self._lost is None:
            await ports.clock.sleep(every)
            try:
                self.renew()
            except TalosError as error:
                ports.progress(f"the lock could not be renewed: {error.message}")

    def release(self) -> None:
        """Give it back; a lost one is nobody's business any more."""
        view, self._view = self._view, None
        if view is not None and self._lost is None:
            self._leases.release(view)


@asynccontextmanager
async def held(ports: Ports, cluster: str, purpose: str, timing: Timing) -> AsyncIterator[Held]:
    """The lock of a cluster, renewed while the body runs and released on every way out.

    Raises `NoLock` without a store (or where the store has none), `LockHeld` when it was not got within `lock_wait`.
    Release takes no await, so that a cancellation cannot come between.
    """
    if ports.store is None:
        raise TalosError("NoLock", "Without a store there is no lock, and this step needs the lock of its cluster.",
                         "Name a store and the cluster's record.")
    async with _turn(ports.holder, cluster):
        lease = Held(ports.store.leases, await _acquire(ports, ports.store.leases, cluster, purpose, timing))
        keeper = asyncio.ensure_future(lease.keep(ports, timing.lock_renewal))
        try:
            yield lease
        finally:
            keeper.cancel()
            try:
                lease.release()
            except TalosError as error:
                # What was done under it counts, and why it ended. The lease runs out by itself.
                ports.progress(f"the lock of {cluster} could not be given back ({error.message}); it ends by itself within {timing.lock_duration:g} s")


#: A lease is free for its own holder, so what one run does at once takes turns here.
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], asyncio.Lock]] = WeakKeyDictionary()


def _turn(holder: str, cluster: str) -> asyncio.Lock:
    return _TURNS.setdefault(asyncio.get_running_loop(), {}).setdefault((holder, cluster), asyncio.Lock())


def taken_here(ports: Ports, cluster: str) -> bool:
    """Whether another task of this very run has the lock, or waits for it."""
    return _turn(ports.holder, cluster).locked()


async def _acquire(ports: Ports, leases: Leases, cluster: str, purpose: str, timing: Timing) -> LeaseView:
    deadline = ports.clock.monotonic() + timing.lock_wait
    told = float("-inf")
    while True:
        try:
            return leases.acquire(cluster, ports.holder, purpose, timing.lock_duration)
        except TalosError as error:
            now = ports.clock.monotonic()
            if error.reason != "LockHeld" or now >= deadline:
                raise
            if now - told >= _TELL:
                told = now
                ports.progress(f"waiting for the lock of cluster {cluster}: {_who(leases, cluster) or error.message}")
            await ports.clock.sleep(min(_LOOK, max(deadline - now, 0.01)))


def _who(leases: Leases, cluster: str) -> str:
    """Who holds it, since when and for what, or '' where that cannot be read."""
    try:
        view = leases.read(cluster)
    except TalosError:
        return ""
    return f"held by {view.holder} since {moment(view.acquired_at)} for {view.purpose}" if view and view.holder else ""
