# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""meta/runtime.yml follows from the modules that exist: `python -m tests.lint.routing` checks it, with `--write` makes it.

All modules are in the action group, and every one is routed to the one action plugin, which bears the name of a module
since ansible-test wants a module of an action plugin's name.
"""

from __future__ import annotations

import sys
from pathlib import Path

ACTION_PLUGIN = "talos_discover"

HEAD = """\
---
requires_ansible: ">=2.18.0"
"""


def expected(root: Path) -> str:
    """The text of meta/runtime.yml for the plugins under `root`."""
    modules = sorted(path.stem for path in (root / "plugins/modules").glob("*.py") if path.stem != "__init__")
    text = HEAD
    if modules:
        text += "action_groups:\n  talos:\n" + "".join(f"    - {module}\n" for module in modules)
    routed = [module for module in modules if module != ACTION_PLUGIN]
    if routed and (root / "plugins/action" / f"{ACTION_PLUGIN}.py").exists():
        text += "plugin_routing:\n  modules:\n"
        text += "".join(f"    {module}:\n      action_plugin: ichor.talos.{ACTION_PLUGIN}\n" for module in routed)
    return text


def main(arguments: list[str]) -> int:
    """Write the file, or say that it differs."""
    root = Path.cwd()
    file = root / "meta/runtime.yml"
    if "--write" in arguments:
        file.write_text(expected(root), encoding="utf-8")
    if file.read_text(encoding="utf-8") == expected(root):
        return 0
    print("meta/runtime.yml does not list the modules that exist; make runtime writes it anew")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
