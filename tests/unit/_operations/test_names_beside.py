# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Host names that patches give to machines whose records name none (design section 9 step 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.records import Json
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import read_machine
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from ansible_collections.ichor.talos.tests.unit._operations.configuration_world import World

NAME: list[Json] = [{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "same"}]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.put_bundle()
    world.machine("w1", 1, hostname="same")
    world.machine("w2", 2, hostname=None)
    world.machine("w3", 3, hostname="w3")
    world.machine("w4", 4, hostname=None, approvalState="pending")
    return world


def beside(world: World, name: str = "w1") -> tuple[tuple[str, str], ...]:
    return Renderer(world.store).names_beside(read_machine(world.store, name))


def test_a_name_that_a_patch_gives_is_that_of_every_approved_machine_without_one(world: World) -> None:
    world.patch("names", NAME)
    assert beside(world) == (("w2", "same"),)
    assert beside(world, "w2") == ()


def test_only_machines_that_the_patch_selects_have_it(world: World) -> None:
    world.patch("names", NAME, machineSelector={"names": ["w3"]})
    assert beside(world) == ()


def test_the_legacy_key_is_a_name_too(world: World) -> None:
    world.patch("names", [{"apiVersion": "v1alpha1", "kind": "HostnameConfig", "$patch": "delete"}, {"machine": {"network": {"hostname": "same"}}}])
    assert beside(world) == (("w2", "same"),)


def test_without_such_a_patch_nothing_is_rendered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.patch("sysctls", [{"machine": {"sysctls": {"a.b": "1"}}}])

    def render(*given: Any) -> None:
        raise AssertionError("a machine was rendered")

    monkeypatch.setattr(Renderer, "machine", render)
    assert beside(world) == ()


def test_records_that_cannot_be_rendered_name_nobody(world: World) -> None:
    world.patch("names", [*NAME, {"machine": {"kubelet": {"nodeIP": {"validSubnets": ["nonsense"]}}}}])
    assert beside(world) == ()
    (world.folder / "ichor" / "secrets" / "prod.yaml").unlink()
    assert beside(world) == ()
