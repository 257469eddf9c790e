# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The etcd service of one boot: bootstrap, join as a learner, promotion, health, restarts, leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.lab import etcd
from tests.lab.etcd import Cluster, EtcdData, EtcdError

if TYPE_CHECKING:
    from tests.lab.boot import Boot


class EtcdService:
    """etcd on one node. `running` means that the process runs, `healthy` follows its own checks."""

    def __init__(self, boot: Boot) -> None:
        self.boot = boot
        self.running = False
        self.counted_finished = False
        self.member_visible = False
        self._bootstrap: str | None = None  # "" for an empty cluster, "recover" for one from the uploaded snapshot
        self._wake = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._left = False

    @property
    def data(self) -> EtcdData | None:
        return self.boot.node.storage.etcd

    @property
    def cluster(self) -> Cluster | None:
        return self.data.cluster if self.data is not None else None

    @property
    def member_hex(self) -> str:
        return f"{self.data.member:016x}" if self.data is not None else ""

    def start(self) -> None:
        self._main = self.boot.spawn(self._run())

    def stop(self) -> None:
        self.running = False
        if self._main is not None:
            self._main.cancel()
        self.member_visible = False
        self.boot.services.stop("etcd")

    def request_bootstrap(self, recover: bool) -> None:
        """The old service counts as finished; a new one comes up with a cluster of its own."""
        services = self.boot.services
        self._bootstrap = "recover" if recover else ""
        self.counted_finished = True
        if self._main is not None:
            self._main.cancel()
        services.set("etcd", "Finished", "Service finished successfully")
        services.set("etcd", "Finished", "Bootstrap requested")
        self._main = self.boot.spawn(self._run())

    async def _run(self) -> None:
        services, storage, timings = self.boot.services, self.boot.node.storage, self.boot.node.world.timings
        if self._bootstrap is not None:
            from tests.lab.sequences import WAIT_ETCD

            services.begin("etcd", WAIT_ETCD)
            await asyncio.sleep(max(self.boot.clock.real(timings.etcd_start), 0.1))  # two calls at once both come before it
        while True:
            services.prepare("etcd")
            if storage.etcd is None and not await self._obtain_data():
                return
            self._bootstrap = None
            data = storage.etcd
            assert data is not None
            services.run("etcd")
            self.running = True
            member = data.cluster.members.get(data.member)
            if member is not None:
                if not member.name:
                    await self.boot.sleep(timings.learner_named)
                member.name = self.boot.hostname
                member.client_url = etcd.client_url(self.boot.node.address)
                self.boot.node.world.observe()
            await self._watch(data)
            self.running = False
            self.member_visible = False
            services.leave("etcd", "Waiting", "Error running Exec(etcd), going to restart forever: process exited: <nil>")
            await self.boot.node.hold("etcd-restart")
            await self.boot.sleep(timings.etcd_restart)

    async def _obtain_data(self) -> bool:
        """Bootstrap or join; False when etcd has failed for good (until the next bootstrap)."""
        boot, node, timings = self.boot, self.boot.node, self.boot.node.world.timings
        config = boot.active
        assert config is not None
        while True:
            if self._bootstrap is not None:
                content = b""
                if self._bootstrap == "recover":
                    uploaded = node.storage.upload
                    if uploaded is None or not etcd.valid_snapshot(uploaded):
                        text = "invalid database" if uploaded is not None else "stat /var/lib/etcd.snapshot: no such file or directory"
                        boot.services.set("etcd", "Failed", f"Failed to run pre stage: error verifying snapshot: {text}", "unknown")
                        return False
                    content = uploaded
                node.storage.etcd = etcd.new_cluster(config.etcd_ca, node.world.member_alive, boot.hostname, node.address, content)
                node.world.etcd_started(node)
                return True
            cluster = node.world.etcd_cluster(config, node)
            if cluster is not None and cluster.quorum():
                try:
                    await self._join(cluster)
                    return True
                except EtcdError:
                    await boot.sleep(timings.join_retry)
            else:
                await boot.sleep(0.2)

    async def _join(self, cluster: Cluster) -> None:
        """A member of the same name is removed first, then the node adds itself as a learner and asks for promotion."""
        boot, node = self.boot, self.boot.node
        for member in list(cluster.members.values()):
            if member.name == boot.hostname:
                cluster.remove(member.id, cluster.leader)
        url = etcd.peer_url(node.address)
        unnamed = [member for member in cluster.members.values() if not member.name and member.peer_url == url]
        member = unnamed[0] if unnamed and node.minor >= 14 else cluster.add_learner(url)
        node.storage.etcd = EtcdData(cluster, member.id)
        node.world.etcd_started(node)
        boot.spawn(self._promote(cluster, member.id))

    async def _promote(self, cluster: Cluster, identifier: int) -> None:
        """Kept in memory only: a restart before it leaves a learner behind."""
        timings = self.boot.node.world.timings
        await self.boot.sleep(timings.promotion_first)
        for unused in range(40):
            member = cluster.members.get(identifier)
            if member is None or not member.learner:
                return
            if cluster.quorum():
                cluster.promote(identifier)
                self.boot.node.world.observe()
            await self.boot.sleep(timings.promotion)

    async def _watch(self, data: EtcdData) -> None:
        """Health checks until the member is gone from its cluster."""
        timings = self.boot.node.world.timings
        wait, passed = timings.health_first, 0.0
        while True:
            await self.boot.sleep(min(0.25, wait))
            if data.member not in data.cluster.members:
                return
            passed += min(0.25, wait)
            if passed + 1e-9 < wait:
                continue
            wait, passed = timings.health, 0.0
            member = data.cluster.members[data.member]
            healthy = not member.learner and data.cluster.quorum()
            self.boot.services.check("etcd", healthy, "etcdserver: rpc not supported for learner" if member.learner else "context deadline exceeded")
            self.member_visible = healthy
            if healthy:
                self.boot.node.world.etcd_started(self.boot.node)
            self.boot.refresh()

    async def leave(self) -> None:
        """Waits for the member resource, removes itself, stops, deletes the data. EtcdError when the last member stays."""
        await self.boot.until(lambda: self.member_visible)
        data = self.data
        assert data is not None
        try:
            data.cluster.remove(data.member, data.member)
        except EtcdError as error:
            if str(error) != etcd.MEMBER_NOT_FOUND:
                raise EtcdError(f"failed to remove member {data.member}: {error}") from error
        self.stop()
        self.boot.node.storage.etcd = None
        self.boot.node.world.observe()
        self.boot.refresh()
