# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mutated answers and specs: they are read, or refused by the parser; nothing else is ever raised."""

from __future__ import annotations

import dataclasses
import random

import pytest
from google.protobuf.message import DecodeError

from ansible_collections.ichor.talos.plugins.module_utils._node import certificates, clean, messages, reads
from tests.unit._node.authority import Authority

ROUNDS = 1000


def definition(kind, **fields):
    return messages.spec_class(kind)(**fields)


DISK = definition("block.DiskSpec", dev_path="/dev/sda", size=1 << 40, serial="SN-1", model="m", wwid="naa.5", transport="sata", symlinks=["/dev/a", "/dev/b"])
VOLUME = definition("block.DiscoveredVolumeSpec", dev_path="/dev/sda1", parent_dev_path="/dev/sda", partition_label="STATE", name="xfs", size=5)
LINK = definition("network.LinkStatusSpec", type=1, permanent_addr=b"\x00\x11\x22\x33\x44\x55", hardware_addr=b"\x00\x11\x22\x33\x44\x55", driver="e1000e")
STATUS = definition("runtime.MachineStatusSpec", stage=3, status={"ready": True, "unmet_conditions": [{"name": "a", "reason": "b"}]})
INSTALL = definition("runtime.UnattendedInstallStatusSpec", image="i", phase=3)
SERVICES = messages.message_class("machine.ServiceListResponse")(messages=[{"services": [{"id": "apid", "state": "Running", "health": {"healthy": True}}]}])
MEMBERS = messages.message_class("machine.EtcdMemberListResponse")(messages=[{"members": [{"id": 7, "hostname": "cp1", "peer_urls": ["https://x:2380"]}]}])
ETCD = messages.message_class("machine.EtcdStatusResponse")(messages=[{"member_status": {"member_id": 7, "leader": 7, "errors": ["e"]}}])

CASES = {
    "disk": (DISK, lambda spec: reads.disks((("sda", spec),), (("sda1", VOLUME),))),
    "volume": (VOLUME, lambda spec: (reads.disks((("sda", DISK),), (("sda1", spec),)), reads.partitions((("sda1", spec),)))),
    "link": (LINK, lambda spec: reads.links((("eth0", spec),))),
    "status": (STATUS, lambda spec: reads.stage(spec, None)),
    "install": (INSTALL, lambda spec: reads.stage(None, spec)),
    "services": (SERVICES, reads.services),
    "members": (MEMBERS, reads.etcd_members),
    "etcd": (ETCD, reads.etcd_status),
}


def mutated(data, chance):
    """A few bytes changed, dropped, doubled or cut off."""
    out = bytearray(data)
    for dummy in range(chance.randint(1, 3)):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(out):
            out[at] = chance.randrange(256)
        elif kind == 1:
            out[at:at] = bytes(chance.randrange(256) for dummy in range(chance.randint(1, 9)))
        elif kind == 2:
            del out[at:at + chance.randint(1, 4)]
        else:
            out += out[:at]
    return bytes(out)


def strings(value):
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from strings(getattr(value, field.name))
    elif isinstance(value, tuple):
        for one in value:
            yield from strings(one)


@pytest.mark.parametrize("case", CASES)
def test_mutated_messages(case):
    message, read = CASES[case]
    chance = random.Random(case)
    good = message.SerializeToString()
    understood = 0
    for dummy in range(ROUNDS):
        try:
            spec = type(message).FromString(mutated(good, chance))
        except DecodeError:
            continue
        understood += 1
        for text in strings(read(spec)):
            assert len(text) <= clean.STRING_LIMIT and clean.text(text) == text
    assert understood > 10


@pytest.mark.parametrize("number", [99, -1, 2**31 - 1])
def test_enum_values_that_nobody_knows(number):
    reading = reads.stage(definition("runtime.MachineStatusSpec", stage=number, status={"ready": True}),
                          definition("runtime.UnattendedInstallStatusSpec", image="i", phase=number))
    assert (reading.stage, reading.unattended_install) == ("unknown", "unknown")
    (link,) = reads.links((("eth0", definition("network.LinkStatusSpec", type=number, permanent_addr=b"\x00\x11\x22\x33\x44\x55")),))
    assert not link.physical


def test_mutated_certificates():
    import ssl
    der = ssl.PEM_cert_to_DER_cert(Authority().leaf(common="cp1")[0])
    assert certificates.read_certificate(der).common_name == "cp1"
    chance = random.Random(7)
    for dummy in range(ROUNDS):
        found = certificates.read_certificate(mutated(der, chance))
        assert found is None or len(found.fingerprint) == 44
