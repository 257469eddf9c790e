# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""etcd of one boot as a real process on the node's address: its answers, its refusals, its quorum, its bytes."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab import etcd, etcd_pki
from tests.lab.etcd import Alarm, Cluster, EtcdData, EtcdError, Member, MemberStatus
from tests.lab.etcd_client import EtcdClient, EtcdUnreachable
from tests.lab.etcd_process import EtcdProcess
from tests.lab.etcd_service import EtcdService

if TYPE_CHECKING:
    from tests.lab.boot import Boot

#: Wall seconds: how long etcd's own client tries to reach a leader, the pause between two tries, what a health check waits.
_NO_LEADER_AFTER, _AGAIN, _HEALTH = 2.0, 0.05, 2.0
#: Wall seconds between two looks at the members, for the control interface.
_LOOK = 0.5
_RESTORE = 60.0
_ALARMS = {"NONE": 0, "NOSPACE": 1, "CORRUPT": 2}
_LIST, _STATUS = "cluster/member/list", "maintenance/status"


@dataclass(frozen=True)
class EtcdPrograms:
    """`etcd` and the restorer of tests/parts (None where nothing is restored), and the folder of all nodes' disks."""

    etcd: str
    restore: str | None
    disks: Path


class View(Cluster):
    """What one member last said of its cluster."""

    def quorum(self) -> bool:
        return self.leader != 0


@dataclass
class RealData(EtcdData):
    """A data directory on disk. `initial` is the cluster that a member without data is told of, `fresh` that it is a new one."""

    folder: Path = Path()
    initial: dict[str, str] = field(default_factory=dict)
    fresh: bool = False

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def begun(self) -> bool:
        """The process has written its first data, and reads the cluster from there."""
        return (self.folder / "member" / "wal").is_dir()


class RealEtcd(EtcdService):
    """The process, and the client that Talos has beside it."""

    def __init__(self, boot: Boot, programs: EtcdPrograms) -> None:
        super().__init__(boot)
        self._programs = programs
        self._process: EtcdProcess | None = None
        self._context: ssl.SSLContext | None = None
        self._code = 0
        self._listens = boot.node.address
        self._looking: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return self._listens

    def _disk(self) -> Path:
        """The folder of the partition that keeps etcd's data."""
        node = self.boot.node
        return self._programs.disks / node.folder / ("ETCD" if "ETCD" in node.storage.extra else "EPHEMERAL")

    def _blank(self, initial: Mapping[str, str], fresh: bool) -> RealData:
        config = self.boot.active
        assert config is not None
        folder = self._disk() / "etcd"
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return RealData(View(config.etcd_ca, self.boot.node.world.member_alive), 0, folder, dict(initial), fresh)

    async def _create(self, content: bytes) -> None:
        url = etcd.peer_url(self.boot.node.address)
        data = self._blank({self.boot.hostname: url}, fresh=True)
        if content:
            await self._restore(data, content, url)
        self.boot.node.storage.etcd = data

    async def _restore(self, data: RealData, content: bytes, url: str) -> None:
        if self._programs.restore is None:
            raise RuntimeError("the lab was started without a program that restores a snapshot")
        snapshot = data.folder.parent / "etcd.snapshot"
        snapshot.write_bytes(content)
        command = [self._programs.restore, str(snapshot), str(data.folder), self.boot.hostname, url, *(["unverified"] if self._unverified else [])]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=_RESTORE, check=False)
        if done.returncode:
            raise RuntimeError(f"the snapshot was not restored: {done.stderr[-1000:]}")

    async def _join(self) -> bool:
        try:
            members = await self._ask(_LIST, {"linearizable": True}, with_leader=True, wait=False)
            if members is None:
                return False
            return await self._join_as(_members(members))
        except (EtcdUnreachable, TimeoutError):
            return False

    async def _join_as(self, members: list[Member]) -> bool:
        boot, node = self.boot, self.boot.node
        for member in members:
            if member.name == boot.hostname:
                node.note("etcd-evicts", member=f"{member.id:016x}", name=member.name)
                await self._ask("cluster/member/remove", {"ID": str(member.id)}, with_leader=True)
        url = etcd.peer_url(node.address)
        unnamed = [member for member in members if not member.name and member.peer_url == url]
        if unnamed and node.minor >= 14:
            identifier = unnamed[0].id
        else:
            added = await self._ask("cluster/member/add", {"peerURLs": [url], "isLearner": True}, with_leader=True)
            identifier = int(added["member"]["ID"])
            node.note("etcd-learner-added", member=f"{identifier:016x}")
        listed = _members(await self._ask(_LIST, {"linearizable": True}, with_leader=True))
        data = self._blank({boot.hostname if member.id == identifier else member.name: member.peer_url for member in listed}, fresh=False)
        data.member = identifier
        node.storage.etcd = data
        node.world.etcd_started(node)
        boot.spawn(self._promote(identifier))
        return True

    async def _promoted(self, identifier: int) -> bool:
        try:
            members = _members(await self._ask(_LIST, {"linearizable": True}, with_leader=True))
            if not any(member.id == identifier and member.learner for member in members):
                return True
            await self._ask("cluster/member/promote", {"ID": str(identifier)}, with_leader=True)
        except (EtcdError, TimeoutError) as error:
            self.boot.node.note("etcd-promotion-refused", error=str(error))
            return False
        self.boot.node.note("etcd-promoted", member=f"{identifier:016x}")
        await self.look()
        return True

    def _client(self, address: str) -> EtcdClient:
        if self._context is None:
            self._context = self._issue()
        return EtcdClient(address, self._context)

    def _pki(self) -> Path:
        return self._programs.disks / self.boot.node.folder / "pki"

    def _issue(self) -> ssl.SSLContext:
        node, config = self.boot.node, self.boot.active
        authority = config.etcd_authority() if config is not None else None
        if authority is None or authority.key is None:
            raise RuntimeError(f"the configuration of {node.name} has no etcd CA that can sign")
        addresses = [*node.addresses, "127.0.0.1", "::1"]
        return etcd_pki.write(self._pki(), authority, node.world.clock.now(), self.boot.hostname, addresses)

    async def _started(self) -> None:
        node, data = self.boot.node, self.data
        assert isinstance(data, RealData)
        self._context, self._listens = self._issue(), node.address
        data.folder.parent.mkdir(parents=True, exist_ok=True)
        folder = self._programs.disks / node.folder
        self._process = EtcdProcess(
            self._programs.etcd, self.boot.hostname, node.address, data.folder, self._pki(), folder / "etcd.log", None if data.begun else data.initial,
            data.fresh,
        )
        node.note("etcd-started", pid=self._process.pid)
        if self._looking is None:
            self._looking = self.boot.spawn(self._keep_looking())
        own = self._client(self.address)
        while self._process.running:
            try:
                data.member = int((await own.call(_STATUS, seconds=_HEALTH))["header"]["member_id"])
            except (EtcdError, EtcdUnreachable, TimeoutError):
                await asyncio.sleep(_AGAIN)
                continue
            node.world.etcd_started(node)
            await self.look()
            return

    async def _gone_within(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            async with asyncio.timeout(self.boot.clock.real(seconds)):
                await self._process.ended()
        except TimeoutError:
            return False
        self._code = self._process.code
        self.boot.node.note("etcd-ended", code=self._code)
        return True

    async def _problem(self) -> str | None:
        try:
            await self._client(self.address).call(_LIST, {"linearizable": True}, seconds=_HEALTH, with_leader=True)
        except EtcdError as error:
            return str(error)
        except (EtcdUnreachable, TimeoutError):
            return "context deadline exceeded"
        return None

    async def _remove_own(self, member: int) -> None:
        await self._ask("cluster/member/remove", {"ID": str(member)}, with_leader=True)

    def _outcome(self) -> str:
        return "<nil>" if self._code == 0 else f"exit status {self._code}"

    async def end(self, orderly: bool = False) -> None:
        self.running = False
        if self._process is not None:
            await (self._process.stop() if orderly else self._process.kill())

    def freeze(self, frozen: bool) -> None:
        if self._process is not None:
            self._process.freeze(frozen)

    def process(self) -> dict[str, Any] | None:
        if self._process is None or not self._process.running or not isinstance(self.data, RealData):
            return None
        return {"pid": self._process.pid, "data": str(self.data.folder), "pki": str(self._pki())}

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            await self.look()

    async def look(self) -> None:
        data = self.data
        if not isinstance(data, RealData) or not self.running:
            return
        try:
            found = await self._client(self.address).call(_STATUS, seconds=_HEALTH)
            data.cluster.leader, data.cluster.term = int(found.get("leader", 0)), int(found.get("raftTerm", 0))
            members = await self._ask(_LIST, {"linearizable": False}, wait=False)
        except (EtcdError, EtcdUnreachable, TimeoutError):
            return
        if members is not None:
            data.cluster.members = {member.id: member for member in _members(members)}
        self.boot.node.observe()

    def _clients(self, local: bool) -> list[EtcdClient]:
        """This node's own member first while it is healthy, then the other voters that it reaches."""
        node, config = self.boot.node, self.boot.active
        own = [self.address] if self.running and self._process is not None and self._process.running else []
        if local or config is None:
            return [self._client(address) for address in own]
        others = []
        for other in node.world.configured():
            boot = other.boot
            if other is node or boot is None or boot.active is None or boot.active.etcd_ca != config.etcd_ca or not boot.etcd.running:
                continue
            member = boot.etcd.data.cluster.members.get(boot.etcd.data.member) if boot.etcd.data is not None else None
            if node.world.reachable(node.name, other.name) and member is not None and not member.learner:
                others.append(boot.etcd.address)
        return [self._client(address) for address in (own + others if self.member_visible else others + own)]

    async def _ask(
        self, path: str, body: Mapping[str, Any] | None = None, local: bool = False, with_leader: bool = False, wait: bool = True,
    ) -> Any:
        """As etcd's client asks: from one endpoint to the next, for ever unless `wait` is false (None then), and with some patience for a leader."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while True:
            for client in self._clients(local):
                try:
                    return await client.call(path, body, with_leader=with_leader)
                except EtcdUnreachable:
                    continue
                except EtcdError as error:
                    if str(error) != etcd.NO_LEADER or loop.time() - start > _NO_LEADER_AFTER:
                        raise
            if not wait:
                return None
            await asyncio.sleep(_AGAIN)

    async def members(self, local: bool) -> list[Member]:
        try:
            return _members(await self._ask(_LIST, {"linearizable": True}, local, with_leader=True))
        except TimeoutError as error:
            raise EtcdError("etcdserver: request timed out") from error

    async def status(self) -> MemberStatus:
        found = await self._ask(_STATUS, local=True)
        number = {name: int(found.get(name, 0)) for name in ("dbSize", "dbSizeInUse", "leader", "raftIndex", "raftTerm", "raftAppliedIndex")}
        return MemberStatus(
            int(found["header"]["member_id"]), found["version"], found.get("storageVersion", ""), number["dbSize"], number["dbSizeInUse"], number["leader"],
            number["raftIndex"], number["raftTerm"], number["raftAppliedIndex"], bool(found.get("isLearner")), tuple(found.get("errors", ())),
        )

    async def alarms(self, disarm: bool) -> list[Alarm]:
        found = (await self._ask("maintenance/alarm", {"action": "GET"}, local=True)).get("alarms", [])
        if disarm:
            for item in found:
                await self._ask("maintenance/alarm", {"action": "DEACTIVATE", "memberID": item["memberID"], "alarm": item["alarm"]}, local=True)
        return [Alarm(int(item["memberID"]), _ALARMS[item["alarm"]]) for item in found]

    async def defragment(self) -> None:
        await self._ask("maintenance/defragment", local=True)

    async def remove(self, member: int) -> None:
        await self._ask("cluster/member/remove", {"ID": str(member)}, with_leader=True)

    async def forfeit(self) -> str | None:
        await self.resource()
        members = await self.members(local=False)
        if len(members) == 1:
            raise EtcdError("cannot forfeit leadership, only one member")
        own = await self.status()
        if own.leader != own.member:
            return None
        other = next(member for member in members if member.id != own.member and not member.learner)
        await self._ask("maintenance/transfer-leadership", {"targetID": str(other.id)}, local=True)
        return other.name

    async def snapshot(self) -> AsyncIterator[bytes]:
        while not (clients := self._clients(local=True)):
            await asyncio.sleep(_AGAIN)
        try:
            async for piece in clients[0].snapshot():
                yield piece
        except EtcdUnreachable as error:
            raise EtcdError(str(error)) from error


def _members(answer: Mapping[str, Any]) -> list[Member]:
    return [
        Member(int(item["ID"]), item.get("name", ""), (item.get("peerURLs") or [""])[0], (item.get("clientURLs") or [""])[0], bool(item.get("isLearner")))
        for item in answer.get("members", ())
    ]
