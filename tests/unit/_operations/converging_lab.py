# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster of emulated nodes that runs what its records say, and rounds on it with the real client of nodes."""

from __future__ import annotations

import asyncio
import datetime
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.authorities import make_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Json, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node.issue import credentials_from_bundle
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._operations import converge
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_effects import Effects
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Surroundings
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import read_machine
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store
from tests.lab.control import Lab
from tests.unit._operations.converging_world import Ran

KUBERNETES = {"v1.12.11": "v1.34.0", "v1.13.9": "v1.35.0", "v1.14.0-rc.1": "v1.35.0"}


class QuickClock:
    """Twenty seconds of the product are one of the world's."""

    SPEED = 20.0

    def __init__(self) -> None:
        self._began, self._real = time.time(), time.monotonic()

    def now(self) -> float:
        return self._began + self.monotonic()

    def monotonic(self) -> float:
        return (time.monotonic() - self._real) * self.SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.SPEED)


@dataclass(frozen=True)
class Place:
    """Where a node is, and what the lab calls it."""

    node: str
    endpoint: Endpoint


class LabCluster:
    """Records, bundle and nodes of one cluster of one Talos version. Addresses are 127.`net`.1.N."""

    def __init__(self, lab: Lab, folder: Path, version: str, net: int) -> None:
        self.lab, self.version, self._net = lab, version, net
        self.clock = QuickClock()
        self.lines: list[str] = []
        self.store = open_store(str(folder / "ichor"), clock=self.clock, create=True)
        self.text = make_bundle(datetime.datetime.now(datetime.timezone.utc), os.urandom).text()
        self.store.write_bundle("prod", self.text.encode())
        self.store.create(Record(CLUSTER, "prod", {
            "talosVersion": version, "kubernetesVersion": KUBERNETES[version], "endpoint": f"https://127.{net}.9.9:6443", "secretsRef": {"name": "prod"},
            "controlPlane": {"count": 3}}))
        self.credentials = credentials_from_bundle(self.text, now=time.time())
        self.places: dict[str, Place] = {}

    def nodes(self, check: bool = False) -> TalosNodes:
        return TalosNodes(rules=(DialRules(allow_loopback=True),), timing=Timing(), check=check)

    def ports(self, check: bool = False) -> Ports:
        return Ports(self.nodes(check), self.store, self.clock, self.lines.append, Actor("ann", "login"), check, "run-1",
                     lambda cluster, bundle: self.credentials)

    def around(self, check: bool = False, allow_reboot: bool = True) -> Surroundings:
        return Surroundings(self.ports(check), Timing(), True, Renderer(self.store), allow_reboot=allow_reboot)

    def machine(self, name: str) -> Record:
        found = self.store.get(MACHINE, name)
        assert found is not None
        return found

    def cluster(self) -> Record:
        found = self.store.get(CLUSTER, "prod")
        assert found is not None
        return found

    def render(self, name: str) -> bytes:
        found = Renderer(self.store).machine(read_machine(self.store, name))
        assert isinstance(found, Present), found
        return found.value.text.encode()

    async def provision(self, name: str, number: int, role: str, first: bool = False) -> None:
        """From maintenance mode to a machine that has joined."""
        place = Place(f"{name}-{self._net}", Endpoint(f"127.{self._net}.1.{number}"))
        self.places[name] = place
        self.lab.add(name=place.node, description={"address": place.endpoint.host, "version": self.version, "machine": {"disks": [{"name": "sda"}]}})
        async with self.nodes().maintenance(place.endpoint) as session:
            identity = await session.identity()
        known: dict[str, Json] = {"uuid": identity.uuid, "serial": identity.serial, "macs": list(identity.macs)}
        spec: dict[str, Json] = {
            "clusterRef": "prod", "identity": known, "endpoint": str(place.endpoint), "approvalState": "approved", "approvedBy": "ann", "approvedVia": "login",
            "approvedAt": "2026-01-01T00:00:00Z", "role": role, "hostname": name, "install": {"disk": "/dev/sda"}}
        made = self.store.create(Record(MACHINE, name, spec))
        async with self.nodes().maintenance(place.endpoint) as session:
            await session.apply(self.render(name), "AUTO")
        if first:
            await self._until(lambda: self._bootstrap(place))
        await asyncio.to_thread(self.lab.wait, node=place.node, stage="ready", seconds=60)
        self.store.patch_status(made.ref, made.uid, lambda status: {
            **status, "configStoredAt": "2026-01-01T00:00:00Z", "storedConfigHash": "a", "appliedConfigHash": "a"})
        if first:
            cluster = self.cluster()
            self.store.patch_status(cluster.ref, cluster.uid, lambda status: {**status, "bootstrappedAt": "2026-01-01T00:00:00Z"})

    async def _bootstrap(self, place: Place) -> None:
        async with self.nodes().authenticated(place.endpoint, self.credentials) as session:
            await session.bootstrap()

    async def _until(self, what: Callable[[], object], seconds: float = 60.0) -> None:
        """Again and again, until the node takes it."""
        end = time.monotonic() + seconds
        while True:
            try:
                await what()  # type: ignore[misc]
                return
            except TalosError:
                assert time.monotonic() < end
                await asyncio.sleep(0.05)

    async def by_hand(self, name: str, change: Callable[[bytes], bytes], mode: str = "NO_REBOOT") -> None:
        """Somebody changes what the node runs."""
        async with self.nodes().authenticated(self.places[name].endpoint, self.credentials) as session:
            running = await session.machine_config()
            assert isinstance(running, Present)
            await session.apply(change(running.value), mode)

    async def runs(self, name: str) -> bytes:
        async with self.nodes().authenticated(self.places[name].endpoint, self.credentials) as session:
            running = await session.machine_config()
            assert isinstance(running, Present)
            return running.value

    async def look(self, name: str, check: bool = False, allow_reboot: bool = True) -> converge.Round:
        around = self.around(check, allow_reboot)
        return await converge.look(around, name, Effects(around.ports))

    async def run(self, *names: str, allow_reboot: bool = True) -> Ran:
        """Look, act on what may go now, look again, until all are settled; all machines at once, what is locked one after the other."""
        around, ran, lock = self.around(allow_reboot=allow_reboot), Ran(), asyncio.Lock()
        await asyncio.gather(*(self._follow(name, around, ran, lock) for name in names))
        return ran

    async def _follow(self, name: str, around: Surroundings, ran: Ran, lock: asyncio.Lock) -> None:
        effects = Effects(around.ports)
        while True:
            found = await converge.look(around, name, effects)
            ran.last[name] = found
            step = next((step for step in found.plan.steps if not step.waits_for), None)
            if step is None:
                if found.settled:
                    return
                await self.clock.sleep(found.requeue_after)
                continue
            if step.locked:
                async with lock:
                    acted = await converge.act(around, found, step, effects)
            else:
                acted = await converge.act(around, found, step, effects)
            ran.acted.append((name, step.action, getattr(step, "mode", ""), step.id, acted))

    def change(self, name: str, **spec: Json) -> None:
        machine = self.machine(name)
        self.store.update(machine, {**machine.spec, **spec})

    def change_cluster(self, **spec: Json) -> None:
        cluster = self.cluster()
        self.store.update(cluster, {key: value for key, value in {**cluster.spec, **spec}.items() if value is not None})

    def patch(self, name: str, documents: list[Json]) -> None:
        """A patch for the control planes."""
        self.store.create(Record(CONFIG_PATCH, name, {
            "clusterRef": "prod", "layer": "cluster", "machineSelector": {"role": "controlplane"}, "documents": documents}))

    async def reboot_by_hand(self, name: str) -> None:
        """Somebody restarts the node, and waits for it."""
        place = self.places[name]
        boots = self.lab.state(node=place.node)["boots"]
        async with self.nodes().authenticated(place.endpoint, self.credentials) as session:
            await session.reboot()
        await self._until(lambda: self._booted(place, boots))
        await asyncio.to_thread(self.lab.wait, node=place.node, stage="ready", seconds=60)

    async def _booted(self, place: Place, boots: int) -> None:
        if self.lab.state(node=place.node)["boots"] == boots:
            raise TalosError("CallFailed", "It has not restarted yet.")
