# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tests.bench`: one line a figure, exit 0 only when every one is ok. Names of figures as arguments narrow it."""

from __future__ import annotations

import sys

from .figures import FIGURES


def main() -> int:
    wanted = sys.argv[1:]
    short = 0
    for name, make in FIGURES.items():
        if wanted and name not in wanted:
            continue
        for figure in make():
            short += not figure.ok
            print(figure.line(), flush=True)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
