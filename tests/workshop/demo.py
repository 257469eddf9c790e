# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: an environment with the product's and the lab's requirements, and the demonstration in it."""

from __future__ import annotations

import subprocess

from tests.workshop import tree
from tests.workshop.environments import DEMO, ROOT, ready
from tests.workshop.interpreters import chosen


def run(arguments: list[str]) -> int:
    environment = ready(chosen()[-1], "demo", DEMO)
    variables = environment.variables(collections=tree.link())
    return subprocess.run([str(environment.python), "-m", "tests.demo", *arguments], cwd=ROOT, env=variables, check=False).returncode
