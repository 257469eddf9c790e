# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python interpreters this machine has, and which of them a run uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PREFERRED = ("3.13", "3.12", "3.11", "3.14")

# The two lines of ansible-core that continuous integration has to run on, each with the Pythons that carry it.
REQUIRED = (("2.19", ("3.11",)), ("2.21", ("3.13", "3.12", "3.14")))

QUESTION = "import importlib.util as u, sys; print('%d.%d' % sys.version_info[:2], bool(u.find_spec('venv')), getattr(sys, '_base_executable', sys.executable))"


@dataclass(frozen=True)
class Interpreter:
    """One working interpreter: its version as "3.11" and the path of the real binary, not of a shim or a virtual environment."""

    version: str
    path: Path


class MissingInterpreter(Exception):
    """No interpreter of a version that the run needs."""


def chosen() -> list[Interpreter]:
    """The interpreters of this run: the one at hand, or under CI one for each line of ansible-core."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        found = _found()
        return [_first(found, versions, f"ansible-core {core}") for core, versions in REQUIRED]
    if os.environ.get("PYTHON"):
        asked = _asked(os.environ["PYTHON"])
        if asked is None:
            raise MissingInterpreter(f"PYTHON={os.environ['PYTHON']} is no Python 3.11 or newer that can make virtual environments.")
        return [asked]
    return [_first(_found(), PREFERRED, "this collection")]


def at_hand() -> Interpreter:
    """The interpreter that this very process runs on."""
    answer = _asked(sys.executable)
    if answer is None:
        raise MissingInterpreter(f"{sys.executable} cannot make virtual environments.")
    return answer


def _first(found: dict[str, Interpreter], versions: tuple[str, ...], purpose: str) -> Interpreter:
    for version in versions:
        if version in found:
            return found[version]
    raise MissingInterpreter(f"No Python {' or '.join(versions)} with the venv module was found, and {purpose} needs one. Install it, or add it to PATH.")


def _found() -> dict[str, Interpreter]:
    found: dict[str, Interpreter] = {}
    for name in _candidates():
        if answer := _asked(name):
            found.setdefault(answer.version, answer)
    return found


def _candidates() -> Iterator[str]:
    """Names and paths that may be an interpreter; a name on PATH can be a shim that runs nothing."""
    yield sys.executable
    for version in PREFERRED:
        yield f"python{version}"
    for folder in (Path.home() / ".pyenv/versions", Path(os.environ.get("PYENV_ROOT", "/nonexistent")) / "versions"):
        if os.access(folder, os.R_OK | os.X_OK):
            yield from (str(path) for path in sorted(folder.glob("3.1[1-9]*/bin/python3"), reverse=True))
    for folder in (Path("/usr/bin"), Path("/usr/local/bin"), Path("/opt/homebrew/bin")):
        yield from (str(folder / f"python{version}") for version in PREFERRED)
    yield "python3"


def _asked(name: str) -> Interpreter | None:
    try:
        answer = subprocess.run([name, "-c", QUESTION], capture_output=True, text=True, timeout=30, check=True).stdout.split(maxsplit=2)
    except (OSError, subprocess.SubprocessError):
        return None
    version, has_venv, path = (part.strip() for part in answer)
    if has_venv != "True" or tuple(int(part) for part in version.split(".")) < (3, 11):
        return None
    return Interpreter(version, Path(os.path.realpath(path)))
