# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make unit` and `make test`: pytest in the environments of this run, and a look at what it leaves running."""

from __future__ import annotations

import subprocess
import time
import uuid

from tests.workshop import leftovers, lint, tree
from tests.workshop.environments import BUILD, ROOT, TEST, Environment, ready
from tests.workshop.interpreters import chosen

WORKERS = "2"


def unit(arguments: list[str]) -> int:
    """The unit tests with the newest interpreter of the run."""
    return _pytest(ready(chosen()[-1], "test", TEST), ["tests/unit", *arguments])


def everything(arguments: list[str]) -> int:
    """Lint, then every test with each interpreter of the run; the first failure ends it."""
    interpreters = chosen()
    environments = [ready(interpreter, "test", TEST) for interpreter in interpreters]
    if status := lint.run([]):
        return status
    for environment in environments:
        if status := _pytest(environment, ["tests", *arguments]):
            return status
    return 0


def _pytest(environment: Environment, arguments: list[str]) -> int:
    mark = uuid.uuid4().hex
    variables = environment.variables(collections=tree.link()) | {leftovers.VARIABLE: mark}
    print(f"pytest on Python {environment.interpreter.version}", flush=True)
    cache = f"cache_dir={BUILD / 'pytest-cache'}"
    command = [str(environment.python), "-m", "pytest", "-q", "-n", WORKERS, "--dist", "worksteal", "-o", cache, *arguments]
    status = subprocess.run(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=False).returncode
    left = _settled(mark)
    for line in left:
        print(f"left running by the tests: {line}", flush=True)
    return status or int(bool(left))


def _settled(mark: str) -> list[str]:
    """What still runs once processes that are ending had five seconds to do so."""
    deadline = time.monotonic() + 5
    while (left := leftovers.of(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
