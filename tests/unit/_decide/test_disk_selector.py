# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks a selector picks: as Talos means it, in the record and in a configuration."""

from __future__ import annotations

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._decide.disk_selector import matching
from ansible_collections.ichor.talos.plugins.module_utils._decide.install_disk import picked
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.cel import of_selector
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present, Unknown

NVME = Disk("nvme0n1", "/dev/nvme0n1", 5 * 10 ** 11, serial="N1", model="Fast 500", transport="nvme")
TURNING = Disk("sda", "/dev/sda", 4 * 10 ** 12, serial="S1", model="Big 4T", transport="sata", rotational=True)
CARD = Disk("mmcblk0", "/dev/mmcblk0", 3 * 10 ** 10, serial="M1", model="Card", transport="mmc")
ODD = Disk("nvme9n1", "/dev/nvme9n1", 10 ** 12, serial="O1", model="Fabric", transport="fc")
ALL = (NVME, TURNING, CARD, ODD)


@pytest.mark.parametrize("selector, names", [
    ({"type": "nvme"}, ["nvme0n1"]), ({"type": "sd"}, ["mmcblk0"]), ({"type": "hdd"}, ["sda"]), ({"type": "ssd"}, ["nvme0n1", "mmcblk0", "nvme9n1"]),
    ({"name": "/dev/nvme*"}, ["nvme0n1", "nvme9n1"]), ({"name": "sda"}, []), ({"name": "/dev/sda"}, ["sda"]),
    ({"model": "Fast*", "size": ">= 100GB"}, ["nvme0n1"]),
])
def test_a_selector_picks_what_talos_picks(selector: dict[str, str], names: list[str]) -> None:
    assert [disk.name for disk in matching(selector, ALL)] == names


def unattended(expression: str) -> bytes:
    return (f"version: v1alpha1\nmachine:\n  type: worker\n---\napiVersion: v1alpha1\nkind: UnattendedInstallConfig\nprovisioning:\n"
            f"  diskSelector:\n    match: '{expression}'\n").encode()


def test_a_selector_that_was_made_of_install_fields_is_understood_in_an_unattended_install() -> None:
    found = picked(bring(unattended(of_selector({"type": "nvme", "size": ">= 100GB"}))), Present(ALL))
    assert isinstance(found, Present) and found.value is NVME
    none = picked(bring(unattended(of_selector({"model": "Nobody*"}))), Present(ALL))
    several = picked(bring(unattended(of_selector({"type": "ssd"}))), Present(ALL))
    assert isinstance(none, Absent) and isinstance(several, Unknown) and "3 disks" in several.message


def test_any_other_expression_is_left_to_talos() -> None:
    found = picked(bring(unattended("disk.size > 1u && !system_disk")), Present(ALL))
    assert isinstance(found, Unknown) and "only Talos" in found.message
