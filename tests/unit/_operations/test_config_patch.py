# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Patches from the options to the store, with what they would do (design section 8)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.patch_words import PatchEdit
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.problem import ConfigProblem
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CONFIG_PATCH
from ansible_collections.ichor.talos.plugins.module_utils._operations.config_patch import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.spec_options import patch_settings
from tests.unit._operations.configuration_world import World
from tests.unit._operations.world import OpenGate

SYSCTLS = [{"machine": {"sysctls": {"vm.max_map_count": "262144"}}}]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.put_bundle()
    world.machine("cp", 1, "controlplane")
    world.machine("w1", 2, labels={"site": "north"})
    return world


def edit(world: World, check: bool = False, text: bytes | None = None, absent: bool = False, **options: Any) -> Outcome:
    given = {name: options.get(name) for name in ("layer", "priority", "machine_selector", "documents")}
    wish = PatchEdit("p", patch_settings({"cluster": "prod", **given}), text, "p.yaml" if text else "", absent=absent, allow_delete=absent)
    return asyncio.run(run(Request(wish), world.ports(check), OpenGate(check)))


def effects(outcome: Outcome) -> dict[str, Any]:
    entries: Any = outcome.extra["effects"]
    return {entry["machine"]: entry for entry in entries}


def stored(world: World) -> Any:
    record = world.store.get(CONFIG_PATCH, "p")
    return record.spec if record is not None else None


def test_options_become_the_spelling_of_the_record() -> None:
    assert patch_settings({"cluster": "prod", "layer": None, "priority": 5, "documents": None, "machine_selector": {
        "names": None, "labels": {"site": 5, "edge": True}, "role": None}}) == {
            "clusterRef": "prod", "priority": 5, "machineSelector": {"labels": {"site": "5", "edge": "true"}}}
    assert patch_settings({"machine_selector": {"names": None, "labels": None, "role": None}}) == {"machineSelector": None}


def test_a_patch_is_created_once_and_then_changed(world: World) -> None:
    made = edit(world, documents=SYSCTLS, machine_selector={"labels": {"site": "north"}})
    assert stored(world) == {"layer": "cluster", "clusterRef": "prod", "documents": SYSCTLS, "machineSelector": {"labels": {"site": "north"}}}
    assert list(effects(made)) == ["w1"] and [one["path"] for one in effects(made)["w1"]["changes"]] == ["machine.sysctls.[vm.max_map_count]"]
    assert [row.changed for row in made.machines] == [True]
    assert not edit(world, documents=SYSCTLS).plan.changed
    edit(world, priority=7, machine_selector={})
    assert stored(world) == {"layer": "cluster", "clusterRef": "prod", "documents": SYSCTLS, "priority": 7}
    assert edit(world, absent=True).executed and stored(world) is None
    assert not edit(world, absent=True).plan.changed


def test_check_mode_writes_nothing_and_hands_the_patch_on(world: World) -> None:
    outcome = edit(world, True, documents=SYSCTLS)
    assert stored(world) is None and outcome.plan.changed and outcome.would_be[0].spec["documents"] == SYSCTLS and outcome.would_be[0].uid


def test_a_bad_patch_is_not_written(world: World) -> None:
    outcome = edit(world, documents=[{"cluster": {"etcd": {"advertisedSubnets": ["10.0.0.0/8"]}}}])
    assert outcome.refused and outcome.reason == "RenderFailed" and "w1" in outcome.message and stored(world) is None
    assert {name: entry["renders"] for name, entry in effects(outcome).items()} == {"cp": True, "w1": False}


def test_a_file_is_read_with_its_lines(world: World) -> None:
    edit(world, text=b"machine:\n  sysctls: &both\n    a.b: '1'\n  sysfs: *both\n---\napiVersion: v1alpha1\nkind: TimeSyncConfig\n$patch: delete\n")
    assert stored(world)["documents"] == [{"machine": {"sysctls": {"a.b": "1"}, "sysfs": {"a.b": "1"}}},
                                          {"apiVersion": "v1alpha1", "kind": "TimeSyncConfig", "$patch": "delete"}]
    refused = edit(world, text=b"machine:\n  sysctls:\n    a: '1'\n  sysctl: {}\n")
    assert refused.refused and "p.yaml, line 4" in refused.message
    with pytest.raises(ConfigProblem, match="JSON patches"):
        edit(world, text=b"- op: remove\n  path: /machine/sysctls\n")


def test_secrets_of_a_patch_are_not_shown(world: World) -> None:
    documents = [{"apiVersion": "v1alpha1", "kind": "RegistryAuthConfig", "name": "r.lan", "username": "u", "password": "p4ssw0rd-of-it"},
                 {"machine": {"files": [{"path": "/var/x", "op": "create", "permissions": 420, "content": "p4ssw0rd-of-it"}]}}]
    outcome = edit(world, documents=documents)
    assert not outcome.refused
    assert "p4ssw0rd-of-it" not in repr((outcome.extra, outcome.differences, [step.describe() for step in outcome.plan.steps], outcome.plan.warnings))


def test_what_cannot_be_checked_is_said(world: World) -> None:
    (world.folder / "ichor" / "secrets" / "prod.yaml").unlink()
    outcome = edit(world, documents=SYSCTLS)
    assert outcome.executed and [warning.rule for warning in outcome.plan.warnings] == ["8/patch-unchecked"]
