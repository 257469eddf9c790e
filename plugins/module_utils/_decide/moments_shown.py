# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long ago a point in time of a record is, for a person."""

from __future__ import annotations

from .._model.moments import seconds_of

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def age(moment: str, now: float) -> str:
    """`40 s`, `12 min`, `3 h`, `5 d` before `now`; '' where the text is no point in time."""
    then = seconds_of(moment) if moment else None
    if then is None:
        return ""
    passed = max(0.0, now - then)
    length, unit = next(entry for entry in _UNITS if passed >= entry[0] or entry[0] == 1)
    return f"{int(passed // length)} {unit}"
