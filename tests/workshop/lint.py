# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make lint`: every check as a row, two at a time, the output of a failed one in full."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.workshop import tree
from tests.workshop.environments import BUILD, LINT, ROOT, Environment, locked, ready
from tests.workshop.interpreters import chosen


@dataclass(frozen=True)
class Check:
    """One check: its name, the command after the environment's Python, and where it runs."""

    name: str
    command: tuple[str, ...]
    where: Path
    variables: dict[str, str]
    environment: Environment


def run(arguments: list[str]) -> int:
    """Run the checks of every interpreter; with arguments, only those whose name starts with one of them."""
    checks: list[Check] = []
    for environment in environments():
        for make in (_sanity, _static):
            checks.extend(make(environment))
    checks = [check for check in checks if not arguments or check.name.startswith(tuple(arguments))]
    with locked("lint"), ThreadPoolExecutor(2) as pool:
        return int(not all(list(pool.map(_run, checks))))


def environments() -> list[Environment]:
    """The environment of each interpreter of the run."""
    return [ready(interpreter, "lint", LINT) for interpreter in chosen()]


def _run(check: Check) -> bool:
    begun = time.monotonic()
    done = subprocess.run(
        [str(check.environment.python), *check.command],
        cwd=check.where,
        env=check.variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    good = done.returncode == 0 and "All targets skipped" not in done.stdout
    title = f"lint: {check.name} on Python {check.environment.interpreter.version}: {'ok' if good else 'FAILED'} ({time.monotonic() - begun:.0f} s)"
    print(title if good else f"{title}\n{_telling(done.stdout)}", flush=True)
    return good


def _telling(output: str) -> str:
    """ansible-test's findings without its report of what it installed; any other output as it is."""
    findings = [line for line in output.splitlines() if line.startswith(("ERROR:", "FATAL: The "))]
    return "\n".join(findings) if findings else output


def _static(environment: Environment) -> list[Check]:
    """Checks of the text: types, rooms, style, documentation, changelog, Ansible content."""
    place = tree.copy(f"lint-{environment.interpreter.version}")
    collection = place / tree.NAME
    variables = environment.variables(collections=place)
    rows: list[tuple[str, Path, tuple[str, ...]]] = [
        ("types", place, ("-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(BUILD / "mypy"), "-p", PACKAGE)),
        ("rooms", collection, ("-m", "tests.lint.rooms")),
        ("house rules", collection, ("-m", "tests.lint.house")),
        ("routing", collection, ("-m", "tests.lint.routing")),
        ("tables of the documentation", collection, ("-m", "tests.lint.places")),
        ("ruff", collection, ("-m", "ruff", "check", "--no-cache", "--output-format", "concise", ".")),
        ("changelog", collection, ("-m", "antsibull_changelog", "lint")),
        ("documentation", collection, (str(environment.folder / "bin/antsibull-docs"), "lint-collection-docs", *DOCUMENTATION, ".")),
        ("ansible-lint", collection, ("-m", "ansiblelint", "--offline", "--profile", "production", "--strict", "--nocolor")),
    ]
    return [Check(name, command, where, variables, environment) for name, where, command in rows]


PACKAGE = "ansible_collections.ichor.talos.plugins.module_utils"
DOCUMENTATION = (
    "--plugin-docs",
    "--validate-collection-refs",
    "self",
    "--check-extra-docs-refs",
    "--disallow-unknown-collection-refs",
    "--skip-rstcheck",
)


def _sanity(environment: Environment) -> list[Check]:
    """ansible-test sanity, with its virtual environments and caches under .build/ as well."""
    place = tree.copy(f"sanity-{environment.interpreter.version}")
    collection = place / tree.NAME
    shutil.rmtree(collection / "tests/output", ignore_errors=True)
    home = BUILD / "sanity-home"
    _seed(environment, home)
    caches = os.environ.get("PIP_CACHE_DIR") or str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip")
    # Without the content root named, ansible-test walks up to the checkout's .git and finds that it ignores .build.
    variables = environment.variables(collections=place) | {"HOME": str(home), "PIP_CACHE_DIR": caches, "ANSIBLE_TEST_CONTENT_ROOT": str(collection)}
    variables.pop("PYTHONPATH")
    version = environment.interpreter.version
    command = (str(environment.folder / "bin/ansible-test"), "sanity", "--venv", "--python", version, "--color", "no", "--truncate", "0")
    return [Check("sanity", command, collection, variables, environment)]


def _seed(environment: Environment, home: Path) -> None:
    """Put our own pip bootstrap where ansible-test keeps the script that it would otherwise download."""
    for source in environment.folder.glob("lib/python*/site-packages/ansible_test/_internal/python_requirements.py"):
        if found := re.search(r"pip='([0-9.]+)'", source.read_text(encoding="utf-8")):
            cache = home / ".ansible/test/cache" / f"get_pip_{found[1].replace('.', '_')}.py"
            cache.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(__file__).with_name("pip_bootstrap.py"), cache)
