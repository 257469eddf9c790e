# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks a person's words pick: a device, or Talos's install disk selector (design section 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from .._model.errors import TalosError
from .._model.observations import Disk

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15,
          "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "pib": 2**50}
_SIZE = re.compile(r"(<=|>=|==|<|>|=|)\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\Z")
_KINDS = ("nvme", "sd", "hdd", "ssd")


def named(disk: str, disks: Iterable[Disk]) -> tuple[Disk, ...]:
    """The disks that a device path (or one of its links, or a kernel name) stands for."""
    return tuple(entry for entry in disks if disk in (entry.path, entry.name, *entry.symlinks))


def matching(selector: Mapping[str, object], disks: Iterable[Disk]) -> tuple[Disk, ...]:
    """The disks for which every field of the selector holds, as Talos's `diskSelector` means them.

    Raises TalosError `InvalidInput` for an empty selector, a field that it does not know and a size that is none.
    """
    wanted = {key: str(value).strip() for key, value in selector.items() if value not in (None, "")}
    unknown = sorted(set(wanted) - set(_FIELDS))
    if unknown or not wanted:
        what = f"does not know {', '.join(unknown)}" if unknown else "is empty and would pick every disk"
        raise TalosError("InvalidInput", f"The disk selector {what}.", f"Use one or more of {', '.join(sorted(_FIELDS))}.")
    if "size" in wanted and _bound(wanted["size"]) is None:
        raise TalosError("InvalidInput", f"The size {wanted['size']!r} of the disk selector is none.", "Write for example >= 100GB.")
    if "type" in wanted and wanted["type"].lower() not in _KINDS:
        raise TalosError("InvalidInput", f"The type {wanted['type']!r} of the disk selector is none.", f"Use one of {', '.join(_KINDS)}.")
    return tuple(disk for disk in disks if all(_FIELDS[key](disk, value) for key, value in wanted.items()))


def glob(text: str, pattern: str) -> bool:
    """Talos's glob: `*` stands for any run of characters, `?` for one, all else for itself."""
    expression = "".join(".*" if letter == "*" else "." if letter == "?" else re.escape(letter) for letter in re.sub(r"\*+", "*", pattern))
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _bound(text: str) -> tuple[str, float] | None:
    found = _SIZE.match(text.strip().lower())
    unit = _UNITS.get(found.group(3)) if found else None
    return (found.group(1), float(found.group(2)) * unit) if found and unit else None


def _size(disk: Disk, wanted: str) -> bool:
    bound = _bound(wanted)
    if bound is None:
        return False
    sign, size = bound
    return {"<=": disk.size <= size, ">=": disk.size >= size, "<": disk.size < size, ">": disk.size > size}.get(sign, disk.size == size)


def _kind(disk: Disk, wanted: str) -> bool:
    """Talos asks the transport for nvme and sd, and whether it turns for hdd and ssd: an NVMe disk is an ssd as well."""
    return {"nvme": disk.transport == "nvme", "sd": disk.transport == "mmc", "hdd": disk.rotational, "ssd": not disk.rotational}[wanted.lower()]


_FIELDS: Mapping[str, Callable[[Disk, str], bool]] = {
    "name": lambda disk, value: glob(disk.path, value),
    "model": lambda disk, value: glob(disk.model, value),
    "serial": lambda disk, value: glob(disk.serial, value),
    "modalias": lambda disk, value: glob(disk.modalias, value),
    "uuid": lambda disk, value: glob(disk.uuid, value),
    "wwid": lambda disk, value: glob(disk.wwid, value),
    "busPath": lambda disk, value: glob(disk.bus_path, value),
    "size": _size,
    "type": _kind,
}
