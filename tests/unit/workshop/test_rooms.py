# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rooms check sees each kind of forbidden import, and nothing in the tree as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint import rooms

ROOT = Path(__file__).resolve().parents[3]
ABSOLUTE = "from ansible_collections.ichor.talos.plugins.module_utils"

PLANTS = [
    ("_model/planted.py", "from .._decide import approval", "_model does not know _decide"),
    ("_model/planted.py", "from .. import _node", "_model does not know _node"),
    ("_model/planted.py", f"{ABSOLUTE}._store.directory import x", "_model does not know _store"),
    ("_machineconfig/planted.py", "def f():\n    from .._node import calls", "_machineconfig does not know _node"),
    ("_decide/planted.py", "import time", "_decide is pure and cannot import time"),
    ("_decide/planted.py", "from datetime import datetime\nx = datetime.now()", "_decide is pure and cannot read the clock"),
    ("_decide/planted.py", "import datetime\nx = datetime.datetime.now(datetime.timezone.utc)", "_decide is pure and cannot read the clock"),
    ("_decide/planted.py", "from ansible.module_utils import basic", "_decide is pure and cannot import ansible"),
    ("_decide/planted.py", "try:\n    import grpc\nexcept ImportError:\n    grpc = None", "_decide is pure and cannot import grpc"),
    ("_store/planted.py", "import grpc", "_store cannot import grpc"),
    ("_store/planted.py", "from .._operations import discovery", "_store does not know _operations"),
    ("_node/planted.py", "from ansible.module_utils.basic import AnsibleModule", "_node cannot import ansible"),
    ("_ansible/planted.py", "from .._operations import discovery", "_ansible does not know _operations"),
    ("_ansible/with_decisions.py", "from .._decide import approval", "_ansible does not know _decide"),
    ("_operations/planted.py", "from .._ansible import result", "_operations does not know _ansible"),
    ("_node/planted.py", "from ansible_collections.community.general.plugins.module_utils import x", "_node cannot import ansible_collections"),
    ("_shed/planted.py", "import json", "_shed is no room"),
]


@pytest.mark.parametrize(("file", "text", "fault"), PLANTS)
def test_a_planted_import_is_seen(tmp_path: Path, file: str, text: str, fault: str) -> None:
    path = tmp_path / "plugins/module_utils" / file
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n", encoding="utf-8")
    assert [line for line in rooms.faults(tmp_path) if fault in line]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plugins/modules/planted.py", f"{ABSOLUTE}._decide.approval import decide"),
        ("plugins/modules/planted.py", "import grpc"),
        ("plugins/action/planted.py", f"{ABSOLUTE}._operations import discovery"),
        ("plugins/action/planted.py", f"{ABSOLUTE}._node import calls"),
        ("tests/lab/planted.py", f"{ABSOLUTE}._node.messages import pool"),
    ],
)
def test_modules_actions_and_the_lab_have_walls_too(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n", encoding="utf-8")
    assert rooms.faults(tmp_path)


def test_what_the_drawing_allows_passes(tmp_path: Path) -> None:
    for file, text in (
        ("plugins/module_utils/_decide/a.py", "from .._model.plan import Plan\nfrom .._machineconfig import bring\nfrom . import b"),
        ("plugins/module_utils/_node/a.py", "try:\n    import grpc\nexcept ImportError:\n    grpc = None\nimport ssl, socket, time"),
        ("plugins/module_utils/_operations/a.py", "from .._decide import approval\nfrom .._store.directory import Directory"),
        ("plugins/modules/a.py", f"from ansible.module_utils.basic import AnsibleModule\n{ABSOLUTE}._operations import discovery"),
        ("plugins/module_utils/_ansible/with_nodes.py", "from .._node import nodes"),
        ("plugins/modules/b.py", f"{ABSOLUTE}._decide.approval_words import Wanted"),
        ("tests/lab/a.py", f"{ABSOLUTE}._node import _descriptors"),
    ):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert rooms.faults(tmp_path) == []


def test_the_tree_has_no_fault() -> None:
    assert rooms.faults(ROOT) == []
