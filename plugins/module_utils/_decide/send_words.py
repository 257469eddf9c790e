# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a send does to the node, for the person who agrees to it (design section 20)."""

from __future__ import annotations

from .._machineconfig.bring import BroughtConfig
from .._model.observations import CONTENTS_UNKNOWN, Disk
from .._model.observed import Observed, Present
from .._model.plan import Target, Warn
from .._model.records import dig
from .disk_words import with_contents

#: Documents by which Talos takes disks, or parts of them, for volumes.
_VOLUMES = ("VolumeConfig", "UserVolumeConfig", "RawVolumeConfig", "SwapVolumeConfig")
#: So many other disks are named.
_SHOWN = 4


def send_words(config: BroughtConfig, disk: Observed[Disk], disks: Observed[tuple[Disk, ...]]) -> str:
    """The disk that is installed to and what is on it, the reboot, and what becomes of the other disks."""
    if not isinstance(disk, Present):
        return "the node installs and reboots; which disk it installs to is not known"
    return f"the node installs to {with_contents(disk.value)} and reboots; {_others(config, disk.value, disks)}"


def _others(config: BroughtConfig, disk: Disk, disks: Observed[tuple[Disk, ...]]) -> str:
    if not isinstance(disks, Present):
        return "its other disks are not known"
    others = [other.path for other in disks.value if other.path != disk.path and not (other.readonly or other.cdrom or other.boot_medium)]
    if not others:
        return "it has no other disk to write to"
    paths = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    named = f"{len(others)} other disk{'' if len(others) == 1 else 's'} ({paths})"
    volumes = _volumes(config)
    if volumes:
        return f"which of the {named} it uses is up to the configuration ({', '.join(volumes[:_SHOWN])})"
    return f"{named} {'is' if len(others) == 1 else 'are'} left alone"


def _volumes(config: BroughtConfig) -> tuple[str, ...]:
    """What in the configuration may use other disks; not a volume of Talos's own that says nothing of a disk."""
    found = [document.id for document in config.documents if document.kind in _VOLUMES
             and (document.kind != "VolumeConfig" or dig(document.data, "provisioning", "diskSelector"))]
    legacy = any(not document.kind and dig(document.data, "machine", "disks") for document in config.documents)
    return (*found, *(("machine.disks",) if legacy else ()))


def send_warnings(target: Target, disk: Observed[Disk]) -> tuple[Warn, ...]:
    """What is on the disk, or that nobody knows."""
    if not isinstance(disk, Present) or not disk.value.contents:
        return ()
    if disk.value.contents == CONTENTS_UNKNOWN:
        return (Warn(target, f"What is on {disk.value.path} is not known; the installation overwrites it.", "9/7-disk-contents-unknown"),)
    return (Warn(target, f"{disk.value.path} is not blank: {', '.join(disk.value.contents)}.", "9/7-disk-not-blank"),)
