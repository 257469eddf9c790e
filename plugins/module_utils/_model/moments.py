# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Points in time as records spell them: RFC 3339, UTC, whole seconds, `Z`."""

from __future__ import annotations

from datetime import datetime, timezone


def moment(seconds: float) -> str:
    """`2026-01-31T12:00:00Z` from UTC seconds since the epoch."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float | None:
    """UTC seconds since the epoch, or None where the text is no point in time."""
    try:
        parsed = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    return parsed.timestamp() if parsed.tzinfo is not None else parsed.replace(tzinfo=timezone.utc).timestamp()
