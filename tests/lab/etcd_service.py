# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The etcd service of one boot: bootstrap, join as a learner, promotion, health, restarts, leaving.

What the service does is the same with an emulated etcd (`etcd_emulated`) and with a real one (`etcd_real`); these say how.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from tests.lab import etcd
from tests.lab.etcd import Alarm, EtcdData, EtcdError, Member, MemberStatus

if TYPE_CHECKING:
    from tests.lab.boot import Boot

_PROMOTIONS = 40
#: Lab seconds between two attempts to leave a cluster that is not healthy, and for how long they go on.
_LEAVE_RETRY, _LEAVE_FOR = 10.0, 300.0


class EtcdService(ABC):
    """etcd on one node. `running` means that the process runs, `member_visible` follows its own checks."""

    def __init__(self, boot: Boot) -> None:
        self.boot = boot
        self.running = False
        self.counted_finished = False
        self.member_visible = False
        self._bootstrap: str | None = None  # "" for an empty cluster, "recover" for one from the uploaded snapshot
        self._unverified = False  # the uploaded snapshot carries no hash
        self._main: asyncio.Task[None] | None = None

    @property
    def data(self) -> EtcdData | None:
        return self.boot.node.storage.etcd

    @property
    def address(self) -> str:
        """Where the process listens: the node's address when it was started."""
        return self.boot.node.address

    @property
    def member_hex(self) -> str:
        return f"{self.data.member:016x}" if self.data is not None else ""

    def start(self) -> None:
        self._main = self.boot.spawn(self._run())

    async def stop(self) -> None:
        """The orderly end of the service."""
        self.running = False
        if self._main is not None:
            self._main.cancel()
        self.member_visible = False
        self.boot.services.stop("etcd")
        await self.end(orderly=True)

    def request_bootstrap(self, recover: bool, unverified: bool = False) -> None:
        """The old service counts as finished; a new one comes up with a cluster of its own."""
        services = self.boot.services
        self._bootstrap = "recover" if recover else ""
        self._unverified = unverified
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
            services.run("etcd")
            self.running = True
            await self._started()
            await self._watch()
            self.running = False
            self.member_visible = False
            services.leave("etcd", "Waiting", f"Error running Exec(etcd), going to restart forever: process exited: {self._outcome()}")
            await self.boot.node.hold("etcd-restart")
            await self.boot.sleep(timings.etcd_restart)

    async def _obtain_data(self) -> bool:
        """Bootstrap or join; False when etcd has failed for good (until the next bootstrap)."""
        boot, node = self.boot, self.boot.node
        while True:
            if self._bootstrap is not None:
                content = b""
                if self._bootstrap == "recover":
                    uploaded = node.storage.upload
                    if uploaded is None or not (self._unverified or etcd.valid_snapshot(uploaded)):
                        text = "invalid database" if uploaded is not None else "stat /var/lib/etcd.snapshot: no such file or directory"
                        boot.services.set("etcd", "Failed", f"Failed to run pre stage: error verifying snapshot: {text}", "unknown")
                        return False
                    content = uploaded
                await self._create(content)
                return True
            try:
                if await self._join():
                    return True
                await boot.sleep(0.2)
            except EtcdError:
                await boot.sleep(node.world.timings.join_retry)

    async def _promote(self, identifier: int) -> None:
        """Kept in memory only: a restart before it leaves a learner behind."""
        timings = self.boot.node.world.timings
        await self.boot.sleep(timings.promotion_first)
        for unused in range(_PROMOTIONS):
            if await self._promoted(identifier):
                return
            await self.boot.sleep(timings.promotion)

    async def _watch(self) -> None:
        """Health checks until the member is gone from its cluster, or the process ends."""
        timings = self.boot.node.world.timings
        wait = timings.health_first
        while not await self._gone_within(wait):
            wait = timings.health
            problem = await self._problem()
            self.boot.services.check("etcd", problem is None, problem or "")
            self.member_visible = problem is None
            if self.member_visible:
                self.boot.node.world.etcd_started(self.boot.node)
            self.boot.refresh()

    async def resource(self) -> None:
        """Waits for the member resource, which only a healthy etcd has; EtcdError after three minutes."""
        try:
            async with asyncio.timeout(self.boot.clock.real(self.boot.node.world.timings.member_resource)):
                await self.boot.until(lambda: self.member_visible)
        except TimeoutError as error:
            raise EtcdError("context deadline exceeded") from error

    async def leave(self) -> None:
        """Waits for the member resource, removes itself, stops, deletes the data. EtcdError when the last member stays."""
        await self.resource()
        assert self.data is not None
        member, waited = self.data.member, 0.0
        while True:
            try:
                await self._remove_own(member)
                break
            except EtcdError as error:
                if str(error) == etcd.MEMBER_NOT_FOUND:
                    break
                if str(error) != etcd.UNHEALTHY or waited >= _LEAVE_FOR:
                    raise EtcdError(f"failed to remove member {member}: {error}") from error
            await self.boot.sleep(_LEAVE_RETRY)
            waited += _LEAVE_RETRY
        await self.stop()
        self.boot.node.storage.drop_etcd()
        self.boot.node.world.observe()
        self.boot.refresh()

    @abstractmethod
    async def _create(self, content: bytes) -> None:
        """Data of a new cluster with this node as its only member; with a snapshot's content when there is any."""

    @abstractmethod
    async def _join(self) -> bool:
        """One attempt: a member of the same name is removed first, then the node adds itself as a learner.

        False when no member answers, EtcdError when etcd refuses.
        """

    @abstractmethod
    async def _promoted(self, identifier: int) -> bool:
        """One attempt to promote; True when nothing is left to be done."""

    @abstractmethod
    async def _started(self) -> None:
        """The process comes up on the data that is there."""

    @abstractmethod
    async def _gone_within(self, seconds: float) -> bool:
        """Waits that many lab seconds, or less when the member is gone or its process has ended."""

    @abstractmethod
    async def _problem(self) -> str | None:
        """The health check's complaint."""

    @abstractmethod
    async def _remove_own(self, member: int) -> None:
        """Removes this node's own member."""

    @abstractmethod
    def _outcome(self) -> str:
        """How the process ended, as Go prints it."""

    @abstractmethod
    async def end(self, orderly: bool = False) -> None:
        """No process is left: at once, or after it was asked to stop."""

    def freeze(self, frozen: bool) -> None:
        """The process neither answers nor ends."""
        raise ValueError("only a real etcd can be frozen")

    def process(self) -> dict[str, Any] | None:
        """`pid`, and the paths `data` and `pki` of a real process."""
        return None

    @abstractmethod
    async def look(self) -> None:
        """Brings `data.cluster` up to date for the control interface."""

    @abstractmethod
    async def members(self, local: bool) -> list[Member]:
        """The members as this node's own etcd knows them, or any control plane's."""

    @abstractmethod
    async def status(self) -> MemberStatus:
        """What this node's own member says of itself."""

    @abstractmethod
    async def alarms(self, disarm: bool) -> list[Alarm]:
        """The alarms of the cluster, or those that were disarmed."""

    @abstractmethod
    async def defragment(self) -> None:
        """Of this node's own member."""

    @abstractmethod
    async def remove(self, member: int) -> None:
        """EtcdError as etcd gives it."""

    @abstractmethod
    async def forfeit(self) -> str | None:
        """The name of the new leader; None when this node did not lead. EtcdError when there is nobody else."""

    @abstractmethod
    def snapshot(self) -> AsyncIterator[bytes]:
        """The bytes of a snapshot, in pieces of any length."""
