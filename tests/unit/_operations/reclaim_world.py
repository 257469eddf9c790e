# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Foreign clusters in memory beside a store with one cluster of our own, and runs of the reclaim."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_words import ReclaimWish
from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk, EtcdMember, Partition, Probe
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.record_uid import record_uid
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, RECLAIM, Event, Listing, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.reclaim import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.reclaim_reads import Entry, Terms
from ansible_collections.ichor.talos.tests.unit._operations import world as w

LABELS = ("EFI", "META", "STATE", "EPHEMERAL")
UNTIL = "2023-11-15T00:00:00Z"


def volumes(*more: str) -> Present[tuple[Partition, ...]]:
    return Present(tuple(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs") for number, label in enumerate((*LABELS, *more), 1)))


class Session(w.Session):
    """A session whose calls can be made to hang, by name of the call and of the node."""

    async def _call(self, rpc: str) -> w.Node:
        world = self._world
        if isinstance(world, World) and not self.maintenance and (rpc, self._node.name) in world.hanging:
            await asyncio.Event().wait()
        return await super()._call(rpc)

    async def hostname(self) -> Present[str]:
        return Present((await self._call("hostname")).name)

    async def version(self) -> Present[str]:
        return Present((await self._call("version")).version)

    async def disks(self) -> Present[tuple[Disk, ...]]:
        return Present((await self._call("disks")).disks)

    async def reset(self, partitions: Sequence[str], graceful: bool = True) -> None:
        node, world = await self._call("reset"), self._world
        assert isinstance(world, World)
        world.resets.append(node.name)
        world.graceful.append((node.name, graceful))
        if node.reset_fails:
            node.boot += "-again"
            return
        for other in world.nodes.values():
            if graceful:
                other.members = tuple(one for one in other.members if one.id != node.member_id)
        node.etcd, node.members, node.leader = ("Preparing" if node.etcd else ""), (), ""
        node.mode, node.config, node.boot, node.certificate = "maintenance", b"", f"{node.boot}-wiped", w.certificate(f"wiped-{node.name}")
        found = node.partitions.value if isinstance(node.partitions, Present) else ()
        node.partitions = Present(tuple(one for one in found if one.label not in partitions))
        if node.name in world.moves:
            old = next(endpoint for endpoint, one in world.nodes.items() if one is node)
            world.nodes[Endpoint(world.moves[node.name])] = world.nodes.pop(old)
        await world.boundary(f"reset answered {node.name}")


class Nodes(w.Nodes):
    """Nodes that know which authority opens which of them, and that can be scanned."""

    @asynccontextmanager
    async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[w.Session]:
        async with super().maintenance(endpoint, pin) as session:
            yield Session(self, self.world.nodes[session.endpoint], session.endpoint, True, pin)

    @asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[w.Session]:
        async with super().authenticated(endpoint, credentials):
            node = self.world.nodes[endpoint]
            if isinstance(self.world, World) and self.world.locked.get(node.name, credentials.source) != credentials.source:
                raise w.error("UnknownAuthority", endpoint)
            yield Session(self, node, endpoint, False)

    async def scan(self, targets: Sequence[Endpoint], **options: object) -> AsyncIterator[Probe]:  # type: ignore[override]
        for target in targets:
            yield await self.probe(target, 1.0)


class Store(w.Store):
    """The same store, in which records can be created, and with bundles."""

    def create(self, record: Record) -> Record:
        self._world.write(f"create {record.name}")
        made = replace(record, uid=record_uid(record.kind, record.name, record.spec), generation=1, resource_version="1", status_version="1")
        self.put(made)
        self._world.write(f"created {record.name}")
        return made

    def list(self, kind: str) -> Listing:
        broken = self._world.broken if kind == MACHINE and isinstance(self._world, World) else ()
        return replace(super().list(kind), broken=broken)

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        return tuple(event for event in self.written if ref is None or event.ref == ref)

    def bundle_form(self, name: str) -> str:
        return "clear" if isinstance(self._world, World) and name in self._world.bundles else "absent"

    def bundle(self, name: str) -> bytes:
        found = self._world.bundles.get(name) if isinstance(self._world, World) else None
        if found is None:
            raise w.error("SecretsUnavailable", name)
        return found


class World(w.World):
    """`hanging`: (call, node) that never answer. `locked`: the source of the credentials that alone opens a node."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(self)
        self.hanging: set[tuple[str, str]] = set()
        self.locked: dict[str, str] = {}
        self.moves: dict[str, str] = {}
        self.bundles: dict[str, bytes] = {}
        self.broken: tuple[object, ...] = ()
        self.graceful: list[tuple[str, bool]] = []

    def ports(self, holder: str = "run-1", *, check: bool = False, store: bool = True, credentials: bool = True) -> Ports:
        return replace(super().ports(holder, check=check, store=store, credentials=credentials), nodes=Nodes(self))


def config(cluster: str, role: str, endpoint: str = "") -> bytes:
    """What a node of that cluster runs, as far as a reclaim reads it."""
    return json.dumps({"version": "v1alpha1", "machine": {"type": role}, "cluster": {
        "id": f"id-of-{cluster}", "clusterName": cluster, "controlPlane": {"endpoint": endpoint or f"https://{cluster}.example:6443"}}}).encode()


def bundle(cluster: str) -> bytes:
    pair = {"crt": "", "key": ""}
    return json.dumps({"cluster": {"id": f"id-of-{cluster}", "secret": "c2VjcmV0"}, "secrets": {"bootstraptoken": "a.b", "secretboxencryptionsecret": "eA=="},
                       "trustdinfo": {"token": "a.b"}, "certs": {"etcd": pair, "k8s": pair, "k8saggregator": pair, "k8sserviceaccount": {"key": ""},
                                                                 "os": pair}}).encode()


def empty() -> World:
    """Our own cluster prod, and nothing else."""
    world = World()
    world.store.put(w.cluster_record(discovery={"ranges": ["10.0.0.0/24"]}))
    return world


def foreign(world: World, cluster: str = "old", planes: int = 3, workers: int = 1, *, start: int = 1, dead: Sequence[int] = ()) -> World:
    """Control planes cp<start> … and workers after them, that run. Dead ones are off; etcd has a leader while most live."""
    numbers = range(start, start + planes)
    members = tuple(EtcdMember(f"{number:016x}", f"cp{number}", (f"https://10.0.0.{number}:2380",)) for number in numbers)
    alive = [number for number in numbers if number not in dead]
    for number in range(start, start + planes + workers):
        plane = number < start + planes
        node = w.place(world, f"{'cp' if plane else 'w'}{number}", number, "controlplane" if plane else "worker", record=False)
        node.mode, node.stage, node.ready, node.partitions = "closed" if number in dead else "running", "running", True, volumes()
        node.config = config(cluster, "controlplane" if plane else "worker")
        if plane:
            node.etcd, node.members, node.member_id = "Running", members, f"{number:016x}"
            node.leader = f"{alive[0]:016x}" if len(alive) > planes // 2 else ""
    return world


def entry(number: int, confirm: str | None = None, *, force: bool = False, cluster: str = "prod") -> Entry:
    return Entry(ReclaimWish(f"10.0.0.{number}", cluster, w.uuid(number) if confirm is None else confirm, force))


def reclaim(world: World, *entries: Entry, holder: str = "run-1", check: bool = False, store: bool = True, gate: w.OpenGate | None = None, order: str = "",
            terms: Terms | None = None) -> Outcome:
    request = Request(entries, order, terms or Terms(timing=Timing(settle=0.0)))
    return asyncio.run(run(request, world.ports(holder, check=check, store=store), gate or w.OpenGate(check)))


def node(world: World, number: int) -> w.Node:
    return next(one for one in world.nodes.values() if one.identity.uuid == w.uuid(number))


def pending(world: World) -> tuple[str, ...]:
    return tuple(record.name for record in world.store.list(MACHINE).records if record.spec.get("approvalState") == "pending")


def order(world: World, number: int = 4, name: str = "take", **spec: object) -> Record:
    """A MachineReclaim for that machine."""
    values: dict[str, object] = {"address": f"10.0.0.{number}", "clusterRef": "prod", "confirmUUID": w.uuid(number), "notAfter": UNTIL, **spec}
    uid = record_uid(RECLAIM, name, values)  # type: ignore[arg-type]
    record = Record(RECLAIM, name, values, uid=uid, generation=1, resource_version="1", status_version="1")  # type: ignore[arg-type]
    world.store.put(record)
    return record
