# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make unit` and `make test`: pytest in the environments of this run, and a look at what it leaves running."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator

from tests.workshop import leftovers, lint, once_more, tree
from tests.workshop.environments import BUILD, ROOT, Environment, for_tests, keeping_bytecode
from tests.workshop.interpreters import chosen

WORKERS = "2"
#: Added to the niceness of what runs beside the tests: it takes what they leave, and they do not feel it.
POLITE = 10

#: Folders and files, as patterns, that run on the newest of several interpreters alone: what has nothing of Ansible in it or starts modules
#: without it, and the long lives of machines, in which Ansible does what it does in the scenarios that run on each.
ONCE = (
    "tests/artefact", "tests/awx", "tests/browser", "tests/crash", "tests/lives", "tests/machinery", "tests/torture", "tests/unit/lab",
    "tests/unit/workshop", "tests/laws/test_law_03_by_the_nodes_log.py", "tests/unit/_controller/test_fleet_in_kubernetes.py",
    "tests/unit/_operations/test_converge_against_lab.py", "tests/unit/_machineconfig/test_mutations.py", "tests/scenarios/test_runner.py",
    *(f"tests/scenarios/test_{name}*.py" for name in (
        "add_machine", "adopt", "awx_jobs", "create_cluster", "drain", "identity_and_trust", "kubernetes_store", "moved_nodes", "reclaim", "reconcile_",
        "rendered_life", "sent_once", "store_copy", "store_in_trouble")),
)


def unit(arguments: list[str]) -> int:
    """The unit tests with the newest interpreter of the run."""
    return _pytest(for_tests(chosen()[-1]), _with_default("tests/unit", arguments))


def everything(arguments: list[str]) -> int:
    """Every test with each interpreter of the run, those of `ONCE` with the last, and lint beside them. Each is carried out
    whatever came of the others."""
    environments = [for_tests(interpreter) for interpreter in chosen()]
    lint.environments()
    with _lint_beside() as linted:
        failures = [_parts(environments[-1])]
        given = _with_default("tests", arguments)
        for environment in environments:
            left_out = [f"--ignore-glob={ROOT / pattern}" for pattern in ONCE] if environment is not environments[-1] and "tests" in given else []
            failures.append(_pytest(environment, [*given, *left_out]))
        failures.append(linted())
    return int(any(failures))


@contextlib.contextmanager
def _lint_beside() -> Iterator[Callable[[], int]]:
    """Lint in a process of its own: many tests wait, and one of lint's checks is alone for minutes. What is given back waits for its
    end, shows what it printed, and has its status."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        command = [sys.executable, "-B", "-m", "tests.workshop", "lint"]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   preexec_fn=functools.partial(os.nice, POLITE))

        def end() -> int:
            status = process.wait()
            output.seek(0)
            print(output.read(), end="", flush=True)
            return status

        try:
            yield end
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _with_default(folder: str, arguments: list[str]) -> list[str]:
    """pytest's arguments, on `folder` unless they name files of their own."""
    named = any((ROOT / argument.partition("::")[0]).exists() for argument in arguments if not argument.startswith("-"))
    return arguments if named else [folder, *arguments]


def _parts(environment: Environment) -> int:
    """Build the programs that the tests run against, once for this user; later runs find them."""
    command = [str(environment.python), "-m", "tests.parts.build"]
    return subprocess.run(command, cwd=ROOT, env=environment.variables(collections=tree.link()), check=False).returncode


def _pytest(environment: Environment, arguments: list[str]) -> int:
    mark = uuid.uuid4().hex
    variables = keeping_bytecode(environment.variables(collections=tree.link())) | {leftovers.VARIABLE: mark}
    print(f"pytest on Python {environment.interpreter.version}", flush=True)
    cache = BUILD / "pytest-cache"
    command = [str(environment.python), "-m", "pytest", "-q", "-o", f"cache_dir={cache}"]

    def run(*given: str) -> int:
        return subprocess.run([*command, *given], cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=False).returncode

    once_more.forget(cache)
    status = run("-n", WORKERS, "--dist", "loadfile", "--no-loadscope-reorder", *arguments)
    status = once_more.settled(status, cache, lambda failed: run(*failed))
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
