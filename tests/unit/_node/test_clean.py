# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node says is not trusted: strings, lists, unknown numbers (design section 5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ichor.talos.plugins.module_utils._node import clean, messages, reads


@pytest.mark.parametrize(("said", "kept"), [
    ("WD-1234 5", "WD-1234 5"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07name", "name"),
    ("\x1b]8;;http://x\x1b\\link", "link"),
    ("a\x1b(0b\x9b31mc", "a(0bc"),
    ("a\x00b\x07c\x7fd\x85e", "abcde"),
    ("one\ntwo\tthree\r", "one two three"),
    ("abc\u202egnp.exe\u2066x\u2069", "abcgnp.exex"),
    ("zero\u200bwidth\u200d\ufeff\u2060", "zerowidth"),
    ("sur\ud800rogate", "surrogate"),
    ("tag\U000e0041s", "tags"),
    ("  around  ", "around"),
    ("Zürich 東京 ñ", "Zürich 東京 ñ"),
    ("{{ lookup('pipe', 'id') }}", "{{ lookup('pipe', 'id') }}"),
    ("../../etc/passwd", "../../etc/passwd"),
    ("x" * 10_000, "x" * 256),
    ("\x1b[0m" * 5000 + "end", ""),
])
def test_strings(said, kept):
    assert clean.text(said) == kept


@given(st.text())
def test_any_text_ends_printable_and_short(said):
    kept = clean.text(said)
    assert len(kept) <= 256
    assert "\x1b" not in kept and not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in kept)
    assert not set(kept) & set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")
    assert clean.text(kept) == kept


def test_macs():
    assert clean.mac(bytes.fromhex("aabbccddeeff")) == "aa:bb:cc:dd:ee:ff"
    assert [clean.mac(raw) for raw in (b"", bytes(6), bytes(20), b"abc")] == ["", "", "", ""]


def disk(**fields):
    return messages.spec_class("block.DiskSpec")(**fields)


def volume(**fields):
    return messages.spec_class("block.DiscoveredVolumeSpec")(**fields)


def test_disks_say_what_is_on_them():
    specs = (
        ("loop", disk(dev_path="/dev/blank")),
        ("nvme0n1", disk(dev_path="/dev/nvme0n1", size=10, serial="\x1b[1mS1", transport="nvme", symlinks=["/dev/disk/by-id/x"])),
        ("sda", disk(dev_path="/dev/sda", transport="USB")),
        ("sdb", disk(dev_path="/dev/sdb", bus_path="/pci0000:00/usb1/1-1")),
        ("sdc", disk(dev_path="/dev/sdc")),
        ("sdd", disk(dev_path="/dev/sdd")),
    )
    volumes = (
        ("nvme0n1", volume(dev_path="/dev/nvme0n1", name="gpt")),
        ("nvme0n1p1", volume(dev_path="/dev/nvme0n1p1", parent_dev_path="/dev/nvme0n1", partition_label="EFI", name="vfat")),
        ("nvme0n1p2", volume(dev_path="/dev/nvme0n1p2", parent_dev_path="/dev/nvme0n1", partition_label="META")),
        ("nvme0n1p3", volume(dev_path="/dev/nvme0n1p3", parent_dev_path="/dev/nvme0n1")),
        ("sda", volume(dev_path="/dev/sda", name="iso9660", label="TALOS")),
        ("sdc", volume(dev_path="/dev/sdc", name="ext4")),
        ("sdd", volume(dev_path="/dev/sdd", name="gpt")),
    )
    found = {one.name: one for one in reads.disks(specs, volumes)}
    assert found["loop"].contents == ()
    assert found["nvme0n1"].contents == ("EFI vfat", "META", "partition")
    assert (found["nvme0n1"].serial, found["nvme0n1"].usb, found["nvme0n1"].boot_medium) == ("S1", False, False)
    assert found["sda"].usb and found["sda"].boot_medium
    assert found["sdb"].usb and not found["sdb"].boot_medium
    assert found["sdc"].contents == ("ext4",)
    assert found["sdd"].contents == ("gpt",)
    assert [(one.device, one.parent, one.label) for one in reads.partitions(volumes)][:2] == [
        ("/dev/nvme0n1p1", "/dev/nvme0n1", "EFI"), ("/dev/nvme0n1p2", "/dev/nvme0n1", "META")]
    assert len(reads.partitions(volumes)) == 3


def test_a_disk_whose_volumes_cannot_be_read_is_not_blank():
    (found,) = reads.disks((("sda", disk(dev_path="/dev/sda")),), None)
    assert found.contents == ("unknown",) and not found.boot_medium


def test_links():
    link = messages.spec_class("network.LinkStatusSpec")
    mac = bytes.fromhex("001122334455")
    found = {one.name: one for one in reads.links((
        ("bond0", link(type=1, kind="bond", permanent_addr=b"", hardware_addr=mac)),
        ("eth0", link(type=1, permanent_addr=mac, hardware_addr=mac, operational_state=6, speed_megabits=-1)),
        ("lo", link(type=772)),
        ("strange", link(type=4242, operational_state=77, link_state=True)),
    ))}
    assert [name for name, one in found.items() if one.physical] == ["eth0"]
    assert found["eth0"].up and found["eth0"].speed_megabits == 0
    assert found["strange"].up


def test_lists_are_capped():
    assert len(reads.disks(tuple((f"d{n}", disk()) for n in range(5000)), ())) == clean.LIST_LIMIT
    answer = messages.message_class("machine.EtcdMemberListResponse")(messages=[{"members": [{"id": n} for n in range(5000)]}])
    assert len(reads.etcd_members(answer)) == clean.LIST_LIMIT


@pytest.mark.parametrize(("number", "stage"), [
    (0, "unknown"), (1, "booting"), (2, "installing"), (3, "maintenance"), (4, "running"), (5, "rebooting"), (6, "shuttingDown"),
    (7, "resetting"), (8, "upgrading"), (9, "unknown"), (-1, "unknown"), (1_000_000, "unknown"),
])
def test_stages(number, stage):
    status = messages.spec_class("runtime.MachineStatusSpec")(stage=number, status={"ready": True, "unmet_conditions": [{"name": "a", "reason": "\x1bb"}]})
    found = reads.stage(status, None)
    assert (found.stage, found.ready, found.unmet, found.unattended_install) == (stage, True, ("a: b",), "")


@pytest.mark.parametrize(("number", "phase"), [
    (0, "pending"), (1, "installing"), (2, "installed"), (3, "waiting-for-reboot"), (4, "failed"), (5, "unknown"), (-7, "unknown"),
])
def test_unattended_install(number, phase):
    assert reads.stage(None, messages.spec_class("runtime.UnattendedInstallStatusSpec")(phase=number)).unattended_install == phase


def test_services_and_empty_answers():
    make = messages.message_class("machine.ServiceListResponse")
    answer = make(messages=[{"services": [
        {"id": "etcd", "state": "Running", "health": {"healthy": True}}, {"id": "kubelet", "state": "Waiting", "health": {"unknown": True}},
        {"id": "apid", "state": "Running"}]}])
    assert [(one.id, one.healthy) for one in reads.services(answer)] == [("etcd", True), ("kubelet", None), ("apid", None)]
    assert reads.services(make()) == ()
    assert reads.etcd_members(messages.message_class("machine.EtcdMemberListResponse")()) == ()
    assert reads.etcd_status(messages.message_class("machine.EtcdStatusResponse")()) is None
