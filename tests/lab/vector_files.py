# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded rows, as files of one JSON object a line have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read(path: Path, report: Any) -> Iterator[dict[str, Any]]:
    """The rows of a file. A line that is none fails as a row of its own."""
    if path.exists():
        with open(path, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except ValueError as error:
                        row = error
                    if isinstance(row, dict) and "talos" in row and row.keys() & {"id", "scenario"}:
                        yield row
                    else:
                        report.fail("row", f"{path.name}:{number}", f"no recorded row: {str(row)[:200]}")
