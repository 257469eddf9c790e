# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each machine is doing, since when, what it waits for, and what a person would do now: a table that fits a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: 80 columns, less the indent under which Ansible shows lines of a task.
WIDTH = 76
#: So many machines on which all is well are listed one by one; more are counted.
_WELL = 20
#: Machines on which something is not well are cut later.
_LONGEST = 200
_STAGE, _SINCE, _REASON = 12, 7, 26
_NAME = WIDTH - _STAGE - _SINCE - _REASON - 3


@dataclass(frozen=True)
class TableRow:
    """One machine. `since` is an age like `12 min`; `because`, `waits_for` and `advice` are sentences, '' where there is nothing to say."""

    name: str
    stage: str
    since: str
    reason: str
    waits_for: str = ""
    advice: str = ""
    ready: bool = False
    because: str = ""


def table(rows: Sequence[TableRow]) -> list[str]:
    """The lines, none longer than `WIDTH`; those on which something is not well come first where not all are shown."""
    if not rows:
        return []
    well = [row for row in rows if row.ready]
    shown = [*(row for row in rows if not row.ready)][:_LONGEST]
    left = len(rows) - len(well) - len(shown)
    if len(well) <= _WELL:
        shown = [row for row in rows if row.ready or row in shown]
        well = []
    lines = [_line("machine", "stage", "since", "reason")]
    for told, alike in _alike(shown):
        lines += [_line(row.name, row.stage or "unknown", row.since or "-", row.reason or "-") for row in alike]
        for head, text in zip(("because   ", "waits for ", "do now    "), told):
            lines += _more(head, text)
    lines += [f"and {left} more on which something is not well"] if left > 0 else []
    return lines + ([f"{len(well)} machines are Ready"] if well else [])


def _alike(rows: Sequence[TableRow]) -> Iterable[tuple[tuple[str, str, str], list[TableRow]]]:
    """Machines of which the same is to be said stand together, at the place of the first of them, and it is said once."""
    found: dict[tuple[str, str, str], list[TableRow]] = {}
    for row in rows:
        found.setdefault(("", "", "") if row.ready else (row.because, row.waits_for, row.advice), []).append(row)
    return found.items()


def _line(name: str, stage: str, since: str, reason: str) -> str:
    cells = ((name, _NAME), (stage, _STAGE), (since, _SINCE), (reason, _REASON))
    return " ".join(_cell(text, width) for text, width in cells).rstrip()


def _cell(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[:width - 1]}…"


def _more(head: str, text: str) -> list[str]:
    if not text:
        return []
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent=f"  {head}", subsequent_indent=" " * (len(head) + 2), break_long_words=True)
