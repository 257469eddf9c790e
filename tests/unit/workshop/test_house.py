# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The house rules see what breaks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint import house

HEADER = "\n".join(house.HEADER) + '\n"""Says what it is for."""\n\nfrom __future__ import annotations\n'


def _write(root: Path, file: str, text: str) -> list[str]:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return house.faults(root)


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("tests/unit/a.py", "x = 1\n", "three lines"),
        ("tests/unit/a.py", "\n".join(house.HEADER) + "\nx = 1\n", "from __future__"),
        ("tests/unit/a.py", "", "is empty"),
        ("plugins/module_utils/_model/helpers.py", HEADER, "says nothing"),
        ("plugins/module_utils/_model/utils/a.py", HEADER, "says nothing"),
        ("plugins/module_utils/_model/a.py", HEADER + "x = 1\n" * 400, "lines, more than 400"),
        ("plugins/modules/a.py", HEADER + "x = 1\n" * 250, "beside its documentation"),
        ("tests/unit/a.py", HEADER + "# " + "-- words ----\n", "a banner"),
        ("docs/a.md", "see /ho" + "me/somebody/notes\n", "folder of one machine"),
        ("tests/a.yml", "path: /ro" + "ot/.kube/config\n", "folder of one machine"),
    ],
)
def test_a_broken_rule_is_seen(tmp_path: Path, file: str, text: str, fault: str) -> None:
    assert [line for line in _write(tmp_path, file, text) if fault in line]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plugins/modules/a.py", HEADER + 'DOCUMENTATION = r"""\n' + "- x\n" * 500 + '"""\nx = 1\n'),
        ("plugins/module_utils/_node/_descriptors.py", "# SPDX-License-Identifier: MPL-2.0\nfrom __future__ import annotations\n" + "x = 1\n" * 900),
        ("tests/unit/__init__.py", ""),
        (".build/envs/lint/lib/site-packages/utils.py", "x = 1\n"),
        ("plugins/modules/__pycache__/utils.py", "x = 1\n"),
        ("docs/a.md", "the chroot /root and https://example.org/home/x\n"),
    ],
)
def test_what_keeps_the_rules_passes(tmp_path: Path, file: str, text: str) -> None:
    assert _write(tmp_path, file, text) == []
