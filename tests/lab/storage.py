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
        if self.state and not self.state_hidden:
            found.append(("STATE", 3))
        if self.ephemeral:
            found.append(("EPHEMERAL", 4))
        return found + [(label, 5 + index) for index, label in enumerate(EXTRA_VOLUMES) if label in self.extra]

    def wipe(self, label: str) -> None:
        """Wipes and deletes one partition."""
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
        if self.identity is None:
            self.identity = new_identity()
