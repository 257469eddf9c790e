# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The path ansible_collections/ichor/talos: a link to the checkout, and copies that follow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import tree


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "a checkout"
    (root / "plugins/modules").mkdir(parents=True)
    (root / "galaxy.yml").write_text("name: talos\n", encoding="utf-8")
    (root / "plugins/modules/one.py").write_text("1\n", encoding="utf-8")
    (root / "plugins/__pycache__").mkdir()
    (root / "plugins/__pycache__/one.pyc").write_bytes(b"x")
    monkeypatch.setattr(tree, "ROOT", root)
    monkeypatch.setattr(tree, "BUILD", root / ".build")
    (root / ".build").mkdir()
    return root


def test_the_link_leads_to_the_checkout_and_can_be_made_twice(checkout: Path) -> None:
    for unused in range(2):
        assert (tree.link() / tree.NAME / "galaxy.yml").read_text(encoding="utf-8") == "name: talos\n"
    assert (tree.link() / tree.NAME).resolve() == checkout


def test_a_copy_follows_changes_and_removals(checkout: Path) -> None:
    copy = tree.copy("lint") / tree.NAME
    assert sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()) == ["galaxy.yml", "plugins/modules/one.py"]
    (checkout / "plugins/modules/one.py").unlink()
    (checkout / "plugins/modules/two.py").write_text("2\n", encoding="utf-8")
    (checkout / "galaxy.yml").write_text("name: other\n", encoding="utf-8")
    tree.copy("lint")
    assert sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()) == ["galaxy.yml", "plugins/modules/two.py"]
    assert (copy / "galaxy.yml").read_text(encoding="utf-8") == "name: other\n"
