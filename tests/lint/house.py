# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the house that no tool knows: headers, sizes, names. `python -m tests.lint.house` prints what breaks one."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HEADER = (
    "# Copyright (c) Ichor contributors",
    "# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)",
    "# SPDX-License-Identifier: GPL-3.0-or-later",
)
MPL = "# SPDX-License-Identifier: MPL-2.0"
UTILITY_LINES = 400
MODULE_LINES = 250
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
# Folders that the project's targets and the tools make.
LEFTOVERS = {".build", ".git", ".ansible", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__"}

# Somebody's own folder: a path that means nothing on another machine.
PERSONAL = re.compile(r"(?<![\w.])/(?:home|Users)/[A-Za-z]\w*/|(?<![\w.])/root/[.\w]")
# A comment that draws a line across the file: what it parts belongs into files of their own.
BANNER = re.compile(r"^\s*# ?(?:-{2,}|={2,}|#{2,}|\*{2,})")
TEXT = {".py", ".yml", ".yaml", ".md", ".txt", ".toml", ".proto", ".svg", ".rst", ".cfg", ".go", ".mod", ".sh", ""}


def faults(root: Path) -> list[str]:
    """Each break of a rule under `root`, as "file: what is wrong"."""
    found: list[str] = []
    for path in sorted(_files(root)):
        where = path.relative_to(root).as_posix()
        if path.suffix not in TEXT or where.startswith("tests/output/"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if match := PERSONAL.search(text):
            found.append(f"{where}: names a folder of one machine: {match[0]}")
        if path.suffix == ".py":
            found.extend(f"{where}: {fault}" for fault in _python(where, text))
    return found


def _files(root: Path) -> Iterator[Path]:
    """What belongs to the checkout; what a tool left there is nobody's text."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFTOVERS]
        yield from (path for name in names if (path := Path(folder, name)).is_file())


def _python(where: str, text: str) -> list[str]:
    found: list[str] = []
    if not text:
        return found if where.endswith("/__init__.py") else ["is empty"]
    lines = text.splitlines()
    head = [line for line in lines[:6] if line and not line.startswith("#!")]
    if tuple(head[:3]) != HEADER and MPL not in head:
        found.append("does not begin with the three lines of copyright, licence and SPDX tag")
    if "from __future__ import annotations" not in lines:
        found.append('lacks "from __future__ import annotations"')
    found.extend(f"has a banner in line {number}" for number, line in enumerate(lines, 1) if BANNER.match(line))
    if Path(where).stem.strip("_") in VAGUE or VAGUE & set(Path(where).parts[:-1]):
        found.append("has a name that says nothing about its purpose")
    if where.startswith("plugins/module_utils/") and not where.endswith("/_descriptors.py") and len(lines) > UTILITY_LINES:
        found.append(f"has {len(lines)} lines, more than {UTILITY_LINES}")
    if where.startswith("plugins/modules/") and (code := _code_lines(text)) > MODULE_LINES:
        found.append(f"has {code} lines beside its documentation, more than {MODULE_LINES}")
    return found


def _code_lines(text: str) -> int:
    documented = 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
            documented += (node.end_lineno or node.lineno) - node.lineno + 1
    return len(text.splitlines()) - documented


if __name__ == "__main__":
    lines = faults(Path.cwd())
    print("\n".join(lines))
    sys.exit(bool(lines))
