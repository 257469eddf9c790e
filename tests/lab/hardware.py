# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a machine is made of, from a machine description (a mapping) with good defaults for everything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Hardware:
    """A machine as its firmware and kernel describe it. Links and disks are dicts with the YAML keys of their resources."""

    uuid: str
    serial: str
    manufacturer: str = "Acme"
    product_name: str = "Metal-1"
    product_version: str = "1.0"
    bios_version: str = ""
    wake_up_type: str = "Power Switch"
    sku: str = "SKU1"
    links: list[dict[str, Any]] = field(default_factory=list)
    disks: list[dict[str, Any]] = field(default_factory=list)
    processors: list[dict[str, Any]] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    extensions: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    secure_boot: bool = False
    uki: bool = True
    selinux: str = "enabled, enforcing"
    platform: str = "metal"
    arch: str = "amd64"
    cmdline: str = "talos.platform=metal console=tty0 init_on_alloc=1 slab_nomerge"
    sparse: bool = False  # leave out what the recorded nodes did not publish

    def disk(self, path_or_name: str) -> dict[str, Any] | None:
        name = path_or_name.removeprefix("/dev/")
        return next((disk for disk in self.disks if disk["dev_path"] == "/dev/" + name or path_or_name in disk.get("symlinks", ())), None)


def describe(name: str, description: Mapping[str, Any]) -> Hardware:
    """Hardware of a machine description; what it leaves out is derived from the node's name."""
    seed = hashlib.sha256(name.encode()).hexdigest()
    given = dict(description)
    uuid = given.pop("uuid", f"{seed[:8]}-{seed[8:12]}-4{seed[13:16]}-8{seed[17:20]}-{seed[20:32]}")
    serial = given.pop("serial", "SN" + seed[:8].upper())
    links = [link(item, index, seed) for index, item in enumerate(given.pop("links", [{"name": "enp1s0"}, {"name": "enp2s0", "up": False}]))]
    if not any(item["name"] == "lo" for item in links):
        links.append(loopback())
    disks = [disk(item, index, seed) for index, item in enumerate(given.pop("disks", [{"name": "sda"}]))]
    processors = given.pop("processors", [{"socket": "CPU0", "manufacturer": "Acme", "productName": "Acme CPU", "coreCount": 8, "threadCount": 16}])
    memory = given.pop("memory", [{"sizeMiB": 16384, "deviceLocator": "DIMM 0", "manufacturer": "Acme"}])
    unknown = set(given) - set(Hardware.__dataclass_fields__)
    if unknown:
        raise ValueError(f"machine {name}: unknown keys {', '.join(sorted(unknown))}")
    return Hardware(uuid=uuid, serial=serial, links=links, disks=disks, processors=processors, memory=memory, **given)


def _mac(seed: str, index: int) -> str:
    return "52:54:00:" + ":".join(seed[2 * part:2 * part + 2] for part in range(2)) + f":{index + 1:02x}"


def loopback() -> dict[str, Any]:
    return {
        "name": "lo", "index": 1, "type": "loopback", "flags": "UP,LOOPBACK,RUNNING,LOWER_UP", "hardwareAddr": "00:00:00:00:00:00", "permanentAddr": "",
        "broadcastAddr": "", "mtu": 65536, "queueDisc": "noqueue", "operationalState": "unknown", "linkState": True, "port": "Other", "duplex": "Unknown",
    }


def link(item: Mapping[str, Any], index: int, seed: str) -> dict[str, Any]:
    """A link. `up`, `mac` and `name` are short forms; `kind` bond, vlan, dummy… has no permanent address unless it is given."""
    given = dict(item)
    up = given.pop("up", True)
    kind = given.get("kind", "")
    mac = given.pop("mac", None) or given.get("hardwareAddr") or _mac(seed, index)
    base = {
        "index": index + 2, "type": "ether", "linkIndex": 0,
        "flags": "UP,BROADCAST,RUNNING,MULTICAST,LOWER_UP" if up else "BROADCAST,MULTICAST",
        "hardwareAddr": mac, "permanentAddr": "" if kind else mac, "broadcastAddr": "ff:ff:ff:ff:ff:ff", "mtu": 1500,
        "queueDisc": "pfifo_fast" if up else "noop", "operationalState": "up" if up else "down", "kind": kind, "slaveKind": "",
        "linkState": up, "port": "TwistedPair" if not kind else "Other", "duplex": "Full" if up else "Unknown",
    }
    if up and not kind:
        base["speedMbit"] = 1000
    if not kind:
        base.update(busPath=f"0000:{index + 1:02x}:00.0", driver="e1000e")
    base.update(given)
    return base


def pretty(size: int) -> str:
    """A size as Talos prints it (decimal units, two or three digits)."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if value < 999.5 or unit == "PB":
            return f"{value:.1f} {unit}" if value < 10 and unit != "B" else f"{value:.0f} {unit}"
        value /= 1000
    raise AssertionError(size)


def disk(item: Mapping[str, Any], index: int, seed: str) -> dict[str, Any]:
    """A disk. `name` is the kernel's; `usb`, `cdrom` and `readonly` are short forms. `boot` marks the boot medium."""
    given = dict(item)
    name = given.pop("name", f"sd{chr(97 + index)}")
    usb, cdrom = given.pop("usb", False), given.get("cdrom", False)
    given.pop("boot", None)
    size = given.get("size", 512110190592)
    sector = 2048 if cdrom else 512
    base: dict[str, Any] = {
        "dev_path": f"/dev/{name}", "size": size, "pretty_size": pretty(size), "io_size": sector, "sector_size": sector, "readonly": bool(cdrom),
        "cdrom": bool(cdrom), "sub_system": "/sys/class/block", "transport": "nvme" if name.startswith("nvme") else ("usb" if usb else "sata"),
    }
    if not cdrom:
        base.update(
            model="ACME NVMe" if name.startswith("nvme") else ("ACME Stick" if usb else "ACME SSD"),
            serial=f"DISK{seed[:4].upper()}{index}",
            wwid=("eui." if name.startswith("nvme") else "naa.") + hashlib.sha256(f"{seed}{index}".encode()).hexdigest()[:16],
            bus_path=f"/pci0000:00/0000:00:{'14' if usb else '17'}.0/{'usb1/1-1' if usb else f'ata{index + 1}'}/host{index}/target{index}:0:0/{index}:0:0:0",
        )
    base.update(given)
    return base
