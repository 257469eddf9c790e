# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Timeouts and intervals, in seconds; every one is an option with this default (design section 19)."""

from __future__ import annotations

from dataclasses import dataclass


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
    wait_for_maintenance: float = 1200.0
    sending_fresh: float = 90.0
