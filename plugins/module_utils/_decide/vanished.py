# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Approved machines whose record is gone while their status is still there: reported, not acted upon (design section 4)."""

from __future__ import annotations

from .._model.plan import Target, Warn

#: So many names are written out.
_NAMED = 8


def vanished_warnings(names: tuple[str, ...]) -> tuple[Warn, ...]:
    """One warning that names them, or none."""
    if not names:
        return ()
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    what = "The record of machine" if len(names) == 1 else "The records of machines"
    return (Warn(Target(), f"{what} {', '.join(names[:_NAMED])}{more} {'is' if len(names) == 1 else 'are'} gone, and the status is still there: the file was "
                           "deleted or renamed by hand. Nothing is done about it: bring the file back, for example from git.", "4/vanished"),)
