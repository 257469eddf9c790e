# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks and install settings as words for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._model.observations import CONTENTS_UNKNOWN, Disk
from .._model.records import Json, dig, text_at


def described(disk: Disk) -> str:
    """Path, model, size and serial."""
    return f"{disk.path} ({_what(disk)})"


def with_contents(disk: Disk) -> str:
    """The same with what is on it."""
    return f"{disk.path} ({', '.join(part for part in (_what(disk), contents_of(disk)) if part)})"


def contents_of(disk: Disk) -> str:
    """`blank`, what is on it, or that this is not known."""
    if disk.contents == CONTENTS_UNKNOWN:
        return "what is on it is not known"
    return f"carries {', '.join(disk.contents)}" if disk.contents else "blank"


def listed(disks: Iterable[Disk]) -> str:
    return ", ".join(described(disk) for disk in disks) or "none"


def _what(disk: Disk) -> str:
    size = f"{disk.size / 1e9:.0f} GB" if disk.size >= 1e9 else f"{disk.size / 1e6:.0f} MB"
    return ", ".join(part for part in (disk.model, size, f"serial {disk.serial}" if disk.serial else "") if part)


def install_words(install: Json) -> str:
    """Which disk install settings ask for; '' where they ask for none."""
    selector = dig(install, "diskSelector")
    if isinstance(selector, Mapping) and selector:
        return f"the disk with {', '.join(f'{key} {value}' for key, value in sorted(selector.items()))}"
    return text_at(install, "disk")


def identity_words(approved: Json) -> str:
    """What of `spec.approvedDisk` tells the disk apart: its WWID, else serial, else model."""
    return next((f"{key} {found}" for key in ("wwid", "serial", "model") if (found := text_at(approved, key))), "of which no identity is known")
