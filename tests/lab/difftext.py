# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unified differences as Talos prints them: three lines of context, `--- a`, `+++ b`. Nothing is masked."""

from __future__ import annotations

import difflib


def unified(before: str, after: str) -> str:
    """The difference, or an empty text when there is none."""
    if before == after:
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "a", "b", lineterm="")
    return "".join(line.rstrip("\n") + "\n" for line in lines)
