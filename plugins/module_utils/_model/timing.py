# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Timeouts and intervals, in seconds; every one is an option with this default (design section 19)."""

from __future__ import annotations

from dataclasses import dataclass


#: No run waits longer than a week for anything.
LONGEST = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Timing:
    """The table of design section 19."""

    call: float = 20.0
    apply: float = 60.0
    maintenance_probe: float = 5.0
    inspection: float = 20.0
    follow: float = 15.0
    follow_slow: float = 600.0
    follow_stuck: float = 1800.0
    reread: float = 120.0
    unreachable_grace: float = 60.0
    discovery: float = 300.0
    discovery_after_reset: float = 15.0
    discovery_after_reset_for: float = 1800.0
    connect: float = 2.0
    settle: float = 5.0
    lock_duration: float = 60.0
    lock_renewal: float = 20.0
    lock_wait: float = 300.0
    drain: float = 300.0
    leave_and_reset: float = 480.0
    snapshot: float = 3600.0
    wait_for_maintenance: float = 1200.0
    sending_fresh: float = 90.0

    @property
    def sending_counts(self) -> float:
        """For how long a `sending` is taken to be under way: never shorter than a send may last, with half as much, at most 30 s, to spare."""
        return max(self.sending_fresh, self.apply + min(30.0, self.apply / 2))


def contradictions(timing: Timing) -> list[tuple[str, str]]:
    """What cannot be so at once: a sentence of what is wrong and one of what to do, for each."""
    found = []
    if timing.lock_renewal > timing.lock_duration / 2:
        found.append((f"timing.lock_renewal is {timing.lock_renewal:g}, more than half of timing.lock_duration, which is {timing.lock_duration:g}: "
                      "one missed renewal would lose the lock.", "Renew more often, or hold the lock for longer."))
    if timing.sending_fresh < timing.apply:
        found.append((f"timing.sending_fresh is {timing.sending_fresh:g}, less than timing.apply, which is {timing.apply:g}: "
                      "another run would send while this one is still sending.", "Give sending_fresh at least the value of apply."))
    if timing.follow_stuck < timing.follow_slow:
        found.append((f"timing.follow_stuck is {timing.follow_stuck:g}, less than timing.follow_slow, which is {timing.follow_slow:g}.",
                      "Give follow_stuck at least the value of follow_slow."))
    return found
