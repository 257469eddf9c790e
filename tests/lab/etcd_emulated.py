# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""etcd of one boot as the lab emulates it: the members of a cluster are one object of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tests.lab import etcd
from tests.lab.etcd import Alarm, Cluster, EtcdData, EtcdError, Member, MemberStatus
from tests.lab.etcd_service import EtcdService

NO_LEADER_AFTER = 1.5


class EmulatedEtcd(EtcdService):
    """No process; `running` alone tells the others that this member answers."""

    async def _create(self, content: bytes) -> None:
        boot, node = self.boot, self.boot.node
        assert boot.active is not None
        node.storage.etcd = etcd.new_cluster(boot.active.etcd_ca, node.world.member_alive, boot.hostname, node.address, content)
        node.world.etcd_started(node)

    async def _join(self) -> bool:
        boot, node = self.boot, self.boot.node
        assert boot.active is not None
        cluster = node.world.etcd_cluster(boot.active, node)
        if cluster is None or not cluster.quorum():
            return False
        for member in list(cluster.members.values()):
            if member.name == boot.hostname:
                cluster.remove(member.id, cluster.leader)
        url = etcd.peer_url(node.address)
        unnamed = [member for member in cluster.members.values() if not member.name and member.peer_url == url]
        member = unnamed[0] if unnamed and node.minor >= 14 else cluster.add_learner(url)
        node.storage.etcd = EtcdData(cluster, member.id)
        node.world.etcd_started(node)
        boot.spawn(self._promote(member.id))
        return True

    async def _promoted(self, identifier: int) -> bool:
        if self.data is None:
            return True
        cluster = self.data.cluster
        member = cluster.members.get(identifier)
        if member is None or not member.learner:
            return True
        if cluster.quorum():
            cluster.promote(identifier)
            self.boot.node.world.observe()
        return False

    async def _started(self) -> None:
        assert self.data is not None
        member = self.data.cluster.members.get(self.data.member)
        if member is not None:
            if not member.name:
                await self.boot.sleep(self.boot.node.world.timings.learner_named)
            member.name = self.boot.hostname
            member.client_url = etcd.client_url(self.boot.node.address)
            self.boot.node.world.observe()

    async def _gone_within(self, seconds: float) -> bool:
        passed = 0.0
        while passed + 1e-9 < seconds:
            await self.boot.sleep(min(0.25, seconds))
            if self.data is None or self.data.member not in self.data.cluster.members:
                return True
            passed += min(0.25, seconds)
        return False

    async def _problem(self) -> str | None:
        assert self.data is not None
        if self.data.cluster.members[self.data.member].learner:
            return "etcdserver: rpc not supported for learner"
        return None if self.data.cluster.quorum() else "context deadline exceeded"

    async def _remove_own(self, member: int) -> None:
        assert self.data is not None
        self.data.cluster.remove(member, member)

    def _outcome(self) -> str:
        return "<nil>"

    async def end(self, orderly: bool = False) -> None:
        self.running = False

    async def look(self) -> None:
        return

    async def _own(self) -> Cluster:
        """The local member's cluster; waits for ever while etcd does not run here."""
        while True:
            data = self.data
            if data is not None and self.running and data.member in data.cluster.members:
                return data.cluster
            await asyncio.sleep(0.02)

    async def _any(self) -> Cluster:
        """The cluster as any control plane answers for it."""
        while True:
            config = self.boot.active
            found = self.boot.node.world.etcd_cluster(config, self.boot.node) if config is not None else None
            if found is not None:
                return found
            await asyncio.sleep(0.02)

    async def _with_leader(self, cluster: Cluster) -> None:
        """Requests wait for a while for a new leader; then etcd says that there is none."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        patience = self.boot.clock.real(NO_LEADER_AFTER)
        while not cluster.quorum():
            if loop.time() - start > patience:
                raise EtcdError(etcd.NO_LEADER)
            await asyncio.sleep(0.02)

    async def members(self, local: bool) -> list[Member]:
        cluster = await (self._own() if local else self._any())
        await self._with_leader(cluster)
        return list(cluster.members.values())

    async def status(self) -> MemberStatus:
        cluster = await self._own()
        cluster.quorum()
        assert self.data is not None
        version = self.boot.node.etcd_image.rpartition(":")[2].removeprefix("v")
        return MemberStatus(
            self.data.member, version, version.rpartition(".")[0] + ".0", 20480, 16384, cluster.leader, cluster.index, cluster.term, cluster.index,
            cluster.members[self.data.member].learner,
        )

    async def alarms(self, disarm: bool) -> list[Alarm]:
        await self._own()
        return []

    async def defragment(self) -> None:
        await self._own()

    async def remove(self, member: int) -> None:
        cluster = await self._any()
        await self._with_leader(cluster)
        cluster.remove(member, cluster.leader)

    async def forfeit(self) -> str | None:
        await self.resource()
        cluster = await self._own()
        assert self.data is not None
        own = self.data.member
        others = [member for member in cluster.voters() if member.id != own]
        if cluster.leader != own:
            return None
        if not others:
            raise EtcdError("cannot forfeit leadership, only one member")
        cluster.leader = others[0].id
        cluster.term += 1
        return others[0].name

    async def snapshot(self) -> AsyncIterator[bytes]:
        yield etcd.snapshot(await self._own())
