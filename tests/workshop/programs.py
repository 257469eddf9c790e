# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the project that make runs in an environment of theirs: the demonstration, recorded rows, measurements."""

from __future__ import annotations

import os
import subprocess

from tests.workshop import tree
from tests.workshop.environments import DEMO, ROOT, Environment, for_tests, ready
from tests.workshop.interpreters import chosen


def demo(arguments: list[str]) -> int:
    """The first life of a cluster, with the requirements of the product and of the lab and nothing else."""
    return _run(ready(chosen()[-1], "demo", DEMO), "tests.demo", arguments)


def vectors(arguments: list[str]) -> int:
    """Recorded rows of a folder, or of the project's own, against the lab."""
    folder, *rest = arguments or [""]
    return _run(for_tests(chosen()[-1]), "tests.lab.vectors", [*([os.path.abspath(folder)] if folder else []), *rest])


def bench(arguments: list[str]) -> int:
    """Ratios against bare alternatives."""
    return _run(for_tests(chosen()[-1]), "tests.bench", arguments)


def _run(environment: Environment, module: str, arguments: list[str]) -> int:
    command = [str(environment.python), "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment.variables(collections=tree.link()), check=False).returncode
