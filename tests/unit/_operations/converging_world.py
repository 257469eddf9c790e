# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory store with a cluster that runs, and nodes in memory that keep two configurations and restart."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.contract import schema_for
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.reboot import effect
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite, Failure, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import (
    ApplyReply, Certificate, Endpoint, EtcdMember, EtcdStatus, NodeFacts, Probe, ServiceState, StageReading,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, LeaseView, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Json, Record, condition_of
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations import converge
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_effects import Effects
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Surroundings
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import read_machine
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from ansible_collections.ichor.talos.plugins.module_utils._operations.rounds import Acted, Round
from ansible_collections.ichor.talos.tests.unit._operations import configuration_world as cw
from ansible_collections.ichor.talos.tests.unit._operations import world as w


@dataclass
class Node:
    """A configured node. `active` is what it runs, `kept` what it was sent in this boot and keeps, None where that is the same."""

    name: str
    identity: Identity
    active: bytes
    version: str = "v1.13.9"
    kept: bytes | None = None
    boot: int = 1
    stage: str = "running"
    ready: bool = True
    control_plane: bool = False
    leader: str = "1"
    silent: bool = False
    #: Its API has another CA than the bundle; or it is in maintenance mode.
    foreign: bool = False
    maintained: bool = False
    #: Raised by the next apply or reboot, before and after it took effect.
    refuse: list[TalosError] = field(default_factory=list)
    lose: list[TalosError] = field(default_factory=list)

    def restart(self) -> None:
        """What a reboot does: the kept configuration becomes the active one, and nothing is said of what is kept."""
        self.boot += 1
        self.active, self.kept, self.silent, self.stage = self.kept or self.active, None, False, "running"


class Session:
    """Implements the part of the port `Session` that a converged machine needs."""

    maintenance = False
    certificate: Certificate = w.certificate("run")

    def __init__(self, world: World, node: Node, endpoint: Endpoint, check: bool) -> None:
        self._world, self._node, self.endpoint, self._check = world, node, endpoint, check

    async def _call(self, rpc: str) -> Node:
        self._world.call(f"{rpc} {self._node.name}")
        await asyncio.sleep(0)
        if self._node.silent:
            raise TalosError("ConnectionLost", f"{self.endpoint} went away.", "Look at it.")
        return self._node

    async def _write(self, rpc: str) -> Node:
        if self._check:
            raise CheckModeWrite(rpc)
        node = await self._call(rpc)
        self._world.tries.append(rpc)
        if node.refuse:
            raise node.refuse.pop(0)
        return node

    async def identity(self) -> Identity:
        return (await self._call("identity")).identity

    async def stage(self) -> StageReading:
        node = await self._call("stage")
        return StageReading(node.stage, node.ready)

    async def facts(self) -> NodeFacts:
        node = await self._call("facts")
        return NodeFacts(self.endpoint, self.certificate, node.identity, Present(StageReading(node.stage, node.ready)), talos_version=node.version)

    async def machine_config(self, persistent: bool = False) -> Present[bytes] | Absent:
        node = await self._call("machine_config")
        if not persistent:
            return Present(node.active)
        return Present(node.kept) if node.kept is not None else Absent()

    async def boot_id(self) -> Present[str]:
        return Present(f"boot-{(await self._call('boot_id')).boot}")

    async def services(self) -> tuple[ServiceState, ...]:
        return ()

    async def etcd_members(self, local: bool) -> tuple[EtcdMember, ...]:
        await self._call("etcd_members")
        return self._world.members()

    async def etcd_status(self) -> EtcdStatus:
        node = await self._call("etcd_status")
        if not node.control_plane:
            raise TalosError("Unimplemented", "A worker has no etcd.")
        return EtcdStatus("1", node.leader)

    async def apply(self, config: bytes, mode: str) -> ApplyReply:
        node = await self._write("apply")
        self._world.sent.append((node.name, mode, config))
        schema = schema_for(node.version)
        needs = effect(load(node.active, schema), load(config, schema), node.version)
        if mode == "NO_REBOOT" and any(one.document == "v1alpha1" for one in needs.reboot) and not node.version.startswith("v1.14"):
            raise TalosError("ConfigRejected", "The node refused the configuration.", detail=(
                f"this config change can't be applied in immediate mode\ndiff:\n+ token: {bring(config).secrets!r}"),
                failure=Failure(code="INVALID_ARGUMENT"))
        self._world.times.append((self._world.clock.now(), "apply"))
        self._world.on_apply(node)
        node.kept = config
        if mode == "NO_REBOOT":
            node.active = config
        if node.lose:
            raise node.lose.pop(0)
        return ApplyReply(mode)

    async def reboot(self) -> None:
        node = await self._write("reboot")
        self._world.sent.append((node.name, "REBOOT", b""))
        if not self._world.ignore_reboot:
            node.silent = True
            self._world.back_at[node.name] = self._world.clock.now() + self._world.down_for()
            self._world.most_down = max(self._world.most_down, sum(other.silent for other in self._world.nodes.values()))
        if node.lose:
            raise node.lose.pop(0)


@dataclass
class Nodes:
    """Implements the part of the port `Nodes` that a converged machine needs; nothing here answers without authentication."""

    world: World
    check: bool = False

    @contextlib.asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[Session]:
        self.world.call(f"authenticated {endpoint}")
        await asyncio.sleep(0)
        self.world.come_back()
        node = self.world.nodes.get(endpoint)
        if node is None or node.silent:
            raise TalosError("TimedOut", f"{endpoint} gives no answer.", "Look at it.")
        if node.foreign or node.maintained:
            raise TalosError("UnknownAuthority", f"{endpoint} shows a certificate of another authority.", "Give the right talosconfig.")
        yield Session(self.world, node, endpoint, self.check)

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        self.world.call(f"probe {endpoint}")
        node = self.world.nodes[endpoint]
        return Probe(endpoint, "Maintenance" if node.maintained else "AlreadyConfigured")

    @property
    def written(self) -> bool:
        return False

    def end_writes(self) -> None:
        return None

    async def close(self) -> None:
        return None


class World:
    """Store, nodes and runs."""

    def __init__(self, folder: Path, version: str = "v1.13.9", **cluster: object) -> None:
        self.folder, self.version = folder, version
        base = cw.World(folder)
        self.clock, self.store = base.clock, base.store
        base.put_bundle()
        spec = {**base.cluster.spec, "talosVersion": version, **cluster}
        if version.startswith("v1.12"):
            spec["kubernetesVersion"] = "v1.34.0"
        self.store.update(base.cluster, spec)  # type: ignore[arg-type]
        self.store.patch_status(base.cluster.ref, base.cluster.uid, lambda status: {**status, "bootstrappedAt": "2026-01-01T00:00:00Z"})
        self._base = base
        self.nodes: dict[Endpoint, Node] = {}
        self.back_at: dict[str, float] = {}
        self.calls: list[str] = []
        self.sent: list[tuple[str, str, bytes]] = []
        self.lines: list[str] = []
        #: Every write that reached a node, refused ones as well.
        self.tries: list[str] = []
        self.times: list[tuple[float, str]] = []
        self.on_apply: Callable[[Node], object] = lambda node: None
        self.ignore_reboot = False
        self.down_for: Callable[[], float] = lambda: 40.0
        #: What becomes of a node when it is up again.
        self.on_boot: Callable[[Node], object] = lambda node: None
        self.lose_lease = False
        #: Called with the number of each call to a node and of each write to the store before it is made, and of each write after it.
        self.hook: Callable[[int, str], None] = lambda number, what: None
        self.boundaries: list[str] = []
        self.most_down = 0
        self.authority = read_bundle(self.store.bundle("prod")).os.crt
        self.whereabouts: Callable[..., object] | None = None
        #: Stands for the Kubernetes that the machines' Nodes are in.
        self.workloads: object = None

    def call(self, what: str) -> None:
        self.calls.append(what)
        self.boundary(what)

    def boundary(self, what: str) -> None:
        self.boundaries.append(what)
        self.hook(len(self.boundaries), what)

    def watch_the_store(self) -> None:
        """Makes a boundary of the time before and after each write."""
        for owner, name in ((self.store, "patch_status"), (self.store, "record_event"), (self.store.leases, "acquire"), (self.store.leases, "renew"),
                            (self.store.leases, "release")):
            setattr(owner, name, self._watched(name, getattr(owner, name)))

    def _watched(self, name: str, write: Callable[..., object]) -> Callable[..., object]:
        def watched(*given: object, **named: object) -> object:
            self.boundary(f"{name} begins")
            found = write(*given, **named)
            self.boundary(f"{name} is written")
            return found
        return watched

    def come_back(self) -> None:
        for node in self.nodes.values():
            if node.name in self.back_at and self.clock.now() >= self.back_at[node.name]:
                del self.back_at[node.name]
                node.restart()
                self.on_boot(node)

    def members(self) -> tuple[EtcdMember, ...]:
        return tuple(EtcdMember(node.name, node.name, (f"https://{at.host}:2380",)) for at, node in self.nodes.items() if node.control_plane)

    def render(self, name: str) -> bytes:
        found = Renderer(self.store).machine(read_machine(self.store, name))
        assert isinstance(found, Present), found
        return found.value.text.encode()

    def joined(self, name: str, number: int, role: str = "worker", **spec: object) -> Node:
        """A machine that has joined and runs what the records say now."""
        self._base.machine(name, number, role, **spec)  # type: ignore[arg-type]
        node = Node(name, w.identity(number), self.render(name), self.version, control_plane=role == "controlplane")
        self.nodes[Endpoint(f"10.0.0.{number}")] = node
        return node

    def change(self, name: str, **spec: object) -> None:
        machine = self.machine(name)
        self.store.update(machine, {**machine.spec, **spec})  # type: ignore[arg-type]

    def change_cluster(self, **spec: object) -> None:
        cluster = self.cluster()
        self.store.update(cluster, {key: value for key, value in {**cluster.spec, **spec}.items() if value is not None})  # type: ignore[arg-type]

    def annotate(self, name: str, **annotations: str) -> None:
        machine = self.machine(name)
        self.store.update(machine, machine.spec, annotations={**machine.annotations, **annotations})

    def machine(self, name: str) -> Record:
        found = self.store.get(MACHINE, name)
        assert found is not None
        return found

    def cluster(self) -> Record:
        found = self.store.get(CLUSTER, "prod")
        assert found is not None
        return found

    def ready(self, name: str) -> tuple[str, str] | None:
        return self.condition(name, "Ready")

    def condition(self, name: str, kind: str) -> tuple[str, str] | None:
        found = condition_of(self.machine(name), kind)
        return (found.status, found.reason) if found is not None else None

    def patch(self, name: str, documents: list[Json]) -> None:
        self._base.patch(name, documents)

    def disrupt(self, entry: dict[str, object]) -> None:
        """What the cluster's status says of a disruption."""
        cluster = self.cluster()
        self.store.patch_status(cluster.ref, cluster.uid, lambda status: {**status, "disruption": entry})

    def act(self, found: Round, around: Surroundings) -> Acted:
        return asyncio.run(converge.act(around, found, found.plan.steps[0], Effects(around.ports)))

    def ports(self, check: bool = False, holder: str = "run-1") -> Ports:
        return Ports(Nodes(self, check), self.store, self.clock, self.lines.append, Actor("ann", "login"), check, holder,  # type: ignore[arg-type]
                     lambda cluster, bundle: Credentials(self.authority, "certificate", "key", "test"),
                     whereabouts=self.whereabouts, workloads=self.workloads)  # type: ignore[arg-type]

    def around(self, check: bool = False, allow_reboot: bool = True, holder: str = "run-1") -> Surroundings:
        return Surroundings(self.ports(check, holder), Timing(), renderer=Renderer(self.store), allow_reboot=allow_reboot, drains=True)

    def look(self, name: str, *, check: bool = False, allow_reboot: bool = True, around: Surroundings | None = None) -> Round:
        around = around or self.around(check, allow_reboot)
        return asyncio.run(converge.look(around, name, Effects(around.ports)))

    def run(self, *names: str, allow_reboot: bool = True, rounds: int = 60) -> Ran:
        """What a controller does: look, act on what may go now, look again, until all are settled."""
        if self.lose_lease:
            self.store.leases.renew = self._lost  # type: ignore[method-assign]
        return asyncio.run(self._run(names, allow_reboot, rounds))

    def _lost(self, lease: LeaseView) -> LeaseView:
        raise TalosError("LockHeld", "The lock was lost.", "Run this again.")

    async def _run(self, names: tuple[str, ...], allow_reboot: bool, rounds: int) -> Ran:
        around = self.around(allow_reboot=allow_reboot)
        effects, ran = Effects(around.ports), Ran()
        due = {name: 0.0 for name in names}
        for unused in range(rounds * len(names)):
            name = min(due, key=lambda one: due[one])
            if due[name] == float("inf"):
                break
            if due[name] > self.clock.now():
                await self.clock.sleep(due[name] - self.clock.now())
            found = await converge.look(around, name, effects)
            ran.last[name] = found
            due[name] = float("inf") if found.settled else self.clock.now() + found.requeue_after
            for step in found.plan.steps:
                if not step.waits_for:
                    acted = await converge.act(around, found, step, effects)
                    ran.acted.append((name, step.action, getattr(step, "mode", ""), step.id, acted))
                    due[name] = 0.0
                    break
        return ran


@dataclass
class Ran:
    """The last round of each machine, and every step that was begun: (machine, action, mode, id, how it ended)."""

    last: dict[str, Round] = field(default_factory=dict)
    acted: list[tuple[str, str, str, str, Acted]] = field(default_factory=list)

    @property
    def done(self) -> list[tuple[str, str, str]]:
        return [(name, action, mode) for name, action, mode, dummy, acted in self.acted if acted.done]

    @property
    def ids(self) -> list[str]:
        return [identity for dummy, dummy2, dummy3, identity, acted in self.acted if acted.done]


def with_sysctl(config: bytes, value: str = "1") -> bytes:
    """A change by hand that Talos takes at once."""
    return config.replace(b"machine:\n", f"machine:\n    sysctls:\n        net.core.somaxconn: \"{value}\"\n".encode(), 1)


def with_rule(config: bytes) -> bytes:
    """A change by hand that 1.12 and 1.13 take only with a reboot."""
    return config.replace(b"machine:\n", b"machine:\n    udev:\n        rules:\n            - one\n", 1)


NEW_TOKEN = "zzzzzz.0123456789abcdef"


def other_token(config: bytes) -> bytes:
    """The token of the machine's API is another one."""
    return re.sub(rb"\n    token: [^\n]+", f"\n    token: {NEW_TOKEN}".encode(), config, count=1)


def other_kubernetes_ca(config: bytes) -> bytes:
    """The CA of Kubernetes is another one: that of Talos, which is a CA as well."""
    crts = re.findall(rb"crt: ([A-Za-z0-9+/=]+)", config)
    return config.replace(crts[1], crts[0])


def accepting(config: bytes, certificate: str) -> bytes:
    """The node accepts a CA beside its own."""
    text = base64.b64encode(certificate.encode()).decode()
    return config.replace(b"machine:\n", f"machine:\n    acceptedCAs:\n        - crt: {text}\n".encode(), 1)
