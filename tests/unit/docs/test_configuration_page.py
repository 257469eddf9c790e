# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/configuration.md says what the code does: its tables, its examples of patches, and what it says of JSON patches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.patch_edit import documents_of
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch import load_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.places import PLACES
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Json
from tests.lint.places import PAGE, with_tables

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n# (1\.1[234](?:, 1\.1[234])*)( refused)?: ([^\n]*)\n(.*?)```", TEXT, re.DOTALL)
#: A patch for each legacy block that the page lists.
LEGACY: dict[str, Json] = {
    "machine.network.hostname": {"machine": {"network": {"hostname": "x"}}},
    "machine.network.nameservers": {"machine": {"network": {"nameservers": ["192.0.2.53"]}}},
    "machine.kubelet": {"machine": {"kubelet": {"extraArgs": {"v": "2"}}}},
    "machine.nodeLabels": {"machine": {"nodeLabels": {"site": "north"}}},
    "machine.nodeTaints": {"machine": {"nodeTaints": {"site": "north:NoSchedule"}}},
    "machine.install": {"machine": {"install": {"disk": "/dev/sdb"}}},
    "cluster.apiServer": {"cluster": {"apiServer": {"extraArgs": {"v": "2"}}}},
    "cluster.network": {"cluster": {"network": {"podSubnets": ["10.1.0.0/16"]}}},
    "cluster.proxy": {"cluster": {"proxy": {"disabled": True}}},
}
ROWS = re.findall(r"\| `((?:machine|cluster)\.[^|]*)` \| (1\.1[^|]*) \|", TEXT)
REFUSED = {block: versions.split(";")[0].strip().split(", ") for names, versions in ROWS for block in re.split("`, `", names)}


@pytest.mark.parametrize("version", ["1.12", "1.13", "1.14"])
@pytest.mark.parametrize("block", sorted(LEGACY))
def test_each_legacy_block_is_refused_where_the_page_says(block: str, version: str) -> None:
    bundle = read_bundle((ROOT / "tests" / "vectors" / "secrets.yaml").read_bytes())
    given = RenderInput("prod", {"talosVersion": f"v{version}.0", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443"}, "m",
                        {"role": "controlplane", "install": {"disk": "/dev/sda"}}, bundle, (PatchRecord("p", "cluster", 0, (LEGACY[block],)),))
    try:
        render(given)
        taken = True
    except ConfigProblem:
        taken = False
    assert taken is (version not in REFUSED[block])


def test_every_block_of_the_page_is_tried() -> None:
    assert set(REFUSED) == set(LEGACY)


def test_the_tables_are_the_data() -> None:
    assert with_tables(TEXT) == TEXT
    assert all(f"`{place.field}`" in TEXT for place in PLACES)


def test_a_row_that_is_missing_is_seen() -> None:
    line = next(line for line in TEXT.splitlines() if "`kubernetesVersion`" in line)
    assert with_tables(TEXT.replace(line + "\n", "")) == TEXT


@pytest.mark.parametrize(("versions", "refused", "title", "text"), BLOCKS, ids=[f"{block[2]}-{block[0]}" for block in BLOCKS])
def test_each_patch_of_the_page_is_taken_or_refused_as_it_says(versions: str, refused: str, title: str, text: str) -> None:
    for version in versions.split(", "):
        try:
            documents_of(text.encode(), "page")
            load_patch(text, version)
            taken = True
        except ConfigProblem:
            taken = False
        assert taken is not bool(refused), f"{title} on {version}"


def test_the_page_shows_both() -> None:
    assert {bool(block[1]) for block in BLOCKS} == {True, False} and len(BLOCKS) >= 8
