# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looking at a foreign node: all calls side by side, each given up after its own deadline, and silence is a result (design section 16)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from .._decide.hostnames import host_of
from .._decide.member_death import sees_leader
from .._decide.reclaim_words import Inspection, Owner
from .._machineconfig.bring import bring
from .._model.credentials import Credentials
from .._model.dialling import DialRules
from .._model.endpoint import Endpoint
from .._model.errors import TalosError
from .._model.observations import EtcdMember, EtcdStatus
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.ports import Ports, Session
from .._model.timing import Timing
from .life_reads import unknown

T = TypeVar("T")


async def inspect(ports: Ports, endpoint: Endpoint, credentials: Credentials, timing: Timing, rules: DialRules) -> Observed[Inspection]:
    """Everything that can be read of the node with authentication. Unknown where it gives no session. `rules`: which addresses of other
    members are never dialled."""
    try:
        async with ports.nodes.authenticated(endpoint, credentials) as session:
            return Present(await _Look(ports, session, credentials, timing, rules).everything(), str(endpoint))
    except TalosError as error:
        return unknown(error)


class _Look:
    """One look over one session."""

    def __init__(self, ports: Ports, session: Session, credentials: Credentials, timing: Timing, rules: DialRules) -> None:
        self._ports, self._session, self._credentials = ports, session, credentials
        self._seconds, self._rules = timing.inspection, rules

    async def everything(self) -> Inspection:
        session, start = self._session, self._start
        identity, owner = start("the identity", _present(session.identity())), start("the machine configuration", _owner(session))
        stage, hostname = start("the stage", _present(session.stage())), start("the host name", session.hostname())
        version, boot_id = start("the Talos version", session.version()), start("the boot id", session.boot_id())
        partitions, disks = start("the volumes", session.partitions()), start("the disks", session.disks())
        services = start("the list of services", _present(session.services()))
        etcd = start("etcd (its status)", _etcd(session.etcd_status()))
        members = start("etcd (its member list)", _etcd(session.etcd_members(local=False)))
        tasks: tuple[asyncio.Future[Any], ...] = (identity, owner, stage, hostname, version, boot_id, partitions, disks, services, etcd, members)
        try:
            await asyncio.gather(*tasks)
            return Inspection(
                identity.result(), owner.result(), stage.result(), hostname.result(), version.result(), boot_id.result(), partitions.result(),
                disks.result(), services.result(), etcd.result(), members.result(), await self._others(etcd.result(), members.result()))
        finally:
            for task in tasks:
                task.cancel()

    def _start(self, what: str, reading: Coroutine[object, object, Observed[T]]) -> asyncio.Task[Observed[T]]:
        return asyncio.ensure_future(self._within(what, reading))

    async def _within(self, what: str, reading: Coroutine[object, object, Observed[T]]) -> Observed[T]:
        """The reading, or why there is none; given up when its time is over."""
        task = asyncio.ensure_future(reading)
        timer = asyncio.ensure_future(self._ports.clock.sleep(self._seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        except TalosError as error:
            if error.reason != "TimedOut":
                return unknown(error)
        finally:
            task.cancel()
            timer.cancel()
        self._ports.progress(f"{self._session.endpoint}: {what} did not answer within {self._seconds:g} s")
        return Unknown("TimedOut", f"{what} did not answer within {self._seconds:g} s")

    async def _others(self, own: Observed[EtcdStatus], listed: Observed[tuple[EtcdMember, ...]]) -> tuple[tuple[str, Observed[EtcdStatus]], ...]:
        """What the other members say of themselves, through this node or directly: whoever tells of a leader counts."""
        mine = own.value.member_id if isinstance(own, Present) else ""
        others = [member for member in listed.value if member.id != mine] if isinstance(listed, Present) else []
        found = await asyncio.gather(*(self._other(member) for member in others))
        return tuple((member.id, status) for member, status in zip(others, found))

    async def _other(self, member: EtcdMember) -> Observed[EtcdStatus]:
        host = next((host_of(url) for url in member.peer_urls if host_of(url)), "")
        if not host:
            return Absent("it has no peer address")
        asked = await asyncio.gather(
            self._within(f"etcd of {host}", _etcd(self._session.etcd_status(node=host))),
            self._within(f"etcd of {host}", self._direct(host)))
        for status in asked:
            # At a peer's address a neighbour could answer: only the member itself tells of itself.
            if isinstance(status, Present) and sees_leader(status) and status.value.member_id == member.id:
                return status
        return next((status for status in asked if not isinstance(status, Present)), Unknown("CallFailed", "it sees no leader"))

    async def _direct(self, host: str) -> Observed[EtcdStatus]:
        self._rules.check(host)
        async with self._ports.nodes.authenticated(Endpoint(host, self._session.endpoint.port), self._credentials) as session:
            return Present(await session.etcd_status(), host)


async def _present(reading: Coroutine[object, object, T]) -> Observed[T]:
    return Present(await reading)


async def _etcd(reading: Coroutine[object, object, T]) -> Observed[T]:
    """A worker says that it has no etcd."""
    try:
        return Present(await reading)
    except TalosError as error:
        if error.reason in ("Unimplemented", "NotControlPlane"):
            return Absent("it is no control plane")
        raise


async def _owner(session: Session) -> Observed[Owner]:
    found = await session.machine_config(persistent=True)
    if not isinstance(found, Present):
        return found
    config = bring(found.value, source="the configuration of the node")
    if not config.role:
        return Unknown("ConfigInvalid", "its configuration says neither controlplane nor worker")
    return Present(Owner(config.cluster_id, config.cluster_name, config.endpoint, config.role))
