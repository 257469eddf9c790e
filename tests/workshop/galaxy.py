# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make build`: the archive that `ansible-galaxy collection install` takes."""

from __future__ import annotations

import subprocess

from tests.workshop import tree
from tests.workshop.environments import BUILD, for_tests
from tests.workshop.interpreters import chosen


def build(arguments: list[str]) -> int:
    environment = for_tests(chosen()[-1])
    copy = tree.copy("dist")
    command = ["-m", "ansible.cli.galaxy", "collection", "build", "--force", "--output-path", str(BUILD / "dist"), str(copy / tree.NAME)]
    return subprocess.run([str(environment.python), *command, *arguments], env=environment.variables(collections=copy), check=False).returncode
