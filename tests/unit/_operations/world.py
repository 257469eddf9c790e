# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small world in memory for operations: a clock that jumps, a store with optimistic concurrency, nodes with a life.

Every call to a node and every write goes through `World.boundary`, so that a test can change the world, or raise, at any
of them. Configurations that a node receives are logged with the peer's certificate and identity.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import Failure, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import (
    ApplyReply, Certificate, Disk, Endpoint, EtcdAlarm, EtcdMember, EtcdStatus, NodeFacts, Partition, Probe, ServiceState, StageReading,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, LeaseView, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Event, Listing, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.in_thread import WORK

START = 1_700_000_000.0


class Killed(BaseException):
    """The process ends here."""


class JumpingClock:
    """Time moves only when everybody waits for it: nothing works in a thread, and nothing has gone on for 200 turns of the loop."""

    def __init__(self) -> None:
        self.time = START
        self._due: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time - START

    async def sleep(self, seconds: float) -> None:
        due = self.time + seconds
        self._due.append(due)
        try:
            idle = 0
            while self.time < due:
                working = any(thread.name == WORK for thread in threading.enumerate())
                await asyncio.sleep(0.0002 if working else 0)
                idle = 0 if working else idle + 1
                if idle > 200 and due == min(self._due):
                    self.time = max(self.time, due)
        finally:
            self._due.remove(due)


def certificate(name: str) -> Certificate:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return Certificate(f"FP-{name}", digest, START - 60, START + 86_400, "maintenance-service.talos.dev")


@dataclass
class Node:
    """One emulated machine. `mode` is maintenance, closed or running."""

    name: str
    identity: Identity
    mode: str = "maintenance"
    certificate: Certificate = field(default_factory=lambda: certificate("one"))
    disks: tuple[Disk, ...] = (Disk("sda", "/dev/sda", 10 ** 11, wwid="wwid-sda"),)
    version: str = "v1.13.9"
    secure_boot: bool = False
    stage: str = "booting"
    ready: bool = False
    unattended: str = ""
    etcd: str = "Preparing"
    members: tuple[EtcdMember, ...] = ()
    leader: str = ""
    learner: bool = False
    member_id: str = ""
    config: bytes = b""
    boot: str = "boot-1"
    #: Raised by the next applies, before or after the node stored.
    refuse: list[TalosError] = field(default_factory=list)
    lose: list[TalosError] = field(default_factory=list)
    bootstrap_errors: list[TalosError] = field(default_factory=list)
    partitions: Observed[tuple[Partition, ...]] = field(default_factory=Absent)
    #: Raised by the next removals of a member through this node, before or after etcd did it.
    keep_member: list[TalosError] = field(default_factory=list)
    lose_removal: list[TalosError] = field(default_factory=list)
    after_apply: str = "closed"
    #: A reset that is answered OK and fails: the node restarts with its data.
    reset_fails: bool = False

    @property
    def worker(self) -> bool:
        return self.etcd == ""


#: Calls that change a node.
WRITES = frozenset({"apply", "etcd_remove_member", "etcd_leave", "reset", "bootstrap"})


class Session:
    """Implements the port `Session` for one connection."""

    def __init__(self, nodes: Nodes, node: Node, endpoint: Endpoint, maintenance: bool, pin: str = "") -> None:
        self._nodes, self._world, self._node, self._pin = nodes, nodes.world, node, pin
        self.endpoint, self.maintenance, self.certificate = endpoint, maintenance, node.certificate

    async def _call(self, rpc: str) -> Node:
        await self._world.boundary(f"{rpc} {self._node.name}")
        if self._nodes.stopped and rpc in WRITES:
            raise asyncio.CancelledError
        node = self._node
        alive = node.mode == ("maintenance" if self.maintenance else "running")
        if not alive or self._world.nodes.get(self.endpoint) is not node:
            raise error("ConnectionLost", self.endpoint)
        return node

    async def identity(self) -> Identity:
        return (await self._call("identity")).identity

    async def facts(self) -> NodeFacts:
        node = await self._call("facts")
        stage = "maintenance" if self.maintenance else node.stage
        return NodeFacts(self.endpoint, self.certificate, node.identity, Present(StageReading(stage, True)), Present(node.disks), Absent(),
                         node.partitions, node.version, Present(node.secure_boot), "")

    async def stage(self) -> StageReading:
        node = await self._call("stage")
        return StageReading("maintenance" if self.maintenance else node.stage, node.ready, (), node.unattended)

    async def machine_config(self, persistent: bool = False) -> Present[bytes]:
        return Present((await self._call("machine_config")).config)

    async def boot_id(self) -> Present[str]:
        return Present((await self._call("boot_id")).boot)

    async def services(self) -> tuple[ServiceState, ...]:
        node = await self._call("services")
        return (ServiceState("apid", "Running", True),) + (() if node.worker else (ServiceState("etcd", node.etcd),))

    async def etcd_members(self, local: bool) -> tuple[EtcdMember, ...]:
        node = await self._call("etcd_members")
        if node.worker:
            raise error("Unimplemented", self.endpoint)
        if node.etcd != "Running":
            raise error("TimedOut", self.endpoint)
        return node.members

    async def etcd_status(self, node: str = "") -> EtcdStatus:
        own = await self._call("etcd_status")
        if node:
            other = self._world.nodes.get(Endpoint(node))
            if other is None or other.mode != "running" or other.name in self._world.apart:
                raise error("CallFailed", node)
            return self._status(other)
        return self._status(own)

    def _status(self, node: Node) -> EtcdStatus:
        if node.worker:
            raise error("Unimplemented", self.endpoint)
        if node.etcd != "Running":
            raise error("TimedOut", self.endpoint)
        return EtcdStatus(node.member_id or f"{node.name}-id", node.leader, node.learner)

    async def apply(self, config: bytes, mode: str) -> ApplyReply:
        node = await self._call("apply")
        if not self.certificate.matches(self._pin):
            self._world.unpinned.append(node.name)
        self._world.received.append((node.name, node.identity.uuid, self.certificate.fingerprint, hashlib.sha256(config).hexdigest(), mode))
        if node.refuse:
            raise node.refuse.pop(0)
        self._world.accepted.append(node.name)
        node.config, node.mode = config, node.after_apply
        if node.lose:
            raise node.lose.pop(0)
        await self._world.boundary(f"apply answered {node.name}")
        return ApplyReply("NO_REBOOT", "Applied configuration without a reboot")

    async def etcd_remove_member(self, member: str) -> None:
        node = await self._call("etcd_remove_member")
        if node.keep_member:
            raise node.keep_member.pop(0)
        if all(one.id != member for one in node.members):
            raise error("NotFound", self.endpoint)
        self._world.removed.append(member)
        for other in self._world.nodes.values():
            other.members = tuple(one for one in other.members if one.id != member)
        if node.lose_removal:
            raise node.lose_removal.pop(0)

    async def partitions(self) -> Observed[tuple[Partition, ...]]:
        return (await self._call("partitions")).partitions

    async def etcd_leave(self) -> None:
        node = await self._call("etcd_leave")
        member = node.member_id or f"{node.name}-id"
        for other in self._world.nodes.values():
            other.members = tuple(one for one in other.members if one.id != member)
        node.etcd, node.members, node.leader = "Finished", (), ""
        self._world.left.append(node.name)
        await self._world.boundary(f"etcd_leave answered {node.name}")

    async def reset(self, partitions: Sequence[str]) -> None:
        node = await self._call("reset")
        self._world.resets.append(node.name)
        found = node.partitions.value if isinstance(node.partitions, Present) else ()
        if node.reset_fails:
            node.boot += "-again"
            return
        node.mode, node.config, node.partitions = "maintenance", b"", Present(tuple(one for one in found if one.label not in partitions))
        node.boot += "-wiped"
        await self._world.boundary(f"reset answered {node.name}")

    async def etcd_alarms(self) -> tuple[EtcdAlarm, ...]:
        await self._call("etcd_alarms")
        return ()

    async def bootstrap(self) -> None:
        node = await self._call("bootstrap")
        self._world.bootstraps.append(node.name)
        if node.bootstrap_errors:
            raise node.bootstrap_errors.pop(0)
        if node.etcd != "Preparing":
            raise error("AlreadyExists", self.endpoint)
        node.stage, node.ready, node.etcd, node.leader = "running", True, "Running", f"{node.name}-id"
        node.members = (EtcdMember(f"{node.name}-id", node.name, (f"https://{self.endpoint.host}:2380",)),)
        if node.lose:
            raise node.lose.pop(0)


def error(reason: str, endpoint: Endpoint | str = "10.0.0.1:50000", detail: str = "") -> TalosError:
    return TalosError(reason, f"{endpoint}: {reason}.", "Look at it.", detail=detail, failure=Failure(node=str(endpoint)))


class Nodes:
    """Implements the port `Nodes`."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: No write begins any more.
        self.stopped = False

    @asynccontextmanager
    async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[Session]:
        await self.world.boundary(f"maintenance {endpoint}")
        node = self.world.nodes.get(endpoint)
        if node is None or node.mode == "closed":
            raise error("ConnectionRefused", endpoint)
        if node.mode == "running":
            raise error("ClientCertificateRequired", endpoint)
        if pin and not node.certificate.matches(pin):
            raise error("MaintenanceIdentityChanged", endpoint)
        self.world.open[endpoint] = self.world.open.get(endpoint, 0) + 1
        self.world.most_open[endpoint] = max(self.world.most_open.get(endpoint, 0), self.world.open[endpoint])
        try:
            yield Session(self, node, endpoint, True, pin)
        finally:
            self.world.open[endpoint] -= 1

    @asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[Session]:
        await self.world.boundary(f"authenticated {endpoint}")
        node = self.world.nodes.get(endpoint)
        if node is None or node.mode == "closed":
            raise error("ConnectionRefused", endpoint)
        if node.mode == "maintenance":
            raise error("UnknownAuthority", endpoint)
        yield Session(self, node, endpoint, False)

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        await self.world.boundary(f"probe {endpoint}")
        node = self.world.nodes.get(endpoint)
        if node is None or node.mode == "closed":
            return Probe(endpoint, "NotListening", None, "ConnectionRefused", "nothing listens")
        return Probe(endpoint, "Maintenance" if node.mode == "maintenance" else "AlreadyConfigured", node.certificate)

    def scan(self, *unused: object, **options: object) -> None:
        raise NotImplementedError

    @property
    def written(self) -> bool:
        return bool(self.world.accepted)

    def end_writes(self) -> None:
        self.stopped = True

    async def close(self) -> None:
        return None


class Leases:
    """Implements the port `Leases`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.held: dict[str, LeaseView] = {}
        self.refuse: str = ""

    def read(self, name: str) -> LeaseView | None:
        return self.held.get(name)

    def acquire(self, name: str, holder: str, purpose: str, duration: float) -> LeaseView:
        self._world.write(f"lease {name}")
        if self.refuse:
            raise TalosError(self.refuse, "There is no lock.", "Take over.")
        view = self.held.get(name)
        if view is not None and view.holder not in self._world.dead:
            raise TalosError("LockHeld", f"The lock of {name} is held by {view.holder}.", "Wait.")
        self.held[name] = LeaseView(name, holder, purpose, self._world.clock.now(), self._world.clock.now(), duration, "1")
        return self.held[name]

    def renew(self, lease: LeaseView) -> LeaseView:
        self._world.write(f"renew {lease.name}")
        view = self.held.get(lease.name)
        if view is None or view.holder != lease.holder or view.version != lease.version:
            raise TalosError("LockHeld", "The lock was lost.", "Run this again.")
        self.held[lease.name] = replace(view, renewed_at=self._world.clock.now(), version=str(int(view.version) + 1))
        return self.held[lease.name]

    def release(self, lease: LeaseView) -> None:
        self._world.write(f"release {lease.name}")
        view = self.held.get(lease.name)
        if view is not None and view.version == lease.version:
            del self.held[lease.name]


class Store:
    """Implements the port `Store` in memory."""

    description = "the store in memory"

    def __init__(self, world: World) -> None:
        self._world = world
        self.records: dict[Ref, Record] = {}
        self.written: list[Event] = []
        self.leases = Leases(world)
        self.writes = 0

    def put(self, record: Record) -> None:
        self.records[record.ref] = record

    def get(self, kind: str, name: str) -> Record | None:
        return self.records.get(Ref(kind, name))

    def list(self, kind: str) -> Listing:
        return Listing(tuple(sorted((record for ref, record in self.records.items() if ref.kind == kind), key=lambda record: record.name)))

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        self._world.write(f"status {ref.name}")
        record = self.records[ref]
        if expect is not None and (expect.status_version, expect.resource_version) != (record.status_version, record.resource_version):
            raise TalosError("RecordChanged", f"{ref.name} changed since it was read.", "Run this again.")
        status = change(dict(record.status))
        after = replace(record, status=status, status_version=str(int(record.status_version or "0") + 1))  # type: ignore[arg-type]
        self.records[ref] = after
        self.writes += 1
        self._world.write(f"status written {ref.name}")
        return after

    def record_event(self, event: Event) -> None:
        self._world.write(f"event {event.reason}")
        self.written.append(event)

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        return tuple(self.written)

    def __getattr__(self, name: str) -> object:
        if name == "recent":  # a store of its own kind has it, and is asked for it
            raise AttributeError(name)
        raise AssertionError(f"an operation of provisioning never calls Store.{name}")


class World:
    """Everything together, and the hooks."""

    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.store = Store(self)
        self.nodes: dict[Endpoint, Node] = {}
        self.received: list[tuple[str, str, str, str, str]] = []
        self.accepted: list[str] = []
        #: Nodes that were sent bytes on a connection that no pin was asked for.
        self.unpinned: list[str] = []
        self.bootstraps: list[str] = []
        #: Ids of etcd members that were removed.
        self.removed: list[str] = []
        #: Names of nodes that left etcd, that were reset, and that no other node reaches.
        self.left: list[str] = []
        self.resets: list[str] = []
        self.apart: set[str] = set()
        self.lines: list[str] = []
        self.open: dict[Endpoint, int] = {}
        self.most_open: dict[Endpoint, int] = {}
        self.trace: list[str] = []
        self.dead: set[str] = set()
        self.hook: Callable[[int, str], None] = lambda number, what: None

    async def boundary(self, what: str) -> None:
        await asyncio.sleep(0)
        self.write(what)

    def write(self, what: str) -> None:
        self.trace.append(what)
        self.hook(len(self.trace), what)

    def ports(self, holder: str = "run-1", *, check: bool = False, store: bool = True, credentials: bool = True) -> Ports:
        def source(cluster: str, bundle: str) -> Credentials:
            if not credentials:
                raise TalosError("SecretsUnavailable", "There is no credential.", "Give a talosconfig.")
            return Credentials("CA PEM", "CERT", "KEY", "talosconfig")

        return Ports(nodes=Nodes(self), store=self.store if store else None, clock=self.clock, progress=self.lines.append,  # type: ignore[arg-type]
                     actor=Actor("anna", "anna"), check=check, holder=holder, credentials=source)

    def machine(self, name: str) -> Record:
        record = self.store.get(MACHINE, name)
        assert record is not None
        return record

    def cluster(self, name: str = "prod") -> Record:
        record = self.store.get(CLUSTER, name)
        assert record is not None
        return record


#: How the store's writes begin in a trace.
STORE_WRITES = ("status ", "event ", "create ", "delete ", "lease ", "renew ", "release ")


def store_writes(world: World) -> list[int]:
    """The numbers of the store's writes among the boundaries that a world went through."""
    return [number for number, what in enumerate(world.trace, 1) if what.startswith(STORE_WRITES) and not what.startswith("status written")]


def read_only_from_each_write(whole: World, make: Callable[[], World], act: Callable[[World, str], Outcome],
                              ended: Callable[[World], None]) -> Iterator[tuple[str, World, Outcome]]:
    """For each write that `whole` went through: what it was, a world whose store is read-only from there on, and what a run by `run-1` came to in it.
    Once that was looked at the store is mended, what the run held has run out, and a run by `run-2` has to go through, to the
    end that `ended` asks for."""
    for at in store_writes(whole):
        world = make()

        def fail(number: int, what: str, at: int = at) -> None:
            if number >= at and what.startswith(STORE_WRITES) and not what.startswith("status written"):
                raise TalosError("StoreReadOnly", "The store is read-only.", "Make it writable.")

        world.hook = fail
        done = act(world, "run-1")
        assert (done.reason == "StoreReadOnly") == done.refused, (whole.trace[at - 1], done.message)
        yield whole.trace[at - 1], world, done
        world.hook = lambda number, what: None
        world.dead.add("run-1")
        again = act(world, "run-2")
        assert not again.refused, (whole.trace[at - 1], again.message)
        world.store.leases.held.clear()
        ended(world)


class OpenGate:
    """The gate of a real run; keeps the plans."""

    def __init__(self, check: bool = False) -> None:
        self.plans: list[Plan] = []
        self._check = check

    def __call__(self, plan: Plan) -> Plan:
        self.plans.append(plan)
        return replace(plan, steps=()) if self._check else plan


def config(role: str = "worker", hostname: str = "", disk: str = "/dev/sda", extra: str = "") -> bytes:
    """A complete configuration, as small as it can be."""
    host = f"---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: 'off'\nhostname: {hostname}\n" if hostname else ""
    return (f"version: v1alpha1\nmachine:\n  type: {role}\n  token: abcdef.0123456789abcdef\n  install:\n    disk: {disk}\n"
            f"cluster:\n  clusterName: prod\n  controlPlane:\n    endpoint: https://10.9.9.9:6443\n{extra}{host}").encode()


def machine_record(name: str, number: int, role: str = "worker", *, status: Mapping[str, object] | None = None, **spec: object) -> Record:
    """An approved machine with a pin, at 10.0.0.<number>."""
    values: dict[str, object] = {
        "clusterRef": "prod", "identity": {"uuid": uuid(number), "serial": f"SER-{number}", "macs": [f"00:1c:42:00:{number >> 8:02x}:{number & 255:02x}"]},
        "endpoint": f"10.0.{number >> 8}.{number & 255}:50000", "approvalState": "approved", "approvedBy": "anna", "approvedVia": "anna",
        "approvedAt": "2023-11-14T00:00:00Z", "role": role, "hostname": name, "approvedDisk": {"wwid": "wwid-sda", "size": 10 ** 11},
    }
    values.update(spec)
    state = {"stage": "maintenance", "maintenanceFingerprint": "FP-one", "maintenanceFingerprintAt": "2023-11-14T00:00:00Z"}
    kept = {key: value for key, value in values.items() if value is not None}
    return Record(MACHINE, name, kept, state if status is None else dict(status),  # type: ignore[arg-type]
                  uid=f"uid-{name}", generation=1, resource_version="1", status_version="1")


def cluster_record(*, status: Mapping[str, object] | None = None, count: int = 3, **spec: object) -> Record:
    values: dict[str, object] = {"talosVersion": "v1.13.9", "endpoint": "https://10.9.9.9:6443", "controlPlane": {"count": count}}
    values.update(spec)
    return Record(CLUSTER, "prod", values, dict(status or {}), uid="uid-prod", generation=1, resource_version="1", status_version="1")  # type: ignore[arg-type]


def uuid(number: int) -> str:
    return f"4c4c4544-0044-4a10-8035-b4c04f33{number:04x}"


def identity(number: int) -> Identity:
    return Identity(uuid(number), f"SER-{number}", (f"00:1c:42:00:{number >> 8:02x}:{number & 255:02x}",))


def place(world: World, name: str, number: int, role: str = "worker", *, record: bool = True, **spec: object) -> Node:
    """A node in maintenance mode at 10.0.0.<number>, and the approved record of it."""
    node = Node(name, identity(number), etcd="" if role == "worker" else "Preparing")
    world.nodes[Endpoint(f"10.0.{number >> 8}.{number & 255}")] = node
    if record:
        world.store.put(machine_record(name, number, role, **spec))  # type: ignore[arg-type]
    return node
