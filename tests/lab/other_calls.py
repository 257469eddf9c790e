# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""StorageService, and the requests of other services that are refused for what they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lab import status
from tests.lab.api import NOT_AUTHORIZED
from tests.lab.status import Refusal
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.director import Context

SSD, HDD, NVME, CD = 1, 2, 3, 5


async def disks(context: Context, request: Any) -> Any:
    answer = message("storage.DisksResponse")()
    item = answer.messages.add()
    system = context.boot.system_disk
    for disk in sorted(context.node.hardware.disks, key=lambda entry: str(entry["dev_path"])):
        kind = CD if disk["cdrom"] else (NVME if disk.get("transport") == "nvme" else (HDD if disk.get("rotational") else SSD))
        item.disks.add(
            size=disk["size"], model=disk.get("model", ""), device_name=disk["dev_path"], serial=disk.get("serial", ""), modalias=disk.get("modalias", ""),
            uuid=disk.get("uuid", ""), wwid=disk.get("wwid", ""), type=kind, bus_path=disk.get("bus_path", ""),
            system_disk=system is not None and disk["dev_path"] == "/dev/" + system, subsystem=disk.get("sub_system", ""), readonly=disk["readonly"],
        )
    return answer


async def wipe(context: Context, request: Any) -> Any:
    """Open to anybody in maintenance mode, to admins otherwise."""
    if context.boot.configured and not context.admin:
        raise Refusal(status.PERMISSION_DENIED, NOT_AUTHORIZED)
    known = {disk["dev_path"].removeprefix("/dev/"): disk for disk in context.node.hardware.disks}
    for descriptor in request.devices:
        disk = known.get(descriptor.device)
        if disk is None:
            raise Refusal(status.NOT_FOUND, f'blockdevice "{descriptor.device}" not found')
        if disk["readonly"] or disk["cdrom"]:
            raise Refusal(status.FAILED_PRECONDITION, f'blockdevice "{descriptor.device}" is read-only')
        if context.node.storage.system_disk == descriptor.device:
            raise Refusal(status.FAILED_PRECONDITION, f'blockdevice "{descriptor.device}" is in use by volume "EPHEMERAL"')
    context.node.storage.wiped_disks.extend(f"/dev/{descriptor.device}" for descriptor in request.devices)
    answer = message("storage.BlockDeviceWipeResponse")()
    answer.messages.add()
    return answer


HANDLERS = {"storage.StorageService": {"Disks": disks, "BlockDeviceWipe": wipe}}
