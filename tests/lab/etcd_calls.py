# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineService: the calls about etcd. Where etcd does not run they hang until the caller's deadline, as Talos's do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.lab import etcd, status
from tests.lab.etcd import Cluster, EtcdError
from tests.lab.machine_calls import need_control_plane
from tests.lab.status import Refusal
from tests.lab.wire import message

if TYPE_CHECKING:
    from tests.lab.director import Context

_NO_LEADER_AFTER = 1.5
_CHUNK = 1024


async def _own(context: Context) -> Cluster:
    """The local member's cluster; waits for ever while etcd does not run here."""
    while True:
        data = context.node.storage.etcd
        if data is not None and context.boot.etcd.running and data.member in data.cluster.members:
            return data.cluster
        await asyncio.sleep(0.02)


async def _any(context: Context) -> Cluster:
    """The cluster as any control plane answers for it."""
    while True:
        config = context.boot.active
        found = context.node.world.etcd_cluster(config, context.node) if config is not None else None
        if found is not None:
            return found
        await asyncio.sleep(0.02)


async def _with_leader(context: Context, cluster: Cluster) -> None:
    """Requests wait for a while for a new leader; then etcd says that there is none."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    patience = context.node.world.clock.real(_NO_LEADER_AFTER)
    while not cluster.quorum():
        if loop.time() - start > patience:
            raise Refusal(status.UNKNOWN, etcd.NO_LEADER)
        await asyncio.sleep(0.02)


async def member_list(context: Context, request: Any) -> Any:
    need_control_plane(context, "member list")
    cluster = await (_own(context) if request.query_local else _any(context))
    await _with_leader(context, cluster)
    answer = message("machine.EtcdMemberListResponse")()
    item = answer.messages.add()
    for member in cluster.members.values():
        item.legacy_members.append(member.name)
        entry = item.members.add(id=member.id, hostname=member.name, is_learner=member.learner)
        entry.peer_urls.append(member.peer_url)
        if member.client_url:
            entry.client_urls.append(member.client_url)
    return answer


async def etcd_status(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd status")
    cluster = await _own(context)
    cluster.quorum()
    data = context.node.storage.etcd
    assert data is not None
    member = cluster.members[data.member]
    answer = message("machine.EtcdStatusResponse")()
    version = context.node.etcd_image.rpartition(":")[2].removeprefix("v")
    item = answer.messages.add().member_status
    item.protocol_version, item.storage_version = version, version.rpartition(".")[0] + ".0"
    item.db_size, item.db_size_in_use = 20480, 16384
    item.leader, item.raft_index, item.raft_term, item.raft_applied_index = cluster.leader, cluster.index, cluster.term, cluster.index
    item.is_learner, item.member_id = member.learner, member.id
    return answer


async def alarm_list(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd alarm list")
    await _own(context)
    answer = message("machine.EtcdAlarmListResponse")()
    answer.messages.add()
    return answer


async def alarm_disarm(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd alarm disarm")
    await _own(context)
    answer = message("machine.EtcdAlarmDisarmResponse")()
    answer.messages.add()
    return answer


async def defragment(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd defragment")
    await _own(context)
    answer = message("machine.EtcdDefragmentResponse")()
    answer.messages.add()
    return answer


async def remove_member(context: Context, request: Any) -> Any:
    need_control_plane(context, "etcd remove member")
    cluster = await _any(context)
    await _with_leader(context, cluster)
    number = request.member_id
    try:
        cluster.remove(number, cluster.leader)
    except EtcdError as error:
        if str(error) == etcd.MEMBER_NOT_FOUND:
            raise Refusal(status.NOT_FOUND, f"failed to remove member {number}: {error}") from error
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
    boot = context.boot
    await boot.until(lambda: boot.etcd.member_visible)
    cluster = await _own(context)
    data = context.node.storage.etcd
    assert data is not None
    others = [member for member in cluster.voters() if member.id != data.member]
    answer = message("machine.EtcdForfeitLeadershipResponse")()
    if cluster.leader != data.member:
        answer.messages.add()
        return answer
    if not others:
        raise Refusal(status.UNKNOWN, "failed to forfeit leadership: cannot forfeit leadership, only one member")
    cluster.leader = others[0].id
    cluster.term += 1
    answer.messages.add(member=others[0].name)
    return answer


async def snapshot(context: Context, request: Any) -> None:
    need_control_plane(context, "etcd snapshot")
    cluster = await _own(context)
    content = etcd.snapshot(cluster)
    for offset in range(0, len(content), _CHUNK):
        context.send(message("common.Data")(bytes=content[offset:offset + _CHUNK]))
        await context.flow()


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
