# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines that say strange things of themselves, through talos_discover with a store: weak, listed, harmless to read (sections 5 and 6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hostile.saying import World, refusal, world

LINK = {"name": "enp1s0", "mac": "3c:ec:ef:00:00:01"}
GOOD = "5a1f0c3e-51c8-4f0e-8d39-3cecef000001"
SWAPPED = "3e0c1f5a-c851-0e4f-8d39-3cecef000001"
LONG = "A" * 10_000
HOSTILE = {
    "escapes": "\x1b[31mred\x1b[0m\x1b]0;title\x07", "bidi": "abc\u202egnp.exe\u2066", "jinja": "{{ lookup('pipe', 'touch HERE') }}{% raw %}",
    "html": "<script>alert(1)</script>", "yaml": "a: [b\n- !!python/object/apply:os.system ['x']\n---\n", "paths": "../../../../etc/passwd\x00/x",
    "long": LONG, "control": "\x00\x07\x08\x7f\x9b",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("identities")) as made:
        yield made


def store(here: World, name: str, *addresses: str, **more: Any) -> str:
    """A store with one cluster that looks for machines at these addresses."""
    path = str(here.folder / name)
    ended = here.run("talos_cluster", name="prod", endpoint="https://192.0.2.10:6443", talos_version="v1.13.9", kubernetes_version="v1.35.0",
                     control_planes=1, discovery={"addresses": list(addresses)}, store_path=path, **more)
    assert ended.status == 0, ended.output
    return path


def discovered(here: World, path: str, **more: Any) -> dict[str, Any]:
    ended = here.run("talos_discover", cluster="prod", store_path=path, **more)
    assert ended.status == 0, ended.output
    return ended.result


def records(path: str) -> dict[str, dict[str, Any]]:
    return {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in Path(path).glob("machines/*.yaml")}


def status(path: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(path) / ".state" / "machines" / f"{name}.json").read_text(encoding="utf-8"))["status"]
    return found


@pytest.mark.parametrize("uuid", ["", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "not a uuid", LONG,
                                  "03000200-0400-0500-0006-000700080009", "{{ 7 * 7 }}", "../../../../etc/passwd"])
def test_an_identity_that_is_none_is_weak_and_is_not_approved(here: World, uuid: str) -> None:
    address = here.node("weak", 1, machine={"uuid": uuid, "links": [LINK]})
    path = store(here, f"weak-{abs(hash(uuid))}", address)
    found = discovered(here, path)
    ((name, record),) = records(path).items()
    assert name.startswith("weak-") and found["found"][0]["weak"] is True
    assert {entry["type"] for entry in status(path, name)["conditions"]} >= {"WeakIdentity"}
    assert record["spec"]["approvalState"] == "pending" and not record["spec"].get("identity", {}).get("uuid")
    reason, dummy = refusal(here.run("talos_machine_approval", machine=name, role="worker", install={"disk": "/dev/sda"}, store_path=path))
    assert reason in ("WeakIdentity", "WeakIdentityUnresolved")
    assert discovered(here, path)["changed"] is False and len(records(path)) == 1


@pytest.mark.parametrize(("second", "macs"), [(GOOD, "02"), (SWAPPED, "01")], ids=["repeated", "byte-swapped"])
def test_two_boards_that_may_be_one_are_not_both_strong(here: World, second: str, macs: str) -> None:
    here.node("two", 12)
    one = here.node("one", 10, machine={"uuid": GOOD, "serial": "ACME-1", "links": [LINK]})
    path = store(here, f"twice-{macs}", one, f"{here.network}.0.11")
    discovered(here, path)
    assert list(records(path)) == ["prod-5a1f0c3e"]
    here.node("two", 11, machine={"uuid": second, "serial": "ACME-1", "links": [{"name": "enp1s0", "mac": f"3c:ec:ef:00:00:{macs}"}]})
    first = (Path(path) / "machines" / "prod-5a1f0c3e.yaml").read_bytes()
    discovered(here, path)
    assert (Path(path) / "machines" / "prod-5a1f0c3e.yaml").read_bytes() == first
    others = [name for name in records(path) if name != "prod-5a1f0c3e"]
    assert all(any(entry["type"] == "WeakIdentity" for entry in status(path, name)["conditions"]) for name in others)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_strings_are_read_shown_and_recorded_harmlessly(here: World, kind: str) -> None:
    text = HOSTILE[kind]
    machine = {"uuid": GOOD, "serial": text, "product_name": text, "manufacturer": text,
               "links": [LINK, {**LINK, "name": text[:200], "mac": "3c:ec:ef:00:00:02"}],
               "disks": [{"name": "sda"}, {"name": "sdb", "serial": text, "model": text, "wwid": text, "bus_path": text}]}
    address = here.node("strange", 20, machine=machine, dhcp_hostname=text)
    path = store(here, f"strange-{kind}", address)
    found = discovered(here, path)
    assert found["found"][0]["uuid"] == GOOD
    ((name, record),) = records(path).items()
    assert name == "prod-5a1f0c3e"
    for value in (json.dumps(record), json.dumps(status(path, name))):
        assert "A" * 257 not in value and not set("\u202e\u2066\x1b\x07").intersection(value) and "\\u001b" not in value and "\\u202e" not in value
    assert sorted(entry.name for entry in Path(path).iterdir()) == [".ichor-store", ".state", "clusters", "machines"]
    assert not list(here.folder.rglob("HERE"))
    approved = here.run("talos_machine_approval", machine=name, role="worker", hostname="w-1", install={"disk": "/dev/sda"}, store_path=path)
    assert approved.status == 0, approved.output
    assert here.run("talos_machine_info", cluster="prod", store_path=path).status == 0


def test_a_host_with_250_addresses_and_new_uuids_in_each_pass_fills_no_store(here: World) -> None:
    addresses = [f"{here.network}.2.{number}" for number in range(1, 251)]
    path = store(here, "flood", *addresses)
    pending: list[str] = []
    for invented in range(3):
        for number, address in enumerate(addresses):
            links = [{**LINK, "mac": f"3c:ec:ef:{invented:02x}:00:{number:02x}"}]
            board = {"uuid": f"{invented:06x}{number:02x}-51c8-4f0e-8d39-3cecef{number:06x}", "serial": f"S-{invented}-{number}", "links": links}
            here.lab.add(name=f"flood-{number}", description={"address": address, "machine": board}, wait=False)
        here.lab.settled()
        found = discovered(here, path, timing={"settle": 0.02, "connect": 20.0, "call": 60.0})
        assert len(records(path)) == 100 and (not pending or sorted(records(path)) == pending), "the first hundred stay, and no more come"
        assert found["changed"] is (not pending)
        pending = sorted(records(path))
        for number in range(250):
            here.lab.remove(node=f"flood-{number}")
