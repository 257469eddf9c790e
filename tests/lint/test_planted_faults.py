# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make lint` fails on faults: a copy of the collection gets a forbidden import and a type error, and lint names both."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.workshop import tree
from tests.workshop.environments import BUILD, LINT, ROOT, ready
from tests.workshop.interpreters import at_hand

HEADER = "\n".join((ROOT / "tests/workshop/tree.py").read_text(encoding="utf-8").splitlines()[:3])
FORBIDDEN = "plugins/module_utils/_decide/planted_import.py"
KNOWN_TYPES = BUILD / "mypy"
ILL_TYPED = "plugins/module_utils/_model/planted_type.py"


def test_lint_sees_a_forbidden_import_and_a_type_error(tmp_path: Path) -> None:
    environment = ready(at_hand(), "lint", LINT)
    checkout = tmp_path / "checkout"
    for file in tree.files():
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, checkout / file)
    (checkout / ".build/envs").mkdir(parents=True)
    (checkout / ".build/envs" / environment.folder.name).symlink_to(environment.folder)
    # What mypy knows of unchanged files, by their hash; without all of it the test only takes longer. Lint may be writing there.
    with contextlib.suppress(OSError, shutil.Error):
        shutil.copytree(KNOWN_TYPES, checkout / ".build/mypy")
    begin = f'{HEADER}\n"""Planted."""\n\nfrom __future__ import annotations\n\n'
    (checkout / FORBIDDEN).write_text(f'{begin}from .._node import calls\n\n__all__ = ["calls"]\n', "utf-8")
    (checkout / ILL_TYPED).write_text(f'{begin}WRONG: int = "text"\n', "utf-8")

    variables = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTHONPATH")} | {"PYTHON": str(environment.interpreter.path)}
    command = [sys.executable, "-m", "tests.workshop", "lint", "rooms", "types"]
    done = subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{FORBIDDEN}:8: _decide does not know _node" in done.stdout
    assert f"{ILL_TYPED}:8: error: Incompatible types in assignment" in done.stdout
    assert done.stdout.count("FAILED") == 2
