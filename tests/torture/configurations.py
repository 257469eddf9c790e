# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configurations at random: mutated ones, and such that Talos's machinery judges too. One of them by itself is tried again with
`python -m tests.torture.configurations KIND SEED FIRST END`, which is also what the processes of a torture run.
"""

from __future__ import annotations

import functools
import json
import random
import resource
import signal
import sys
from collections.abc import Callable
from types import FrameType

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.schema import VERSIONS
from tests.machinery import adoptions
from tests.machinery.random_rows import generate_row, known, patch_row, trouble, validate_row
from tests.parts.oracle import MACHINERY, Oracle
from tests.torture import removals
from tests.torture.tally import Tally
from tests.unit._machineconfig.test_mutations import SOURCES, exercise, mutated

SECONDS, KILOBYTES = 60, 1_500_000


def mutate(chance: random.Random) -> int:
    """One mutated configuration through everything that takes a person's text."""
    exercise(mutated(chance, chance.choice(SOURCES)), chance.choice(VERSIONS))
    return 1


def compare(chance: random.Random) -> int:
    """One random generation, merge or validation, by this product and by Talos."""
    contract, make = chance.choice(sorted(MACHINERY)), chance.choice((generate_row, patch_row, validate_row))
    seed = chance.getrandbits(48)
    name, row, said = make(seed, _oracle(contract))
    found = trouble(name, row)
    if found and not known(contract, said + found):
        raise AssertionError(f"{make.__name__} of {contract}, its own seed {seed}: {found[:500]} (Talos: {' '.join(said.split())[:500]})")
    return 1


def adopt(chance: random.Random) -> int:
    """One random running configuration that Talos accepts, and what adoption makes of it."""
    contract = chance.choice(sorted(MACHINERY))
    made = None
    while made is None:
        seed = chance.getrandbits(48)
        made = adoptions.random_configuration(seed, _oracle(contract))
    found = adoptions.judge(*made, contract)
    if not set(found.rules) <= adoptions.NAMED:
        raise AssertionError(f"adoption of {contract}, its own seed {seed}: {found.said[:500]}")
    return 1


@functools.cache
def _oracle(contract: str) -> Oracle:
    return Oracle(contract)


#: What can be tried, and how many there are at least in a torture of ten minutes.
KINDS: dict[str, tuple[Callable[[random.Random], int], int]] = {
    "mutated configurations": (mutate, 100_000), "configurations against Talos": (compare, 20_000), "adoptions": (adopt, 50_000),
    "worlds of removals": (functools.partial(removals.many, count=1), 1_000_000),
}


def many(kind: str, seed: str, numbers: range) -> Tally:
    """Each number has a seed of its own. One that takes a minute or makes the process large has broken."""
    tally = Tally()
    before = signal.signal(signal.SIGALRM, _late)
    try:
        for number in numbers:
            signal.alarm(SECONDS)
            tally.round(kind, f"{seed}/{number}", KINDS[kind][0])
            signal.alarm(0)
            if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > KILOBYTES:
                tally.broke.append(f"{kind}, seed {seed}/{number}: more than {KILOBYTES} kB of memory")
                break
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        for contract in MACHINERY if _oracle.cache_info().currsize else ():
            _oracle(contract).close()
        _oracle.cache_clear()
    return tally


def _late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def main() -> int:
    kind, seed, first, end, step = (*sys.argv[1:5], *sys.argv[5:6], "1")[:5]
    tally = many(kind, seed, range(int(first), int(end), int(step)))
    print(json.dumps({"tried": tally.tried, "broke": tally.broke}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
