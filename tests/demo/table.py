# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machines as a table of text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

HEAD = ("machine", "host name", "role", "address", "approval", "stage", "what it is doing")
LAST = 44


def table(records: Sequence[dict[str, Any]]) -> str:
    """One row a machine, from the records of talos_machine_info."""
    rows = [_row(record) for record in records]
    widths = [max(len(row[column]) for row in (HEAD, *rows)) for column in range(len(HEAD) - 1)]
    lines = [_line(HEAD, widths), "  ".join("─" * width for width in (*widths, LAST))]
    for row in rows:
        first, *more = textwrap.wrap(row[-1], LAST) or [""]
        lines.append(_line((*row[:-1], first), widths))
        lines.extend(_line((*("" for dummy in widths), text), widths) for text in more)
    return "\n".join(lines)


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    spec, status = record["spec"], record["status"]
    return (record["metadata"]["name"], str(spec.get("hostname", "–")), str(spec.get("role", "–")), str(record["dial_endpoint"]),
            str(spec.get("approvalState", "")), str((record["node"] or {}).get("stage") or status.get("stage") or "–"), str(record["doing"]["what"]))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1])).rstrip()
