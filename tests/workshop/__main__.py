# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Makefile calls: `python -m tests.workshop TARGET [ARGUMENTS]`, with nothing but the standard library."""

from __future__ import annotations

import sys

from tests.lint import routing
from tests.workshop import galaxy, lint, programs, suite
from tests.workshop.environments import EnvironmentFailed
from tests.workshop.interpreters import MissingInterpreter

TARGETS = {
    "bench": programs.bench,
    "build": galaxy.build,
    "demo": programs.demo,
    "lint": lint.run,
    "runtime": lambda unused: routing.main(["--write"]),
    "test": suite.everything,
    "torture": programs.torture,
    "unit": suite.unit,
    "vectors": programs.vectors,
}


def main(arguments: list[str]) -> int:
    target, *rest = arguments
    try:
        return TARGETS[target](rest)
    except (EnvironmentFailed, MissingInterpreter) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
