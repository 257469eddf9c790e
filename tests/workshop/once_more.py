# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failed in a run of thousands of tests is tried once more, alone; what passes then is named as unsteady, since it needs mending.

It says only that a test failed among others and passed by itself: whoever reads the run decides what that means. More than `MOST` are no chance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

MOST = 2
#: pytest's status when tests ran to their end and some failed. What else went wrong, an unlisted skip among it, is not tried again.
FAILED = 1


def forget(cache: Path) -> None:
    """Let an earlier run's failures be none of the next; `cache` is the folder that pytest keeps them in."""
    _record(cache).unlink(missing_ok=True)


def settled(status: int, cache: Path, again: Callable[[list[str]], int]) -> int:
    """The status of a run after `again`, which runs the tests that it is given and returns their status, had those that failed."""
    failed = _failed(cache) if status == FAILED else []
    if not 1 <= len(failed) <= MOST:
        return status
    print(f"{len(failed)} failed, tried once more, alone", flush=True)
    status = again(failed)
    for test in failed if status == 0 else []:
        print(f"UNSTEADY: {test} failed among the others and passed alone", flush=True)
    return status


def _failed(cache: Path) -> list[str]:
    try:
        return sorted(json.loads(_record(cache).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []


def _record(cache: Path) -> Path:
    return cache / "v" / "cache" / "lastfailed"
