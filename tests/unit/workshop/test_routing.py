# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""meta/runtime.yml lists the modules that exist and routes them to the one action plugin."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.lint import routing

ROOT = Path(__file__).resolve().parents[3]


def test_every_module_is_in_the_group_and_routed(tmp_path: Path) -> None:
    for name in ("modules/talos_discover.py", "modules/talos_stage.py", "modules/talos_machine_info.py", "action/talos_discover.py"):
        path = tmp_path / "plugins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    runtime = yaml.safe_load(routing.expected(tmp_path))
    assert runtime == {
        "requires_ansible": ">=2.18.0",
        "action_groups": {"talos": ["talos_discover", "talos_machine_info", "talos_stage"]},
        "plugin_routing": {
            "modules": {name: {"action_plugin": "ichor.talos.talos_discover"} for name in ("talos_machine_info", "talos_stage")},
        },
    }


def test_the_file_is_what_the_modules_ask_for() -> None:
    assert (ROOT / "meta/runtime.yml").read_text(encoding="utf-8") == routing.expected(ROOT)
