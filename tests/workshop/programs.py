# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the project that make runs in an environment of theirs: the demonstration, recorded rows, measurements."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.workshop import tree
from tests.workshop.environments import DEMO, ROOT, Environment, for_tests, keeping_bytecode, ready
from tests.workshop.interpreters import chosen


def demo(arguments: list[str]) -> int:
    """The first life of a cluster, with the requirements of the product and of the lab and nothing else."""
    print("Installs ansible-core and the Python libraries of the collection and its emulated nodes into .build/ (once; nothing else on this "
          "machine is\ntouched), then plays the demonstration. All of it takes about two minutes.", flush=True)
    return _run(ready(chosen()[-1], "demo", DEMO), "tests.demo", arguments)


def vectors(arguments: list[str]) -> int:
    """Recorded rows of a folder, or of the project's own: configurations against the product, everything else against the lab.

    A folder may hold either kind or both (`protocol/` then); with none at all it fails.
    """
    folder, *rest = arguments or [""]
    environment = for_tests(chosen()[-1])
    place = Path(os.path.abspath(folder)) if folder else OWN_VECTORS
    there = {path.name for path in place.glob("*.jsonl")}
    done = []
    if there & CONFIGURATION_ROWS:
        done.append(_run(environment, "tests.vectors_config", [str(place)]))
    if (place / "protocol").is_dir():
        done.append(_run(environment, "tests.lab.vectors", [str(place / "protocol"), *rest]))
    elif there - CONFIGURATION_ROWS or not done:
        done.append(_run(environment, "tests.lab.vectors", [str(place), *rest]))
    return max(done)


OWN_VECTORS = ROOT / "tests" / "vectors"
CONFIGURATION_ROWS = {"generate.jsonl", "patch.jsonl", "validate.jsonl", "scalars.jsonl"}


def bench(arguments: list[str]) -> int:
    """Ratios against bare alternatives."""
    return _run(for_tests(chosen()[-1]), "tests.bench", arguments)


def torture(arguments: list[str]) -> int:
    """Everything at random for a while."""
    return _run(for_tests(chosen()[-1]), "tests.torture", arguments)


def _run(environment: Environment, module: str, arguments: list[str]) -> int:
    command = [str(environment.python), "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, env=keeping_bytecode(environment.variables(collections=tree.link())), check=False).returncode
