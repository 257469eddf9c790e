# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's small parts by themselves: resources' bytes, YAML, selectors, certificates, the roles' table, etcd's rules."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml

from plugins.module_utils._node import messages
from tests.lab import api, certificates, etcd, goyaml, specs, tls
from tests.lab.definitions import definitions
from tests.lab.hardware import describe, pretty
from tests.lab.selectors import expression_error, matching

# type -> message of the product's descriptors
CLASSES = {
    "SystemInformations.hardware.talos.dev": "hardware.SystemInformationSpec", "Disks.block.talos.dev": "block.DiskSpec",
    "LinkStatuses.net.talos.dev": "network.LinkStatusSpec", "DiscoveredVolumes.block.talos.dev": "block.DiscoveredVolumeSpec",
    "MachineStatuses.runtime.talos.dev": "runtime.MachineStatusSpec", "SecurityStates.talos.dev": "runtime.SecurityStateSpec",
    "AddressStatuses.net.talos.dev": "network.AddressStatusSpec", "Members.cluster.talos.dev": "cluster.MemberSpec",
}


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_field_numbers_are_those_of_the_descriptors(kind: str) -> None:
    known = {field.number for field in messages.spec_class(CLASSES[kind]).DESCRIPTOR.fields}
    assert {field.number for field in specs.TABLES[kind]} <= known


def test_a_link_as_bytes_and_as_yaml() -> None:
    machine = describe("n", {"links": [{"name": "bond0", "kind": "bond", "bondMaster": {"mode": "802.3ad"}}, {"name": "eth0.5", "kind": "vlan",
                                       "vlan": {"vlanID": 5, "vlanProtocol": "802.1q"}}]})
    for link in machine.links[:2]:
        raw, text = specs.encode("LinkStatuses.net.talos.dev", {key: value for key, value in link.items() if key != "name"}, 14)
        decoded = messages.spec_class("network.LinkStatusSpec").FromString(raw)
        assert decoded.kind == link["kind"] and decoded.permanent_addr == b"" and yaml.safe_load(text)["kind"] == link["kind"]
    assert (decoded.vlan.vid, decoded.vlan.protocol) == (5, 0x8100)


@pytest.mark.parametrize(("value", "text", "older"), [
    ("1.0", '"1.0"', '"1.0"'), ("", '""', '""'), ("00:00:00:00:00:00", "'00:00:00:00:00:00'", '"00:00:00:00:00:00"'), ("52:54:00:00:0b:01",) * 3,
    ("yes", '"yes"', '"yes"'), ("{.a}", "'{.a}'", "'{.a}'"), ("a: b", "'a: b'", "'a: b'"), ("null", '"null"', '"null"'),
    ("\x1b[0m", '"\\x1b[0m"', '"\\x1b[0m"'),
])
def test_quoting(value: str, text: str, older: str) -> None:
    assert (goyaml.scalar(value), goyaml.scalar(value, True)) == (text, older)
    assert yaml.safe_load(text) == value


def test_yaml_is_read_back() -> None:
    tree = {"a": [{"b": "c", "d": {"e": [1, "2"]}}, "x"], "f": {}, "g": [], "h": "two\nlines\n", "i": True, "j": None}
    assert yaml.safe_load(goyaml.dump(tree)) == tree


@pytest.mark.parametrize(("size", "text"), [(512110190592, "512 GB"), (1024209543168, "1.0 TB"), (104857600, "105 MB"), (512, "512 B")])
def test_sizes(size: int, text: str) -> None:
    assert pretty(size) == text


DISKS = describe("n", {"disks": [{"name": "sda"}, {"name": "nvme0n1", "size": 10**12, "symlinks": ["/dev/disk/by-id/x"]},
                                 {"name": "sr0", "cdrom": True}]}).disks


@pytest.mark.parametrize(("selector", "names"), [
    ({"model": "ACME*"}, ["nvme0n1", "sda"]), ({"size": ">= 900GB"}, ["nvme0n1"]), ({"type": "nvme"}, ["nvme0n1"]), ({"model": "NOPE*"}, []),
    ('disk.dev_path == "/dev/sda"', ["sda"]), ("disk.size > 600u * GB && !disk.readonly", ["nvme0n1"]), ('"/dev/disk/by-id/x" in disk.symlinks', ["nvme0n1"]),
    ('glob("ACME*", disk.model) && disk.transport == "sata"', ["sda"]), ('disk.model == "NOPE"', []),
])
def test_selectors(selector: Any, names: list[str]) -> None:
    assert matching(DISKS, selector) == names


def test_mistakes_in_expressions() -> None:
    assert expression_error('disk.dev_path == "/dev/sda"') is None
    assert "undefined field 'nope'" in str(expression_error('disk.nope == "x"'))
    assert "mismatched input '<EOF>'" in str(expression_error("disk.dev_path =="))


@pytest.mark.parametrize(("fields", "alert"), [
    ({}, None), ({"key_type": "rsa"}, None), ({"key_type": "ecdsa"}, None), ({"usage": None}, 42), ({"usage": "any"}, 42), ({"usage": "server"}, 42),
    ({"usage": "client-and-server"}, 42), ({"start": -48, "lifetime": 24}, 45), ({"start": 24}, 45),
])
def test_client_certificates(fields: dict[str, Any], alert: int | None) -> None:
    from datetime import timedelta

    now = time.time()
    authority = certificates.new_authority(now - 60, "talos")
    hours = {key: timedelta(hours=value) for key, value in fields.items() if key in ("start", "lifetime")}
    leaf = certificates.issue_client(authority, now, ["os:admin"], **{**fields, **hours})
    assert tls.client_alert(leaf.certificate, [authority.certificate], now) == alert
    assert tls.client_alert(leaf.certificate, [certificates.new_authority(now - 60, "talos").certificate], now) == (alert if alert == 45 else 48)
    assert tls.client_alert(None, [authority.certificate], now) == 116


def test_versions_differ_in_their_methods() -> None:
    assert api.find(12, "machine.MachineService", "GenerateConfiguration") and not api.find(13, "machine.MachineService", "GenerateConfiguration")
    assert not api.find(13, "cosi.resource.State", "Teardown") and api.find(14, "cosi.resource.State", "Teardown")
    assert not api.knows_service(12, "machine.LifecycleService") and api.knows_service(13, "machine.LifecycleService")


def test_every_known_method_is_in_the_table() -> None:
    for service in ("machine.MachineService", "cosi.resource.State", "storage.StorageService"):
        assert set(messages.method_names(service)) <= set(api.SERVICES[service])


def test_types_of_the_two_versions() -> None:
    assert definitions(14).namespace("BootIDs.runtime.talos.dev") == "runtime"
    assert definitions(13).namespace("UnattendedInstallStatuses.runtime.talos.dev") is None
    assert definitions(13).sensitive("machineconfigs.config.talos.dev") and not definitions(13).sensitive("Disks.block.talos.dev")


def cluster(members: int) -> tuple[etcd.Cluster, set[int]]:
    down: set[int] = set()
    data = etcd.new_cluster("ca", lambda member: member not in down, "a0", "127.0.0.1")
    for number in range(1, members):
        member = data.cluster.add_learner(etcd.peer_url(f"127.0.0.{number + 1}"))
        member.name = f"a{number}"
        data.cluster.promote(member.id)
    return data.cluster, down


def test_one_learner_at_a_time() -> None:
    made, unused = cluster(1)
    made.add_learner("https://127.0.0.9:2380")
    with pytest.raises(etcd.EtcdError, match="too many learner members"):
        made.add_learner("https://127.0.0.8:2380")


def test_the_last_member_stays() -> None:
    made, unused = cluster(1)
    with pytest.raises(etcd.EtcdError, match="not enough started members"):
        made.remove(made.leader, made.leader)


def test_a_removal_that_would_break_the_quorum() -> None:
    made, down = cluster(3)
    first, second, third = made.members
    down.add(third)
    with pytest.raises(etcd.EtcdError, match="unhealthy cluster"):
        made.remove(second, first)
    made.remove(third, first)
    assert set(made.members) == {first, second} and made.quorum()


def test_quorum_and_leader() -> None:
    made, down = cluster(3)
    down.add(made.leader)
    assert made.quorum() and made.leader not in down
    down.add(made.leader)
    assert not made.quorum() and made.leader == 0


def test_a_snapshot_has_its_hash_at_the_end() -> None:
    made, unused = cluster(1)
    data = etcd.snapshot(made)
    assert len(data) % 512 == 32 and etcd.valid_snapshot(data) and not etcd.valid_snapshot(data[:-1] + b"x") and not etcd.valid_snapshot(b"garbage" * 100)
