# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the documents for disks and volumes. Words are Talos's."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from . import cel, go_text
from .validate_network import expression
from .verdict import Report, quote

Data = Mapping[str, Any]

_LEAST_SCRUB = 10 * 10**9
_LONGEST_NAME = 34
_OLD_VOLUMES = ("STATE", "EPHEMERAL", "IMAGECACHE")
_VOLUMES = (*_OLD_VOLUMES, "ETCD", "CRI", "KUBELET", "LOG")


def _volume_name(data: Data, report: Report, longest: int = _LONGEST_NAME, characters: str = "") -> None:
    """longest 0: no limit. characters: what is allowed beside letters, digits and hyphens, with the words for it."""
    name = data.get("name") or ""
    report.need(name, "name", "name is required")
    if longest and not 1 <= len(name.encode()) <= longest:
        report.error("name", f"name must be between 1 and {longest} characters long")
    if not re.fullmatch(f"[A-Za-z0-9{characters}-]*", name):
        words = "ASCII letters, digits, hyphens and underscores" if characters else "lowercase and uppercase ASCII letters, digits, and hyphens"
        report.error("name", f"name can only contain {words}")


def _bytes(size: str | None) -> int:
    return go_text.parse_bytes(size.removeprefix("-")) if size else 0


def _least(given: Data) -> tuple[str, bool]:
    """(text of minSize or "", whether Talos takes it for negative)."""
    size = given.get("minSize")
    return (size[0], size[1]) if size else ("", False)


def _provisioning(data: Data, version: str, required: bool, sizes: bool, report: Report) -> None:
    given = data.get("provisioning") or {}
    expression(given.get("diskSelector"), cel.DISK, "provisioning.diskSelector.match", "disk selector is invalid",
               "disk selector is required" if required else "", report)
    least, least_negative = _least(given)
    most = given.get("maxSize")
    if not sizes:
        if least or most or given.get("grow") is not None:
            report.error("provisioning", "min size, max size and grow are not supported")
        return
    absolute, share = most or (None, None)
    negative = str(absolute or share or "").startswith("-") and version > "1.12"
    if least and most and share is None and not negative:
        if _bytes(least) > _bytes(absolute):
            report.error("provisioning.minSize", "min size is greater than max size")
    elif required and not least and not most:
        report.error("provisioning", "min size or max size is required")
    if least_negative:
        report.error("provisioning.minSize", "min size cannot be negative")


def _encryption(data: Data, report: Report) -> None:
    given = data.get("encryption") or {}
    if not given.get("provider") and not given.get("keys"):
        return  # the rest counts as nothing
    provider = given.get("provider") or "none"
    if provider != "luks2":
        report.error("encryption.provider", f"unsupported encryption provider: {provider}")
    report.need(given.get("keys"), "encryption.keys", "encryption keys are required")
    slots: set[int] = set()
    for key in given.get("keys") or []:
        slot = key.get("slot") or 0
        if slot in slots:
            report.error("encryption.keys", f"duplicate key slot {slot}")
        slots.add(slot)
        if all(key.get(method) is None for method in ("static", "nodeID", "kms", "tpm")):
            report.error("encryption.keys", f"at least one encryption key type must be specified for slot {slot}")
        for register in (((key.get("tpm") or {}).get("options") or {}).get("pcrs")) or []:
            if not 0 <= register <= 23:
                report.error("encryption.keys", f"TPM PCR {register} is out of range (0-23)")


def _trim_and_scrub(data: Data, report: Report) -> None:
    if ((data.get("trim") or {}).get("interval") or 0) < 0:
        report.error("trim.interval", "trim interval cannot be negative")
    interval = (data.get("scrub") or {}).get("interval") or 0
    if interval and interval < _LEAST_SCRUB:
        report.error("scrub.interval", "scrub interval: minimum value is 10s")


def _filesystem(data: Data, version: str, report: Report) -> None:
    given = data.get("filesystem") or {}
    kind = given.get("type") or "none"
    if kind not in ("none", "xfs", "ext4") and not (kind == "btrfs" and version >= "1.14"):
        report.error("filesystem.type", f"unsupported filesystem type: {kind}")
    elif given.get("projectQuotaSupport") and kind not in ("none", "xfs"):
        report.error("filesystem.projectQuotaSupport", "project quota support is only available for xfs filesystem")
    elif given.get("xfs") is not None and kind not in ("none", "xfs"):
        report.error("filesystem.xfs", "xfs options are only available for xfs filesystem")


def _volume(data: Data, version: str, report: Report) -> None:
    allowed = _VOLUMES if version >= "1.14" else _OLD_VOLUMES
    name = data.get("name") or ""
    if name not in allowed:
        listed = " ".join(quote(one) for one in allowed)
        report.error("name", f"only [{listed}] volumes are supported")
        return
    shown = quote(name)
    if name == "STATE":
        if data.get("provisioning"):
            report.error("provisioning", f"provisioning config is not allowed for the {shown} volume")
        for key in (data.get("encryption") or {}).get("keys") or []:
            if key.get("lockToState"):
                report.error("encryption.keys", f"state-locked key is not allowed for the {shown} volume")
    if version >= "1.14":
        if name in ("STATE", "IMAGECACHE") and data.get("mount"):
            report.error("mount", f"mount config is not allowed for the {shown} volume")
        if name == "IMAGECACHE" and data.get("filesystem"):
            report.error("filesystem", f"filesystem config is not allowed for the {shown} volume")
        if name not in _OLD_VOLUMES and data.get("mount") and not data.get("provisioning"):
            report.error("mount", f"mount config for the {shown} volume is only supported when it is provisioned onto a dedicated partition")
    _provisioning(data, version, False, True, report)
    _encryption(data, report)
    _trim_and_scrub(data, report)


def _user_volume(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report)
    kind = data.get("volumeType") or "partition"
    if kind == "directory":
        encryption = data.get("encryption") or {}
        for key in ("provisioning", "encryption", "filesystem", *(("mount",) if version > "1.12" else ())):
            if data.get(key) and (key != "encryption" or encryption.get("provider") or encryption.get("keys")):
                report.error(key, f"{key} spec is invalid for volumeType directory")
    elif kind in ("disk", "partition"):
        _provisioning(data, version, True, kind == "partition", report)
        _filesystem(data, version, report)
        _encryption(data, report)
    else:
        report.error("volumeType", f"unsupported volume type {quote(kind)}")
    _trim_and_scrub(data, report)


def _raw_volume(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report)
    _provisioning(data, version, True, True, report)
    _encryption(data, report)


def _existing_volume(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report, longest=0)
    selector = (data.get("discovery") or {}).get("volumeSelector")
    expression(selector, cel.VOLUME, "discovery.volumeSelector.match", "volume selector is invalid", "volume selector is required", report)
    _trim_and_scrub(data, report)


def _external_volume(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report)
    kind = data.get("filesystemType") or "none"
    if kind != "virtiofs":
        report.error("filesystemType", f"invalid filesystem type: {kind}")
        return
    virtiofs = (data.get("mount") or {}).get("virtiofs")
    if virtiofs is None:
        report.error("mount.virtiofs", "virtiofs mount spec is required")
    else:
        report.need(virtiofs.get("tag"), "mount.virtiofs.tag", "virtiofs tag is required")


def _filesystem_trim(data: Data, version: str, report: Report) -> None:
    if (data.get("interval") or 0) < 0:
        report.error("interval", "interval cannot be negative")


def _filesystem_scrub(data: Data, version: str, report: Report) -> None:
    if data.get("interval") and data["interval"] < _LEAST_SCRUB:
        report.error("interval", "scrub interval: minimum value is 10s")


def _volume_selector(data: Data, report: Report) -> None:
    path = "provisioning.volumeSelector.match"
    expression((data.get("provisioning") or {}).get("volumeSelector"), cel.VOLUME, path, path, f"{path} is required", report)


def _volume_group(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report, 63, "_")
    _volume_selector(data, report)


def _raid_array(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report, 32, "_")
    _volume_selector(data, report)


def _logical_volume(data: Data, version: str, report: Report) -> None:
    _volume_name(data, report, 63, "_")
    kind = data.get("type") or "linear"
    for key, kinds, least in (("mirrors", ("raid1", "raid10"), 1), ("stripes", ("raid0", "raid10"), 2)):
        value = data.get(key)
        if value is not None and kind not in kinds:
            report.error(key, f"{key} is only valid for {'/'.join(kinds)}, not {kind}")
        elif value is not None and value < least:
            report.error(key, f"{key} must be at least {least}")
    given = data.get("provisioning") or {}
    least_size, most = _least(given)[0], given.get("maxSize")
    report.need(given.get("volumeGroup"), "provisioning.volumeGroup", "provisioning.volumeGroup is required")
    report.need(most, "provisioning.maxSize", "provisioning.maxSize is required")
    absolute, relative = most or (None, None)
    if str(absolute or relative or "").startswith("-"):
        report.error("provisioning.maxSize", "provisioning.maxSize must not be negative")
    if least_size and relative is None and _bytes(least_size) > _bytes(absolute):
        report.error("provisioning.minSize", "provisioning.minSize must not exceed provisioning.maxSize")


CHECKS: dict[str, Callable[[Data, str, Report], None]] = {
    "ExistingVolumeConfig": _existing_volume, "ExternalVolumeConfig": _external_volume, "FilesystemScrubConfig": _filesystem_scrub,
    "FilesystemTrimConfig": _filesystem_trim, "LVMLogicalVolumeConfig": _logical_volume, "LVMVolumeGroupConfig": _volume_group,
    "RAIDArrayConfig": _raid_array, "RawVolumeConfig": _raw_volume, "SwapVolumeConfig": _raw_volume, "UserVolumeConfig": _user_volume,
    "VolumeConfig": _volume,
}
