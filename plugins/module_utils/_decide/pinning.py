# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing the pin of a machine that was approved while it was silent (design section 9, step 6)."""

from __future__ import annotations

from .._model.moments import moment
from .conditions import Status


def with_pin(status: Status, fingerprint: str, now: float) -> Status:
    """The status with this certificate as the pin, and when it was read."""
    return {**status, "maintenanceFingerprint": fingerprint, "maintenanceFingerprintAt": moment(now)}
