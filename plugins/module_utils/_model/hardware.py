# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a machine's hardware may identify it, and what makers leave in those places (design section 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .identity import Identity, canonical_mac, canonical_uuid

if TYPE_CHECKING:
    from .observations import Link

#: UUIDs that whole batches of boards share because nobody programmed them. All zeros, all ones and every other UUID
#: of one repeated byte are told by rule.
VENDOR_UUIDS = frozenset({
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
    "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "03020100-0504-0706-0809-0a0b0c0d0e0f",
    "01234567-89ab-cdef-0123-456789abcdef",
    "67452301-ab89-efcd-0123-456789abcdef",
    "12345678-1234-1234-1234-123456789abc",
    "12345678-1234-1234-1234-123456789012",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "78563412-3412-7856-90ab-cddeefaabbcc",
    "01234567-8910-1112-1314-151617181920",
    "11111111-2222-3333-4444-555555555555",
    "00112233-4455-6677-8899-aabbccddeeff",
    "33221100-5544-7766-8899-aabbccddeeff",
    "00000000-0000-0000-0000-000000000001",
    "ffffff00-ffff-ffff-ffff-ffffffffffff",
})

#: Serials of the same kind, without spaces, dots, dashes and underscores.
_SERIAL_WORDS = frozenset({
    "defaultstring", "default", "tobefilledbyoem", "tobefilled", "filledbyoem", "systemserialnumber", "systemserial",
    "chassisserialnumber", "baseboardserialnumber", "boardserialnumber", "type1serialnumber", "type2boardserialnumber",
    "serialnumber", "serial", "sn", "none", "null", "nil", "na", "n/a", "notspecified", "notapplicable", "notavailable",
    "notset", "notsettable", "notpresent", "unspecified", "unknown", "undefined", "empty", "invalid", "oem", "oemstring",
    "systemproductname", "productname", "systemmanufacturer", "systemversion", "nosn", "noserial", "noserialnumber",
    "sernum0", "sernum1", "test", "sample", "xxxx", "0123456789", "01234567890", "123456789", "1234567890", "12345678",
    "1234567", "123456", "12345", "1234", "9876543210", "987654321", "0123456789abcdef", "abcdefgh", "assettag",
})

#: Drivers of network devices on USB, a server's management processor among them.
_USB_DRIVERS = frozenset({
    "cdc_ether", "cdc_ncm", "cdc_eem", "cdc_mbim", "cdc_subset", "rndis_host", "asix", "ax88179_178a", "aqc111", "r8152",
    "r8153_ecm", "smsc75xx", "smsc95xx", "lan78xx", "dm9601", "mcs7830", "pegasus", "rtl8150", "sr9700", "sr9800", "usbnet",
})


def is_placeholder_uuid(uuid: str) -> bool:
    """Whether a canonical UUID says nothing about the board."""
    digits = uuid.replace("-", "")
    return uuid in VENDOR_UUIDS or digits == digits[:2] * 16


def is_placeholder_serial(serial: str) -> bool:
    """Whether a serial says nothing about the machine; '' does not either."""
    bare = re.sub(r"[\s.\-_]", "", serial.lower())
    return len(set(bare)) < 2 or bare in _SERIAL_WORDS


def is_universal_mac(mac: str) -> bool:
    """Whether a canonical MAC was given by a maker: not locally administered, not a group address, not all zeros."""
    return bool(mac) and not int(mac[:2], 16) & 0b11 and mac != "00:00:00:00:00:00"


def is_usb_link(link: Link) -> bool:
    """Whether a link hangs on USB, by its bus path or its driver."""
    return "usb" in link.bus_path.lower() or link.driver.lower() in _USB_DRIVERS


def permanent_macs(links: Iterable[Link]) -> tuple[str, ...]:
    """The permanent MACs of physical Ethernet links, sorted: no locally administered address, no USB device."""
    return tuple(sorted({
        mac for link in links
        if link.physical and not is_usb_link(link) and is_universal_mac(mac := canonical_mac(link.permanent_mac))
    }))


def meaningful(identity: Identity) -> Identity:
    """The identity without what says nothing: placeholders count as absent, on both sides of a comparison."""
    uuid = canonical_uuid(identity.uuid)
    serial = identity.serial.strip()
    macs = {canonical_mac(mac) for mac in identity.macs}
    return Identity("" if is_placeholder_uuid(uuid) else uuid, "" if is_placeholder_serial(serial) else serial,
                    tuple(sorted(mac for mac in macs if is_universal_mac(mac))))


def same_machine(one: Identity, other: Identity) -> bool:
    """Equal means all three parts, and a UUID that says something (section 6)."""
    first, second = meaningful(one), meaningful(other)
    return bool(first.uuid) and first == second
