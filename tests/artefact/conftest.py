# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as users get it: built, installed into an environment with the runtime requirements and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.workshop import tree
from tests.workshop.environments import CORE, RUNTIME, Environment, ready
from tests.workshop.interpreters import at_hand

MODULES = sorted(path.stem for path in (tree.ROOT / "plugins/modules").glob("*.py"))
NOT_SHIPPED = ("tests", "docs", "protos")
ANSWER = re.compile(r"^localhost \| [A-Z]+!? => (\{.*\})", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Installed:
    """The environment, the collections path, and the archive that was installed."""

    environment: Environment
    collections: Path
    archive: Path

    def ansible(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of Ansible's programs as `python -m ansible COMMAND …`, far away from the checkout."""
        variables = self.environment.variables(collections=self.collections)
        variables.pop("PYTHONPATH")
        line = [str(self.environment.python), "-m", "ansible", command, *arguments]
        return subprocess.run(line, cwd=self.collections, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)

    def module(self, name: str, options: Mapping[str, object]) -> dict[str, Any]:
        """Run a module in check mode on localhost and give its result."""
        done = self.ansible("adhoc", "localhost", "-m", f"ichor.talos.{name}", "-a", json.dumps(options), "--check")
        found = ANSWER.search(done.stdout)
        assert found, done.stdout + done.stderr
        result: dict[str, Any] = json.loads(found[1])
        return result


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    environment = ready(at_hand(), "runtime", (*CORE, *RUNTIME))
    folder = tmp_path_factory.mktemp("artefact")
    source = folder / "source"
    for file in tree.files():
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree.ROOT / file, source / file)
    collections = folder / "collections"
    build = Installed(environment, folder, folder)
    _good(build.ansible("galaxy", "collection", "build", "--output-path", str(folder), str(source)))
    shutil.rmtree(source)
    [archive] = folder.glob("ichor-talos-*.tar.gz")
    _good(build.ansible("galaxy", "collection", "install", "--offline", "--no-deps", "--collections-path", str(collections), str(archive)))
    for name in NOT_SHIPPED:
        shutil.rmtree(collections / tree.NAME / name, ignore_errors=True)
    return Installed(environment, collections, archive)


def _good(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def documentation(installed: Installed) -> Callable[[str], dict[str, Any]]:
    """What ansible-doc says of a module: its documentation, examples and return values."""
    done = installed.ansible("doc", "-t", "module", "--json", *(f"ichor.talos.{name}" for name in MODULES))
    _good(done)
    answers: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return lambda name: answers[f"ichor.talos.{name}"]
