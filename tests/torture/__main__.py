# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m tests.torture [--seconds 600] [--seed N]`: everything at random for so long; exits 0 only when nothing broke."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.torture.beside import Beside
from tests.torture.configurations import KINDS
from tests.torture.rounds import rounds
from tests.torture.running import Running
from tests.torture.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture", description="Random worlds and configurations, mutated answers, kills and faults.")
    parser.add_argument("--seconds", type=float, default=600.0,
                        help="how long; the round that is under way is finished, and the configurations that go with the time")
    parser.add_argument("--seed", default="", help="what all chance comes from; a new one is chosen and printed without it")
    chosen = parser.parse_args()
    seed = chosen.seed or secrets.token_hex(4)
    print(f"torture for {chosen.seconds:g} s with seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ichor-torture-") as folder, Running(chosen.seconds) as running:
        tally = torture(Path(folder), seed, within(chosen.seconds), shares(chosen.seconds))
        running.join(tally)
    print("\n".join(tally.lines()))
    return int(bool(tally.broke))


def within(seconds: float) -> Callable[[int], bool]:
    end = time.monotonic() + seconds
    return lambda number: time.monotonic() < end


def shares(seconds: float) -> dict[str, int]:
    """How many configurations of each kind go with so many seconds; a slow machine takes longer for them."""
    return {kind: max(1, round(least * seconds / 600)) for kind, (dummy, least) in KINDS.items()}


def torture(folder: Path, seed: str, goes_on: Callable[[int], bool], counts: Mapping[str, int]) -> Tally:
    """Rounds of every kind in turn, as long as `goes_on(number of the round)` says so, and beside them so many configurations."""
    tally = Tally()
    with Beside(seed, counts) as beside, rounds(folder) as kinds:
        number = 0
        while goes_on(number):
            for kind, do in kinds.items():
                tally.round(kind, f"{seed}/{number}/{kind}", do)
            number += 1
        beside.join(tally)
    return tally


if __name__ == "__main__":
    sys.exit(main())
