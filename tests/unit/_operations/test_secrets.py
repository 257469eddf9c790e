# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bundles made, imported and exported, on disk (design sections 4 and 8)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.authorities import check_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.generate import GenerateInput, generate
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.placeholder import placeholder_bundle
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._operations.secrets import Request, run
from tests.unit._operations.configuration_world import VECTORS, World
from tests.unit._operations.world import OpenGate

TEXT = (VECTORS / "secrets.yaml").read_bytes()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def put(world: World, check: bool = False, **request: Any) -> Outcome:
    return asyncio.run(run(Request(**request), world.ports(check), OpenGate(check)))


def place(world: World) -> Path:
    return world.folder / "ichor" / "secrets" / "prod.yaml"


def test_a_bundle_is_made_once_for_its_owner_only(world: World) -> None:
    made = put(world, cluster="prod")
    text = place(world).read_bytes()
    assert len(made.executed) == 1 and place(world).stat().st_mode & 0o777 == 0o600 and place(world).parent.stat().st_mode & 0o777 == 0o700
    assert check_bundle(read_bundle(text)) == ()
    assert (place(world).parent / ".gitignore").read_text(encoding="utf-8").endswith("*\n")
    again = put(world, cluster="prod")
    assert not again.plan.changed and place(world).read_bytes() == text
    assert again.extra["bundle"] == made.extra["bundle"]
    for secret in read_bundle(text).secrets():
        assert secret not in repr(made)


def test_check_mode_writes_nothing_and_leaves_a_placeholder(world: World) -> None:
    first, second = (put(world, True, cluster="prod") for unused in range(2))
    assert not place(world).parent.exists() and first.plan.id == second.plan.id
    assert first.would_be == second.would_be and first.would_be[0].spec["text"] == placeholder_bundle("prod", 2027).text()
    assert check_bundle(placeholder_bundle("prod", 2027)) == () and placeholder_bundle("prod", 2027) != placeholder_bundle("other", 2027)


def test_a_bundle_is_imported_as_it_is(world: World) -> None:
    put(world, name="prod", bundle=TEXT, source="secrets.yaml")
    assert read_bundle(place(world).read_bytes()) == read_bundle(TEXT)
    assert not put(world, name="prod", bundle=TEXT, source="secrets.yaml").plan.changed


@pytest.mark.parametrize("contract", ["1.12", "1.13", "1.14"])
def test_a_bundle_is_taken_from_a_control_plane(world: World, contract: str) -> None:
    config = generate(GenerateInput("prod", "https://10.9.9.9:6443", "v1.35.0", "i", read_bundle(TEXT)), "controlplane", contract)
    put(world, name="prod", config=config.text().encode(), source="cp.yaml")
    assert read_bundle(place(world).read_bytes()) == read_bundle(TEXT)


def test_a_worker_has_no_keys(world: World) -> None:
    config = generate(GenerateInput("prod", "https://10.9.9.9:6443", "v1.35.0", "i", read_bundle(TEXT)), "worker", "1.13")
    refused = put(world, name="prod", config=config.text().encode(), source="w.yaml")
    assert refused.refused and refused.reason == "BundleInvalid" and not place(world).exists()


def test_a_token_that_nobody_filled_in_becomes_no_key(world: World) -> None:
    refused = put(world, name="prod", config=b"machine:\n  type: controlplane\n  token: ${TOKEN}\n", source="cp.yaml")
    assert [refusal.reason for refusal in refused.plan.refusals] == ["TemplateUnexpanded"]
    assert "cp.yaml, line 3, machine.token" in refused.plan.refusals[0].message


def test_half_a_bundle_is_refused_by_field(world: World) -> None:
    data = yaml.safe_load(TEXT)
    data["certs"]["etcd"]["key"] = data["certs"]["os"]["key"]
    del data["certs"]["k8s"]["key"]
    refused = put(world, name="prod", bundle=yaml.safe_dump(data).encode(), source="s.yaml")
    assert refused.reason == "BundleInvalid" and "certs.k8s.key" in refused.message and "certs.etcd.key" in refused.message
    assert data["certs"]["os"]["key"] not in repr(refused)


def test_keys_that_were_sent_are_never_written_over(world: World) -> None:
    put(world, cluster="prod")
    before = place(world).read_bytes()
    world.machine("cp", 1, "controlplane")
    refused = put(world, name="prod", bundle=TEXT, source="s.yaml", replace=True)
    assert refused.reason == "AlreadySent" and place(world).read_bytes() == before


def test_a_bundle_that_nobody_had_can_be_replaced(world: World) -> None:
    put(world, cluster="prod")
    world.machine("new", 1, joined=False)
    put(world, name="prod", bundle=TEXT, source="s.yaml", replace=True)
    assert read_bundle(place(world).read_bytes()) == read_bundle(TEXT) and place(world).stat().st_mode & 0o777 == 0o600


def test_a_vaulted_bundle_is_there(world: World) -> None:
    place(world).parent.mkdir()
    place(world).write_bytes(b"$ANSIBLE_VAULT;1.1;AES256\n3031\n")
    world.store._decrypt = lambda path: TEXT
    assert not put(world, cluster="prod").plan.changed
    refused = put(world, name="prod", bundle=TEXT.replace(b"cluster:", b"other: 1\ncluster:"), source="s.yaml")
    assert not refused.refused  # a key that is not read is no difference


def test_a_copy_is_exported_for_its_owner_only(world: World) -> None:
    put(world, cluster="prod")
    target = world.folder / "copy.yaml"
    put(world, cluster="prod", export_path=str(target))
    assert target.read_bytes() == place(world).read_bytes() and target.stat().st_mode & 0o777 == 0o600
    assert not put(world, cluster="prod", export_path=str(target)).plan.changed


def test_a_file_without_any_store(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = tmp_path / "secrets.yaml"
    put(world, path=str(path))
    assert check_bundle(read_bundle(path.read_bytes())) == () and path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    assert put(world, path=str(path), bundle=TEXT, source="s", replace=True).refused and path.read_bytes() == before


def test_a_cluster_that_names_no_bundle_is_told(world: World) -> None:
    with pytest.raises(TalosError, match="RecordNotFound"):
        put(world, cluster="nobody")


@pytest.mark.parametrize("version", ["latest", "v1", "1.13.x", "v1.13.9.9", "v1.13.", "v1.15.0", "v1.11.3", "1,13"])
@pytest.mark.parametrize("more", [{}, {"bundle": TEXT}], ids=["made", "imported"])
def test_a_version_that_is_none_is_refused_before_anything_is_written(world: World, version: str, more: dict[str, Any]) -> None:
    with pytest.raises(TalosError) as caught:
        put(world, cluster="prod", talos_version=version, **more)
    assert caught.value.reason == "InvalidInput" and not place(world).exists()


def test_of_two_runs_at_once_one_makes_the_keys_and_the_other_is_told_to_look_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write = type(world.store).write_bundle

    def late(store: Any, name: str, data: bytes, **more: Any) -> None:
        write(store, name, b"cluster: {}\n")
        write(store, name, data, **more)

    monkeypatch.setattr(type(world.store), "write_bundle", late)
    with pytest.raises(TalosError) as caught:
        put(world, name="prod")
    assert caught.value.reason == "RecordExists" and "Another run" in caught.value.message and "replace" not in caught.value.hint
    assert place(world).read_bytes() == b"cluster: {}\n"
