# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What survives a reboot: the contents of a machine's disks, by partition."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from tests.lab.etcd import EtcdData

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EXTRA_VOLUMES = ("ETCD", "CRI", "KUBELET", "LOG")  # 1.14 can keep these apart from EPHEMERAL


def new_identity() -> str:
    """A node identity: 32 random bytes in base 62."""
    number, out = int.from_bytes(secrets.token_bytes(32), "big"), ""
    while number:
        number, digit = divmod(number, 62)
        out = _BASE62[digit] + out
    return out.rjust(43, "0")


@dataclass
class Storage:
    """Partitions and what is on them. `system_disk` is the kernel name of the disk with META, None before an install."""

    system_disk: str | None = None
    state: bool = False
    ephemeral: bool = False
    config: bytes | None = None
    identity: str | None = None
    etcd: EtcdData | None = None
    upload: bytes | None = None
    upload_done: bool = False
    meta: dict[int, bytes] = field(default_factory=dict)
    extra: set[str] = field(default_factory=set)
    unreadable: dict[str, str] = field(default_factory=dict)  # partitions that are there without their file system: what is found in them
    wiped_disks: list[str] = field(default_factory=list)
    state_hidden: bool = False  # the partition is there, but this boot does not find it

    @property
    def installed(self) -> bool:
        return self.system_disk is not None

    def partitions(self) -> list[tuple[str, int]]:
        """Labels with their partition numbers, in the order of the disk."""
        if not self.installed:
            return []
        found = [("EFI", 1), ("META", 2)]
        if (self.state or "STATE" in self.unreadable) and not self.state_hidden:
            found.append(("STATE", 3))
        if self.ephemeral or "EPHEMERAL" in self.unreadable:
            found.append(("EPHEMERAL", 4))
        return found + [(label, 5 + index) for index, label in enumerate(EXTRA_VOLUMES) if label in self.extra or label in self.unreadable]

    def wipe(self, label: str, leave: str | None = None) -> None:
        """Wipes one partition, and deletes it unless `leave` says what is left: `empty` or `luks`."""
        if leave not in (None, "empty", "luks"):
            raise ValueError("leave is empty or luks")
        was = label in self.unreadable or (self.state if label == "STATE" else self.ephemeral if label == "EPHEMERAL" else label in self.extra)
        self._wipe(label)
        self.unreadable.pop(label, None)
        if leave is not None and was and label != "META":
            self.unreadable[label] = "" if leave == "empty" else leave

    def _wipe(self, label: str) -> None:
        if label == "STATE":
            self.state, self.config, self.identity = False, None, None
        elif label == "EPHEMERAL":
            self.ephemeral, self.upload = False, None
            if "ETCD" not in self.extra:
                self.drop_etcd()
        elif label == "ETCD":
            self.drop_etcd()
            self.extra.discard(label)
        elif label == "META":
            self.meta.clear()
            self.system_disk = None
        else:
            self.extra.discard(label)

    def drop_etcd(self) -> None:
        """Deletes etcd's data directory."""
        if self.etcd is not None:
            self.etcd.discard()
            self.etcd = None

    def wipe_all(self) -> None:
        for label in ("STATE", "EPHEMERAL", "ETCD", *EXTRA_VOLUMES, "META"):
            self.wipe(label)

    def format_missing(self) -> None:
        """What a boot with a configuration provisions on an installed disk."""
        self.state = self.ephemeral = True
        self.unreadable.clear()
        if self.identity is None:
            self.identity = new_identity()

    def preinstall(self, config: bytes, disk: str, extra: set[str]) -> None:
        """A disk on which somebody installed Talos with this configuration before."""
        self.system_disk, self.config = disk, config
        self.meta.setdefault(0x11, b"dual-boot")
        self.format_missing()
        self.extra |= extra
