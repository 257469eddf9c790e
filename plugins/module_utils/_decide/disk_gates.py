# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disk may be installed on, and what the other disks may be for (design section 7).

Asked at the approval and where `install` is set later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .._model.errors import TalosError
from .._model.observations import CONTENTS_UNKNOWN, Disk
from .._model.plan import Refusal, Target, Warn
from .._model.records import Json, dig, text_at
from .approval_case import Picked
from .disk_selector import matching
from .disk_words import described, listed


@dataclass(frozen=True)
class DiskCase:
    """What was picked for the installation (None: nothing), from which disks, and what a person says of the others."""

    target: Target
    picked: Picked | None
    disks: tuple[Disk, ...]
    others: tuple[Json, ...] = ()

    def refuse(self, rule: str, reason: str, message: str, hint: str) -> Refusal:
        return Refusal(self.target, reason, message, hint, rule)


def _invalid(case: DiskCase) -> Refusal | None:
    if case.picked is None or not case.picked.problem:
        return None
    return case.refuse("7/disk-selector-invalid", "InvalidInput", case.picked.problem, "")


def _missing(case: DiskCase) -> Refusal | None:
    if case.picked is None or case.picked.problem or case.picked.disks:
        return None
    if not case.disks:
        return case.refuse("7/disk-not-found", "DiskNotFound", "The disks of this machine are not known, so none can be picked.",
                           "Let it be discovered first, or set install later with talos_machine.")
    return case.refuse("7/disk-not-found", "DiskNotFound", f"No disk matches {case.picked.words}; there are {listed(case.disks)}.",
                       "Name one of these.")


def _several(case: DiskCase) -> Refusal | None:
    if case.picked is None or len(case.picked.disks) < 2:
        return None
    return case.refuse("7/disk-ambiguous", "DiskAmbiguous", f"{case.picked.words} matches {len(case.picked.disks)} disks: {listed(case.picked.disks)}.",
                       "Name one of them, for example by its serial or wwid.")


def _single(case: DiskCase) -> Disk | None:
    return case.picked.disks[0] if case.picked is not None and len(case.picked.disks) == 1 else None


def _boot_medium(case: DiskCase) -> Refusal | None:
    disk = _single(case)
    if disk is None or not (disk.boot_medium or disk.cdrom):
        return None
    return case.refuse("7/disk-boot-medium", "DiskUnsuitable", f"{described(disk)} is what the machine booted from.", "Pick another disk.")


def _readonly(case: DiskCase) -> Refusal | None:
    disk = _single(case)
    if disk is None or not disk.readonly or (case.picked is not None and case.picked.outright):
        return None
    return case.refuse("7/disk-readonly", "DiskUnsuitable", f"{described(disk)} is read-only.", "Pick another disk, or name it outright in install.disk.")


def _usb(case: DiskCase) -> Refusal | None:
    disk = _single(case)
    if disk is None or not disk.usb or (case.picked is not None and case.picked.outright):
        return None
    return case.refuse("7/disk-usb", "DiskUnsuitable", f"{described(disk)} is a USB disk.", "Pick another disk, or name it outright in install.disk.")


def _other_missing(case: DiskCase) -> Refusal | None:
    for entry in case.others:
        selector = dig(entry, "selector")
        try:
            found = matching(selector if isinstance(selector, Mapping) else {}, case.disks)
        except TalosError as error:
            return case.refuse("7/other-disk-not-found", "InvalidInput", error.message, error.hint)
        if not found:
            return case.refuse("7/other-disk-not-found", "DiskNotFound",
                               f"No disk matches {selector} (role {text_at(entry, 'role')}); there are {listed(case.disks)}.", "Correct the selector.")
    return None


def _other_twice(case: DiskCase) -> Refusal | None:
    taken: dict[str, str] = {}
    install = _single(case)
    if install is not None:
        taken[install.path] = "system"
    for entry in case.others:
        selector, role = dig(entry, "selector"), text_at(entry, "role")
        try:
            found = matching(selector if isinstance(selector, Mapping) else {}, case.disks)
        except TalosError:
            return None
        for disk in found:
            if taken.setdefault(disk.path, role) != role:
                return case.refuse("7/other-disk-twice", "DiskAmbiguous",
                                   f"{described(disk)} would be {taken[disk.path]} and {role} at once.", "Give each disk one role.")
    return None


#: One row a refusal; a test takes each away.
GATES: tuple[tuple[str, Callable[[DiskCase], Refusal | None]], ...] = (
    ("7/disk-selector-invalid", _invalid),
    ("7/disk-not-found", _missing),
    ("7/disk-ambiguous", _several),
    ("7/disk-boot-medium", _boot_medium),
    ("7/disk-readonly", _readonly),
    ("7/disk-usb", _usb),
    ("7/other-disk-not-found", _other_missing),
    ("7/other-disk-twice", _other_twice),
)


def disk_refusals(case: DiskCase) -> tuple[Refusal, ...]:
    """Every refusal of the disks."""
    return tuple(found for rule, gate in GATES if (found := gate(case)) is not None)


def disk_warnings(case: DiskCase) -> tuple[Warn, ...]:
    """What is on the picked disk already."""
    disk = _single(case)
    if disk is None or not disk.contents:
        return ()
    if disk.contents == CONTENTS_UNKNOWN:
        return (Warn(case.target, f"What is on {described(disk)} is not known; the installation overwrites it.", "7/disk-contents-unknown"),)
    return (Warn(case.target, f"{described(disk)} is not blank: it carries {', '.join(disk.contents)}, which the installation overwrites.",
                 "7/disk-in-use"),)


def picked_disk(case: DiskCase) -> Disk | None:
    """The one disk that was picked, or None."""
    return _single(case)
