# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node told, in the shape of a TalosMachine's status, and back (design section 3)."""

from __future__ import annotations

from .._model.moments import moment
from .._model.observations import Certificate, Disk, Link, NodeFacts
from .._model.observed import Present
from .._model.records import Json, Record, dig, list_at, text_at


def disk_status(disk: Disk) -> dict[str, Json]:
    """One entry of `status.discoveredDisks`; what a disk does not say is left out."""
    entry: dict[str, Json] = {
        "name": disk.name, "path": disk.path, "size": disk.size, "wwid": disk.wwid, "serial": disk.serial, "model": disk.model,
        "uuid": disk.uuid, "busPath": disk.bus_path, "transport": disk.transport, "modalias": disk.modalias,
        "subsystem": disk.subsystem, "rotational": disk.rotational, "readonly": disk.readonly, "cdrom": disk.cdrom, "usb": disk.usb,
        "bootMedium": disk.boot_medium, "symlinks": list(disk.symlinks), "contents": list(disk.contents),
    }
    return {key: value for key, value in entry.items() if key in ("name", "path", "size") or value}


def disk_of(entry: Json) -> Disk:
    """The disk that an entry of `status.discoveredDisks` describes."""
    size = dig(entry, "size")
    return Disk(
        name=text_at(entry, "name"), path=text_at(entry, "path"), size=size if isinstance(size, int) else 0,
        wwid=text_at(entry, "wwid"), serial=text_at(entry, "serial"), model=text_at(entry, "model"), uuid=text_at(entry, "uuid"),
        bus_path=text_at(entry, "busPath"), transport=text_at(entry, "transport"), modalias=text_at(entry, "modalias"),
        subsystem=text_at(entry, "subsystem"), rotational=dig(entry, "rotational") is True, readonly=dig(entry, "readonly") is True,
        cdrom=dig(entry, "cdrom") is True, usb=dig(entry, "usb") is True, boot_medium=dig(entry, "bootMedium") is True,
        symlinks=_texts(entry, "symlinks"), contents=_texts(entry, "contents"),
    )


def _texts(entry: Json, key: str) -> tuple[str, ...]:
    return tuple(text for text in list_at(entry, key) if isinstance(text, str))


def disks_of(machine: Record) -> tuple[Disk, ...]:
    """The disks that discovery recorded."""
    return tuple(disk_of(entry) for entry in list_at(machine.status, "discoveredDisks"))


def link_status(link: Link) -> dict[str, Json]:
    """One entry of `status.discoveredLinks`."""
    entry: dict[str, Json] = {
        "name": link.name, "permanentMAC": link.permanent_mac, "mac": link.mac, "physical": link.physical, "up": link.up,
        "speedMegabits": link.speed_megabits, "busPath": link.bus_path, "driver": link.driver,
    }
    return {key: value for key, value in entry.items() if key == "name" or value}


def pin_values(certificate: Certificate, now: float) -> dict[str, Json]:
    """The pin and when it was read."""
    return {"maintenanceFingerprint": certificate.fingerprint, "maintenanceFingerprintAt": moment(now)}


def hardware_values(facts: NodeFacts) -> dict[str, Json]:
    """What of the hardware was read; what could not be read is not in it, so that the last reading stays."""
    values: dict[str, Json] = {}
    if isinstance(facts.disks, Present):
        values["discoveredDisks"] = [disk_status(disk) for disk in facts.disks.value]
    if isinstance(facts.links, Present):
        values["discoveredLinks"] = [link_status(link) for link in facts.links.value]
    if facts.talos_version:
        values["talosVersion"] = facts.talos_version
    if isinstance(facts.secure_boot, Present):
        values["secureBoot"] = facts.secure_boot.value
    return values


def discovered_status(facts: NodeFacts, now: float) -> dict[str, Json]:
    """Pin and hardware of a node that answers in maintenance mode."""
    return {**pin_values(facts.certificate, now), **hardware_values(facts), "stage": "maintenance", "stageObserved": True}
