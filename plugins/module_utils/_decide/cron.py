# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Schedules of five fields in UTC: minute, hour, day of the month, month, day of the week (design section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Lowest and highest value of each field, and the names that stand for values.
_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 7, _DAYS))
#: No schedule that ever holds is silent for longer: a 29th of February can be eight years away.
_FARTHEST = timedelta(days=8 * 366)
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Schedule:
    """Which minutes it names. As cron has it, either of the two kinds of days is enough where both are given."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def on(self, day: datetime) -> bool:
        """Whether the day is one of the schedule."""
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (of_month or of_week) if self.either else (of_month and of_week)


def parsed(text: str) -> Schedule:
    """Raises ValueError with what is wrong."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"it has {len(parts)} fields and not five")
    minutes, hours, days, months, weekdays = (_values(part, *field) for part, field in zip(parts, _FIELDS))
    return Schedule(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), not parts[2].startswith("*") and not parts[4].startswith("*"))


def last_due(text: str, now: float) -> float | None:
    """The last time at or before `now` that the schedule names, in seconds since the epoch; None where it never does. Raises ValueError."""
    schedule = parsed(text)
    start = datetime.fromtimestamp(int(now // 60) * 60, timezone.utc)
    day = start.replace(hour=0, minute=0)
    for back in range(_FARTHEST.days):
        one = day - back * _DAY
        if schedule.on(one):
            times = [one + timedelta(hours=hour, minutes=minute) for hour in schedule.hours for minute in schedule.minutes]
            if found := [time for time in times if time <= start]:
                return max(found).timestamp()
    return None


def next_due(text: str, now: float) -> float | None:
    """The first time after `now` that the schedule names; None where it never does. Raises ValueError."""
    schedule = parsed(text)
    start = datetime.fromtimestamp(int(now // 60) * 60, timezone.utc)
    day = start.replace(hour=0, minute=0)
    for ahead in range(_FARTHEST.days):
        one = day + ahead * _DAY
        if schedule.on(one):
            times = [one + timedelta(hours=hour, minutes=minute) for hour in schedule.hours for minute in schedule.minutes]
            if found := [time for time in times if time > start]:
                return min(found).timestamp()
    return None


def _values(part: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for piece in part.lower().split(","):
        span, slash, step = piece.partition("/")
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _value(begin, low, high, names)
            last = _value(end, low, high, names) if dash else high if slash else first
        width = int(step) if step.isdigit() else 0 if slash else 1
        if width < 1 or last < first:
            raise ValueError(f"{piece!r} is no value, range or step of this field")
        found.update(range(first, last + 1, width))
    return frozenset(found)


def _value(text: str, low: int, high: int, names: tuple[str, ...]) -> int:
    number = names.index(text) + low if text in names else int(text) if text.isdigit() else -1
    if not low <= number <= high:
        raise ValueError(f"{text!r} is not from {low} to {high}")
    return number
