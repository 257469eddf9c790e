# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineService: Bootstrap, Reboot, Reset, Shutdown. All but Bootstrap answer before anything has happened."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tests.lab import sequences, status
from tests.lab.machine_calls import need_control_plane
from tests.lab.sequences import ResetRequest
from tests.lab.status import Refusal
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.boot import Boot
    from tests.lab.director import Context

ALL, SYSTEM_DISK, USER_DISKS = range(3)
_FORCE = 2
LOCKED = 1

# Which running sequence a new one may take over; shutdown takes over anything.
_TAKES_OVER = {
    "reboot": ("boot", "initialize", "reboot", "reset", ""),
    "reset": ("boot", ""),
    "shutdown": ("boot", "initialize", "install", "reboot", "reset", ""),
}


async def bootstrap(context: Context, request: Any) -> Any:
    boot, node = context.boot, context.node
    if node.minor == 12 and (boot.active is None or not boot.active.control_plane):
        raise Refusal(status.FAILED_PRECONDITION, "bootstrap can only be performed on a control plane node")
    need_control_plane(context, "bootstrap")
    if node.minor >= 14 and boot.active is not None and not boot.active.etcd_ca:
        raise Refusal(status.INVALID_ARGUMENT, "etcd is not configured, bootstrap is not possible")
    allowed = boot.services.healthy("cri") and boot.services.get("etcd") is not None and not boot.reboot_pending
    if not allowed or boot.install_phase not in (None, "installed"):
        raise Refusal(status.FAILED_PRECONDITION, "bootstrap is not available yet")
    if node.storage.etcd is not None:
        raise Refusal(status.ALREADY_EXISTS, "etcd data directory is not empty")
    boot.etcd.request_bootstrap(request.recover_etcd, request.recover_skip_hash_check)
    node.note("bootstrap", recover=bool(request.recover_etcd))
    answer = message("machine.BootstrapResponse")()
    answer.messages.add()
    return answer


def _run(boot: Boot, name: str, actor: str, work: Coroutine[Any, Any, Any]) -> None:
    """Starts a sequence once the reply is out; one that may not take over is dropped with an event."""
    if boot.sequence not in _TAKES_OVER[name]:
        boot.events.sequence(name, False, actor, error="sequence is already in progress, locked", code=LOCKED)
        work.close()
        return
    asyncio.get_running_loop().call_soon(boot.take_over, name, work)


async def reboot(context: Context, request: Any) -> Any:
    boot, actor = context.boot, str(uuid.uuid4())
    _run(boot, "reboot", actor, sequences.reboot(boot, actor, force=request.mode == _FORCE))
    answer = message("machine.RebootResponse")()
    answer.messages.add(actor_id=actor)
    return answer


async def shutdown(context: Context, request: Any) -> Any:
    boot, actor = context.boot, str(uuid.uuid4())
    _run(boot, "shutdown", actor, sequences.shutdown(boot, actor, request.force))
    answer = message("machine.ShutdownResponse")()
    answer.messages.add(actor_id=actor)
    return answer


async def reset(context: Context, request: Any) -> Any:
    boot, node = context.boot, context.node
    labels = _check_reset(context, request)
    actor = str(uuid.uuid4())
    wanted = ResetRequest(
        graceful=request.graceful, reboot=request.reboot, labels=tuple(labels), user_disks=tuple(request.user_disks_to_wipe),
        system=request.mode in (ALL, SYSTEM_DISK), actor=actor,
    )
    node.note("reset", graceful=wanted.graceful, labels=labels, system=wanted.system)
    _run(boot, "reset", actor, sequences.reset(boot, wanted))
    answer = message("machine.ResetResponse")()
    answer.messages.add(actor_id=actor)
    return answer


def _check_reset(context: Context, request: Any) -> list[str]:
    """The labels to wipe, or the refusal of what cannot be wiped."""
    node = context.node
    if request.user_disks_to_wipe:
        if request.mode == SYSTEM_DISK:
            raise Refusal(status.UNKNOWN, "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
        for path in request.user_disks_to_wipe:
            disk = next((item for item in node.hardware.disks if item["dev_path"] == path), None)
            if disk is None:
                raise Refusal(status.UNKNOWN, f"reset user disk failed: device {path} wasn't found")
            if disk["readonly"]:
                raise Refusal(status.UNKNOWN, f"reset user disk failed: device {path} is readonly")
            if node.storage.system_disk is not None and path == "/dev/" + node.storage.system_disk:
                raise Refusal(status.UNKNOWN, f"reset user disk failed: device {path} is the system disk")
    if request.system_partitions_to_wipe and request.mode == USER_DISKS:
        raise Refusal(status.UNKNOWN, "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter")
    labels = []
    for spec in request.system_partitions_to_wipe:
        volume = context.boot.resources.get("runtime", "VolumeStatuses.block.talos.dev", spec.label)
        if volume is None:
            missing = f"resource VolumeStatuses.block.talos.dev(runtime/{spec.label}@undefined) doesn't exist"
            raise Refusal(status.UNKNOWN, f'failed to get volume status with label "{spec.label}": {missing}')
        if not volume.spec.get("location") and node.minor < 14:
            raise Refusal(status.UNKNOWN, f'failed to reset: volume "{spec.label}" is not located')
        if spec.wipe:
            labels.append(spec.label)
    return labels


HANDLERS = {"machine.MachineService": {"Bootstrap": bootstrap, "Reboot": reboot, "Shutdown": shutdown, "Reset": reset}}
