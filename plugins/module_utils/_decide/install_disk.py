# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disk of a node a configuration installs to (design section 9, step 7)."""

from __future__ import annotations

from collections.abc import Mapping

from .._machineconfig.bring import BroughtConfig
from .._model.errors import TalosError
from .._model.observations import Disk
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.records import Json, JsonMap, text_at
from .disk_selector import matching, named


def picked(config: BroughtConfig, disks: Observed[tuple[Disk, ...]]) -> Observed[Disk]:
    """The one disk that the configuration picks on this node, see `picked_by`."""
    return picked_by(config.install_disk, config.install_fields, config.install_selector, disks)


def picked_by(path: str, fields: Mapping[str, str], selector: str, disks: Observed[tuple[Disk, ...]]) -> Observed[Disk]:
    """The one disk that a path, or else a selector, picks on this node. fields: the selector as far as it is not Talos's to evaluate.

    Absent: nothing is named, or none matches. Unknown: the disks could not be read, several match, or the selector is an
    expression that only Talos can evaluate; the message says which.
    """
    if isinstance(disks, Unknown):
        return Unknown("InstallDiskUnknown", f"the disks of the node could not be read ({disks.message or disks.reason})")
    here = disks.value if isinstance(disks, Present) else ()
    try:
        if path:
            found, said = named(path, here), path
        elif fields:
            found, said = matching(fields, here), selector
        elif selector:
            return Unknown("InstallDiskUnknown", "the install disk is chosen by an expression that only Talos can evaluate")
        else:
            return Absent("the configuration names no install disk")
    except TalosError as problem:
        return Unknown("InstallDiskUnknown", problem.message)
    if not found:
        return Absent(f"no disk of the node is {said}")
    if len(found) > 1:
        return Unknown("InstallDiskUnknown", f"{said} picks {len(found)} disks: {', '.join(disk.path for disk in found)}")
    return Present(found[0])


def not_the_approved(disk: Disk, approved: Json) -> str:
    """What tells the picked disk from `spec.approvedDisk`, or ''. Compared is what was recorded; names of devices move."""
    if not isinstance(approved, dict) or not approved:
        return ""
    record: JsonMap = approved
    for key, value in (("wwid", disk.wwid), ("serial", disk.serial), ("model", disk.model)):
        wanted = text_at(record, key)
        if wanted and wanted != value:
            return f"{disk.path} has {key} {value or 'none'} and the approved disk has {wanted}"
    size = record.get("size")
    if isinstance(size, int) and size and size != disk.size:
        return f"{disk.path} has {disk.size} bytes and the approved disk has {size}"
    return ""
