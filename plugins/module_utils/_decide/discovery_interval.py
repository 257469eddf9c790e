# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the registered addresses of a cluster are probed again (design sections 6 and 19)."""

from __future__ import annotations

from .._model.moments import seconds_of
from .._model.records import Record
from .._model.timing import Timing
from .lock import disruption_of


def reset_under_way(cluster: Record | None) -> float | None:
    """When this product reset a machine of the cluster, in seconds since the epoch, while that has not shown its end; else None."""
    found = disruption_of(cluster)
    return seconds_of(found.time) if found is not None and found.step == "reset" else None


def discovery_interval(reset: float | None, timing: Timing, now: float) -> float:
    """Seconds until the next pass: soon for a while after a reset by this product, since the machine comes back then."""
    if reset is None or now - reset > timing.discovery_after_reset_for:
        return timing.discovery
    return min(timing.discovery, timing.discovery_after_reset)
