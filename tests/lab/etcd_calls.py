# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineService: the calls about etcd. Where etcd does not run they hang until the caller's deadline, as Talos's do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lab import etcd, status
from tests.lab.etcd import Alarm, EtcdError
from tests.lab.machine_calls import need_control_plane
from tests.lab.status import Refusal
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.director import Context

#: What Talos puts into one message of a snapshot, and how many of them go into one write here; bytes.
_CHUNK, _AT_ONCE = 1024, 65536


async def member_list(context: Context, request: Any) -> Any:
    need_control_plane(context, "member list")
    try:
        members = await context.boot.etcd.members(request.query_local)
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, str(error)) from error
    answer = message("machine.EtcdMemberListResponse")()
    item = answer.messages.add()
    for member in members:
        item.legacy_members.append(member.name)
        entry = item.members.add(id=member.id, hostname=member.name, is_learner=member.learner)
        entry.peer_urls.append(member.peer_url)
        if member.client_url:
            entry.client_urls.append(member.client_url)
    return answer


async def etcd_status(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd status")
    try:
        found = await context.boot.etcd.status()
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, str(error)) from error
    answer = message("machine.EtcdStatusResponse")()
    item = answer.messages.add().member_status
    item.protocol_version, item.storage_version = found.version, found.storage_version
    item.db_size, item.db_size_in_use = found.size, found.size_in_use
    item.leader, item.raft_index, item.raft_term, item.raft_applied_index = found.leader, found.index, found.term, found.applied
    item.is_learner, item.member_id = found.learner, found.member
    item.errors.extend(found.errors)
    return answer


async def _alarms(context: Context, disarm: bool) -> list[Alarm]:
    try:
        return await context.boot.etcd.alarms(disarm)
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, str(error)) from error


def _with_alarms(answer: Any, alarms: list[Alarm]) -> Any:
    item = answer.messages.add()
    for alarm in alarms:
        item.member_alarms.add(member_id=alarm.member, alarm=alarm.kind)
    return answer


async def alarm_list(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd alarm list")
    return _with_alarms(message("machine.EtcdAlarmListResponse")(), await _alarms(context, False))


async def alarm_disarm(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd alarm disarm")
    return _with_alarms(message("machine.EtcdAlarmDisarmResponse")(), await _alarms(context, True))


async def defragment(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd defragment")
    try:
        await context.boot.etcd.defragment()
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, str(error)) from error
    answer = message("machine.EtcdDefragmentResponse")()
    answer.messages.add()
    return answer


async def remove_member(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd remove member")
    number = request.member_id
    try:
        await context.boot.etcd.remove(number)
    except EtcdError as error:
        if str(error) == etcd.MEMBER_NOT_FOUND:
            raise Refusal(status.NOT_FOUND, f"failed to remove member {number}: {error}") from error
        if str(error) == etcd.NO_LEADER:
            raise Refusal(status.UNKNOWN, str(error)) from error
        raise Refusal(status.UNKNOWN, f"failed to remove member: failed to remove member {number}: {error}") from error
    context.node.note("etcd-member-removed", member=f"{number:016x}")
    answer = message("machine.EtcdRemoveMemberByIDResponse")()
    answer.messages.add()
    return answer


async def leave(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd leave")
    try:
        await context.boot.etcd.leave()
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, str(error)) from error
    answer = message("machine.EtcdLeaveClusterResponse")()
    answer.messages.add()
    return answer


async def forfeit(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd forfeit leadership")
    try:
        name = await context.boot.etcd.forfeit()
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, f"failed to forfeit leadership: {error}") from error
    answer = message("machine.EtcdForfeitLeadershipResponse")()
    answer.messages.add(**({"member": name} if name is not None else {}))
    return answer


async def snapshot(context: Context, request: Any) -> None:
    need_control_plane(context, "etcd snapshot")
    rest = bytearray()
    try:
        async for piece in context.boot.etcd.snapshot():
            rest += piece
            while len(rest) >= _AT_ONCE:
                context.send_all([message("common.Data")(bytes=bytes(rest[start:start + _CHUNK])) for start in range(0, _AT_ONCE, _CHUNK)])
                del rest[:_AT_ONCE]
                await context.flow()
    except EtcdError as error:
        raise Refusal(status.UNKNOWN, str(error)) from error
    context.send_all([message("common.Data")(bytes=bytes(rest[start:start + _CHUNK])) for start in range(0, len(rest), _CHUNK)])


async def recover(context: Context, request: Any) -> Any:
    """Accepts anything at any time on a control plane, even nothing at all."""
    need_control_plane(context, "etcd recover")
    content = bytearray()
    while True:
        chunk = await context.receive()
        if chunk is None:
            break
        content += message("common.Data").FromString(chunk).bytes
    context.node.storage.upload = bytes(content)
    answer = message("machine.EtcdRecoverResponse")()
    answer.messages.add()
    return answer


HANDLERS = {
    "machine.MachineService": {
        "EtcdMemberList": member_list, "EtcdStatus": etcd_status, "EtcdAlarmList": alarm_list, "EtcdAlarmDisarm": alarm_disarm,
        "EtcdDefragment": defragment, "EtcdRemoveMemberByID": remove_member, "EtcdLeaveCluster": leave, "EtcdForfeitLeadership": forfeit,
        "EtcdSnapshot": snapshot, "EtcdRecover": recover,
    }
}
