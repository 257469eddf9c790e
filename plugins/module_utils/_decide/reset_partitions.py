# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which partitions a reset wipes, and what stays (design sections 14 and 16).

STATE, EPHEMERAL and every other system volume that is there: Talos 1.14 can keep ETCD, CRI, KUBELET and LOG apart, and what is not named
survives, a member's data above all.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._model.observations import Partition

SYSTEM_VOLUMES = ("STATE", "EPHEMERAL", "ETCD", "CRI", "KUBELET", "LOG")


def wiped(partitions: Sequence[Partition]) -> tuple[str, ...]:
    """The labels that go, in the order of SYSTEM_VOLUMES."""
    there = {one.label for one in partitions}
    return tuple(label for label in SYSTEM_VOLUMES if label in there)


def left_over(labels: Sequence[str], partitions: Sequence[Partition]) -> tuple[str, ...]:
    """Which of the labels that were to go are still there."""
    there = {one.label for one in partitions}
    return tuple(label for label in labels if label in there)


def told(partitions: Sequence[Partition]) -> str:
    """What goes and what stays, for a person."""
    goes = wiped(partitions)
    stays = [f"{one.label or 'a partition without a label'} on {one.device}" for one in partitions if one.label not in goes]
    kept = ", ".join(stays) if stays else "no other partition"
    return f"wipes {', '.join(goes) or 'nothing'}; stays: {kept}; disks without partitions are not touched"
