# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Present, absent or unknown: three different things (law 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, Union

T = TypeVar("T")


@dataclass(frozen=True)
class Present(Generic[T]):
    """Something was read. `source` names where from (an address, a record)."""

    value: T
    source: str = ""


@dataclass(frozen=True)
class Absent:
    """Proven not to be there: the right type in the right namespace answered NOT_FOUND or an empty list."""

    source: str = ""


@dataclass(frozen=True)
class Unknown:
    """Could not be read; `reason` is one of `errors.ALL_REASONS`. Blocks whatever is disruptive."""

    reason: str
    message: str = ""
    source: str = ""


Observed = Union[Present[T], Absent, Unknown]


def value_or(observed: Observed[T], default: T) -> T:
    """The value when present, else `default`; only for showing, never for deciding."""
    return observed.value if isinstance(observed, Present) else default
