# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a reader has seen a lease unchanged: by its own clock that never jumps, never by times that another machine wrote (design section 13)."""

from __future__ import annotations

from collections.abc import Callable

from .._model.errors import TalosError
from .._model.moments import moment
from .._model.ports import LeaseView


class LeaseWatch:
    """What one reader saw of leases. `monotonic` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seen: dict[str, tuple[str, float]] = {}

    def unchanged_for(self, view: LeaseView) -> float:
        """Seconds since this reader first saw the lease as it is; looking at it starts the watch."""
        version, since = self._seen.get(view.name, ("", 0.0))
        now = self._monotonic()
        if version != view.version:
            self._seen[view.name] = (view.version, now)
            return 0.0
        return now - since

    def is_over(self, view: LeaseView, *, stopped: bool, renewal: float) -> bool:
        """Whether a lease has run out. Of a holder that has `stopped`, one renewal interval without a change is enough."""
        unchanged = self.unchanged_for(view)
        return unchanged >= view.duration or stopped and unchanged >= renewal


def lock_held(view: LeaseView) -> TalosError:
    """The refusal that says who holds it, since when and for what."""
    return TalosError("LockHeld", f"The lock {view.name} is held by {view.holder} since {moment(view.acquired_at)}, for {view.purpose or 'no purpose given'}.",
                      f"Wait until it is released; a holder that is gone loses it {view.duration:.0f} s after its last renewal.")


def lock_lost(name: str) -> TalosError:
    """The refusal of a renewal that comes too late."""
    return TalosError("LockHeld", f"The lock {name} was lost: it is no longer held by this run.", "Run again.")
