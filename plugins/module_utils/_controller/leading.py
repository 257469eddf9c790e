# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of several runs with one store only one works, and the others wait for it to end (design section 18).

It spares the nodes and the store the looks of all; what makes several runs safe are the locks of the clusters (design section 13), which
the one that leads takes for each disruptive step like everybody else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

from .._model.errors import TalosError
from .._model.moments import moment
from .._model.outcome import Outcome
from .._model.ports import LeaseView, Ports
from .._model.records import leader_lock
from .._operations.lease import Held
from .._operations.record_reads import need_store
from .fenced_store import FencedStore
from .request import Request

#: Seconds between two tries to lead, and between two lines that say who does.
_TRY, _TELL = 5.0, 50.0

Work = Callable[[Ports], Awaitable[Outcome]]


async def led(request: Request, ports: Ports, work: Work) -> Outcome:
    """The work, once this run leads, for as long as it does. Raises `LockHeld` where the lead was lost, `StoreUnreachable` where it could not be
    renewed in time."""
    deadline = ports.clock.monotonic() + request.max_runtime
    try:
        view = await _acquired(request, ports, deadline)
    except asyncio.CancelledError:
        _uncancel()
        return _idle("interrupted", "Stopped before it led.", interrupted=True)
    if view is None:
        return _idle("time", "Another run led all the time.")
    lead = _Lead(Held(need_store(ports).leases, view), request, ports)
    try:
        return await _while_held(replace(ports, store=FencedStore(need_store(ports), lead.still)), lead, work)
    finally:
        lead.lease.release()


class _Lead:
    """The lead of this run, and when it was last known to be its own."""

    def __init__(self, lease: Held, request: Request, ports: Ports) -> None:
        self.lease, self._timing, self._ports = lease, request.timing, ports
        self._renewed = ports.clock.monotonic()

    @property
    def _is_over(self) -> bool:
        return self._ports.clock.monotonic() - self._renewed >= self._timing.lock_duration

    def still(self) -> None:
        """Raises TalosError `LockHeld` where another run may lead by now: this one was frozen, or could not renew."""
        if self._is_over:
            raise TalosError("LockHeld", "The lead of this run was not renewed in time, so another one may have it.", "Nothing is written; run this again.")

    async def keep(self) -> TalosError:
        """Renew until that fails for good, and say how."""
        while True:
            await self._ports.clock.sleep(min(self._timing.lock_renewal, self._timing.lock_duration / 3))
            asked = self._ports.clock.monotonic()
            try:
                self.lease.renew()
                self._renewed = asked  # whoever stands by may have seen it well before the answer was here
            except TalosError as error:
                if error.reason == "LockHeld" or self._is_over:
                    return error
                self._ports.progress(f"the lead could not be renewed: {error.message}")


async def _acquired(request: Request, ports: Ports, deadline: float) -> LeaseView | None:
    leases, told = need_store(ports).leases, float("-inf")
    while True:
        try:
            return leases.acquire(leader_lock(request.leader), ports.holder, "reconciling", request.timing.lock_duration)
        except TalosError as error:
            now = ports.clock.monotonic()
            if error.reason not in ("LockHeld", "StoreUnreachable"):
                raise
            if now - told >= _TELL:
                told = now
                ports.progress(f"standing by: {error.message}")
        if now >= deadline:
            return None
        await ports.clock.sleep(_TRY)


async def _while_held(ports: Ports, lead: _Lead, work: Work) -> Outcome:
    ports.progress(f"leading as {ports.holder} since {moment(ports.clock.now())}")
    working = asyncio.ensure_future(work(ports))
    keeping = asyncio.ensure_future(lead.keep())
    try:
        await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        _uncancel()
    lost = keeping.result() if keeping.done() else None
    keeping.cancel()
    if not working.done():
        working.cancel()
    outcome = await working
    if lost is not None:
        raise lost
    return outcome


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _idle(ended: str, message: str, interrupted: bool = False) -> Outcome:
    return Outcome(message=message, interrupted=interrupted, extra={"ended": ended, "settled": False, "later_plans": [], "broken": []})


def showing_life(ports: Ports, path: str) -> Ports:
    """Ports whose lines, of which one comes each minute while the run is well, also touch a file that holds the id of this process."""
    def progress(line: str) -> None:
        touch(path)
        ports.progress(line)

    touch(path)
    return replace(ports, progress=progress)


def touch(path: str) -> None:
    """Raises TalosError where the file cannot be written: a run that seems dead would be ended by whoever watches it."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(f"{path}.new", "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise TalosError("InvalidInput", f"The file {path} cannot be written: {error.strerror or error}.", "Give alive_file a path that can be.") from None
