# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Schedules: what they name, and what is none."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.cron import last_due, next_due, parsed
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment, seconds_of

NOW = seconds_of("2026-11-30T06:55:30Z") or 0.0  # a Monday


@pytest.mark.parametrize(("schedule", "last", "after"), [
    ("0 3 * * *", "2026-11-30T03:00:00Z", "2026-12-01T03:00:00Z"),
    ("55 6 * * *", "2026-11-30T06:55:00Z", "2026-12-01T06:55:00Z"),
    ("*/15 * * * *", "2026-11-30T06:45:00Z", "2026-11-30T07:00:00Z"),
    ("0 0 * * sun", "2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"),
    ("0 0 * * 7", "2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"),
    ("30 2 1,15 * *", "2026-11-15T02:30:00Z", "2026-12-01T02:30:00Z"),
    ("0 12 13 * fri", "2026-11-27T12:00:00Z", "2026-12-04T12:00:00Z"),
    ("0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
    ("5 8-10/2 * jan-mar 1-5", "2026-03-31T10:05:00Z", "2027-01-01T08:05:00Z"),
])
def test_what_a_schedule_names(schedule: str, last: str, after: str) -> None:
    assert moment(last_due(schedule, NOW) or 0) == last and moment(next_due(schedule, NOW) or 0) == after


def test_a_day_that_never_comes() -> None:
    assert last_due("0 0 31 2 *", NOW) is None and next_due("0 0 31 2 *", NOW) is None


@pytest.mark.parametrize("schedule", [
    "", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *"])
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(ValueError):
        parsed(schedule)
