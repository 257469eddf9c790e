# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines, nodes and a store in memory, for the tests of discovery, approval and a person's edits."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import CheckModeWrite, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import (
    Certificate, Disk, Endpoint, EtcdMember, Link, NodeFacts, Probe, StageReading,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Broken, Event, Json, Listing, Record, Ref

NOW = 1_790_000_000.0
UUID = "a1b2c3d4-0001-4000-8000-0000000000{:02x}"


def uuid_of(number: int) -> str:
    return UUID.format(number)


def mac_of(number: int) -> str:
    return f"3c:ec:ef:00:00:{number:02x}"


def identity(number: int, **changes: object) -> Identity:
    """Board number so and so."""
    return replace(Identity(uuid_of(number), f"SN-{number:04d}-A", (mac_of(number),)), **changes)  # type: ignore[arg-type]


def fingerprint(name: str) -> str:
    """A pin in talosctl's form that stands for the key of that name."""
    import base64

    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()


def certificate(name: str, common_name: str = "maintenance-service.talos.dev") -> Certificate:
    return Certificate(fingerprint(name), hashlib.sha256(f"certificate {name}".encode()).hexdigest(), NOW - 100, NOW + 86400, common_name)


DISK = Disk("nvme0n1", "/dev/nvme0n1", 500_000_000_000, wwid="eui.01", serial="D1", model="Fast 500", transport="nvme",
            symlinks=("/dev/disk/by-id/nvme-fast",))
SECOND = Disk("sda", "/dev/sda", 4_000_000_000_000, wwid="naa.02", serial="D2", model="Big 4T", transport="sata", rotational=True)
STICK = Disk("sdb", "/dev/sdb", 16_000_000_000, serial="U1", model="Stick", transport="usb", usb=True)


def facts(address: str, who: Identity, key: str = "one", disks: tuple[Disk, ...] = (DISK, SECOND), secure_boot: bool = False) -> NodeFacts:
    links = tuple(Link(f"eth{index}", mac, mac, True, True, 1000) for index, mac in enumerate(who.macs))
    return NodeFacts(parse_endpoint(address), certificate(key), who, Present(StageReading("maintenance", True)), Present(disks),
                     Present(links), talos_version="v1.13.9", secure_boot=Present(secure_boot))


def cluster(name: str = "prod", **spec: Json) -> Record:
    full: dict[str, Json] = {
        "endpoint": "https://10.9.0.1:6443", "talosVersion": "v1.13.9", "kubernetesVersion": "v1.33.0",
        "secretsRef": {"name": name}, "controlPlane": {"count": 3}, "discovery": {"ranges": ["10.0.0.1-10.0.0.9"]}, **spec}
    return Record(CLUSTER, name, spec=full, uid=f"uid-{name}", generation=1, resource_version="1")


def machine(number: int = 1, state: str = "pending", *, name: str = "", address: str = "", who: Identity | None = None,
            pin: str = "one", status: Mapping[str, Json] | None = None, annotations: Mapping[str, str] | None = None, **spec: Json) -> Record:
    """A record as discovery or a person left it; `status` is laid over the usual one ({} with pin '' is none at all)."""
    who = who or identity(number)
    known: dict[str, Json] = {"macs": list(who.macs)}
    if who.uuid:
        known["uuid"] = who.uuid
    if who.serial:
        known["serial"] = who.serial
    full: dict[str, Json] = {"clusterRef": "prod", "identity": known, "endpoint": address or f"10.0.0.{number}", "approvalState": state}
    if state == "approved":
        full.update({"approvedBy": "ann", "approvedVia": "login", "approvedAt": moment(NOW - 3600), "role": "worker"})
    full.update(spec)
    now: dict[str, Json] = {}
    if pin:
        now = {"maintenanceFingerprint": fingerprint(pin), "maintenanceFingerprintAt": moment(NOW - 3600),
               "discoveredDisks": [{"name": "nvme0n1", "path": "/dev/nvme0n1", "size": 500_000_000_000, "wwid": "eui.01", "serial": "D1",
                                    "model": "Fast 500", "transport": "nvme", "symlinks": ["/dev/disk/by-id/nvme-fast"]},
                                   {"name": "sda", "path": "/dev/sda", "size": 4_000_000_000_000, "serial": "D2", "rotational": True}]}
    now.update(status or {})
    return Record(MACHINE, name or f"prod-{number}", spec=full, status=now, uid=f"uid-m{number}", generation=1, resource_version="1",
                  status_version="1", annotations=dict(annotations or {}), source=f"machines/prod-{number}.yaml")


@dataclass
class Clock:
    """Time that passes only when somebody sleeps."""

    at: float = NOW
    slept: list[float] = field(default_factory=list)
    on_sleep: Callable[[], None] | None = None

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds
        if self.on_sleep is not None:
            self.on_sleep()


@dataclass
class Node:
    """One node: `mode` is maintenance, configured or silent; `keys` are the certificates of successive handshakes, the last stays."""

    facts: NodeFacts
    mode: str = "maintenance"
    keys: list[str] = field(default_factory=list)
    common_name: str = "node-1"
    stage: StageReading = field(default_factory=lambda: StageReading("running", True))
    members: tuple[EtcdMember, ...] = ()
    admits: bool = True

    def handshake(self) -> Certificate:
        if not self.keys:
            return self.facts.certificate
        return certificate(self.keys.pop(0) if len(self.keys) > 1 else self.keys[0])


class Session:
    """A connection to a fake node."""

    def __init__(self, node: Node, shown: Certificate, maintenance: bool) -> None:
        self._node, self._shown, self.maintenance = node, shown, maintenance

    @property
    def endpoint(self) -> Endpoint:
        return self._node.facts.endpoint

    @property
    def certificate(self) -> Certificate:
        return self._shown

    async def identity(self) -> Identity:
        return self._node.facts.identity

    async def facts(self) -> NodeFacts:
        stage = self._node.facts.stage if self.maintenance else Present(self._node.stage)
        return replace(self._node.facts, certificate=self._shown, stage=stage)

    async def stage(self) -> StageReading:
        return self._node.stage

    async def etcd_members(self, local: bool) -> tuple[EtcdMember, ...]:
        return self._node.members


class Nodes:
    """The network: addresses that are not in it are silent. `calls` lists every probe and session."""

    def __init__(self, *nodes: Node) -> None:
        self.at = {node.facts.endpoint: node for node in nodes}
        self.calls: list[tuple[str, Endpoint]] = []

    async def scan(self, targets: Sequence[Endpoint], *, rate: float, unresolved: int, timeout: float) -> AsyncIterator[Probe]:
        for target in reversed(targets):
            yield await self.probe(target, timeout)

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        self.calls.append(("probe", endpoint))
        node = self.at.get(endpoint)
        if node is None or node.mode == "silent":
            return Probe(endpoint, "NotListening", reason="ConnectionRefused", message="Nothing listens.")
        if node.mode == "configured":
            return Probe(endpoint, "AlreadyConfigured", certificate("running", node.common_name))
        return Probe(endpoint, "Maintenance", node.handshake())

    @contextlib.asynccontextmanager
    async def maintenance(self, endpoint: Endpoint, pin: str = "") -> AsyncIterator[Session]:
        self.calls.append(("maintenance", endpoint))
        node = self.at.get(endpoint)
        if node is None or node.mode == "silent":
            raise TalosError("NotListening", f"Nothing listens at {endpoint}.", "Switch it on.")
        if node.mode == "configured":
            raise TalosError("ClientCertificateRequired", f"{endpoint} wants a client certificate.", "It is configured already.")
        shown = node.handshake()
        if pin and not shown.matches(pin):
            raise TalosError("MaintenanceIdentityChanged", "Another certificate.", "Look.")
        yield Session(node, shown, True)

    @contextlib.asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[Session]:
        self.calls.append(("authenticated", endpoint))
        node = self.at.get(endpoint)
        if node is None or node.mode == "silent":
            raise TalosError("NotListening", f"Nothing listens at {endpoint}.", "Switch it on.")
        if node.mode == "maintenance" or not node.admits:
            raise TalosError("UnknownAuthority", f"{endpoint} shows a certificate of another authority.", "Check the talosconfig.")
        yield Session(node, certificate("running", node.common_name), False)

    @property
    def written(self) -> bool:
        return False

    def end_writes(self) -> None:
        return None

    async def close(self) -> None:
        return None

    def asked(self, kind: str = "") -> list[str]:
        """Addresses that were asked, in order."""
        return [str(endpoint) for call, endpoint in self.calls if not kind or call == kind]


class Leases:
    """No leases: nothing of this room takes one. `foreign` says why this place cannot lock the store, until it is taken over."""

    def __init__(self) -> None:
        self.foreign = ""

    def read(self, name: str) -> None:
        return None

    def no_lock(self) -> str:
        return self.foreign

    def take_over(self) -> None:
        self.foreign = ""


class Store:
    """Records in memory with optimistic concurrency; `writes` counts what was written, `check` refuses it."""

    def __init__(self, *records: Record, broken: Sequence[Broken] = (), check: bool = False, vanished: Sequence[str] = ()) -> None:
        self.vanished = tuple(vanished)
        self.bundles: set[str] = set()
        self.records = {(record.kind, record.name): record for record in records}
        self.broken = tuple(broken)
        self.told: list[Event] = []
        self.writes: list[str] = []
        self.check = check
        self.leases = Leases()
        self.before_update: Callable[[], None] | None = None

    description = "memory"

    def bundle_form(self, name: str) -> str:
        return "clear" if name in self.bundles else "absent"

    def get(self, kind: str, name: str) -> Record | None:
        return self.records.get((kind, name))

    def list(self, kind: str) -> Listing:
        found = sorted((record for (of, dummy), record in self.records.items() if of == kind), key=lambda record: record.name)
        return Listing(tuple(found), tuple(entry for entry in self.broken if entry.kind == kind), self.vanished if kind == MACHINE else ())

    def _write(self, what: str) -> None:
        if self.check:
            raise CheckModeWrite(what)
        self.writes.append(what)

    def create(self, record: Record) -> Record:
        self._write(f"create {record.name}")
        if (record.kind, record.name) in self.records:
            raise TalosError("RecordExists", f"{record.name} exists.", "Choose another name.")
        made = replace(record, uid=f"uid-{record.name}", generation=1, resource_version="1", status_version="1")
        self.records[(record.kind, record.name)] = made
        return made

    def update(self, record: Record, spec: Mapping[str, Json], *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        if self.before_update is not None:
            self.before_update()
        self._write(f"update {record.name}")
        present = self.records[(record.kind, record.name)]
        if present.resource_version != record.resource_version:
            raise TalosError("RecordChanged", f"{record.name} changed since it was read.", "Run again.")
        made = replace(present, spec=dict(spec), resource_version=str(int(present.resource_version) + 1), generation=present.generation + 1,
                       annotations=present.annotations if annotations is None else dict(annotations),
                       labels=present.labels if labels is None else dict(labels))
        self.records[(record.kind, record.name)] = made
        return made

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        self._write(f"status {ref.name}")
        present = self.records[(ref.kind, ref.name)]
        made = replace(present, status=dict(change(dict(present.status))), status_version=str(int(present.status_version or "0") + 1))  # type: ignore[arg-type]
        self.records[(ref.kind, ref.name)] = made
        return made

    def delete(self, record: Record) -> None:
        self._write(f"delete {record.name}")
        del self.records[(record.kind, record.name)]

    def record_event(self, event: Event) -> None:
        self._write(f"event {event.reason}")
        self.told.append(event)

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        return tuple(event for event in self.told if ref is None or event.ref == ref)

    def bundle(self, name: str) -> bytes:
        raise TalosError("SecretsUnavailable", "no bundle", "none")


def credentials(cluster_name: str, bundle: str) -> Credentials:
    return Credentials("ca", "certificate", "key", "test")


def ports(nodes: Nodes | None = None, store: Store | None = None, *, clock: Clock | None = None, check: bool = False,
          actor: Actor | None = None, **more: object) -> Ports:
    if store is not None:
        store.check = check
    return Ports(nodes or Nodes(), store, clock or Clock(), lambda line: None, actor or Actor("ann", "login"), check, "run-1",  # type: ignore[arg-type]
                 **more)  # type: ignore[arg-type]


class Gate:
    """Gives the plan back, without steps in check mode; keeps it."""

    def __init__(self, check: bool = False) -> None:
        self.check, self.plans = check, []  # type: tuple[bool, list[Plan]]

    def __call__(self, plan: Plan) -> Plan:
        self.plans.append(plan)
        return replace(plan, steps=()) if self.check else plan


def rules_in(plan: Plan) -> Iterator[str]:
    """The ids of every refusal and warning of a plan."""
    yield from (refusal.rule for refusal in plan.refusals)
    yield from (warning.rule for warning in plan.warnings)
