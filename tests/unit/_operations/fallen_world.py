# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster in memory whose machines had converged, one of which is in maintenance mode again."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass, replace

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import BroughtConfig, bring
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import Config, load
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, EtcdMember, Partition
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Observed, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.records import text_at
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations import reprovision
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_effects import Effects
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Surroundings
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import MachineView
from ansible_collections.ichor.talos.plugins.module_utils._operations.rounds import Acted, Round
from ansible_collections.ichor.talos.tests.unit._operations import world as w

JOINED = {"stage": "running", "configStoredAt": "2023-11-01T00:00:00Z", "storedConfigHash": "old", "appliedConfigHash": "old",
          "observedInputsHash": "old", "maintenanceFingerprint": "FP-first", "maintenanceFingerprintAt": "2023-11-01T00:00:00Z"}
KEPT = Present((Partition("/dev/sda2", "/dev/sda", "META"), Partition("/dev/sda4", "/dev/sda", "EPHEMERAL", "xfs")))
NOT_WIPED = Present((*KEPT.value, Partition("/dev/sda3", "/dev/sda", "STATE", "xfs")))
LEFT_OVER = Present((Partition("/dev/sda1", "/dev/sda", "EFI", "vfat"), Partition("/dev/sda2", "/dev/sda", "META")))


@dataclass(frozen=True)
class _Rendered:
    """What a render is to provisioning."""

    sent: BroughtConfig
    config: Config

    def brought(self) -> BroughtConfig:
        return self.sent


class Renderer:
    """Renders a machine from its role and host name alone."""

    disk = "/dev/sda"
    #: Host names that patches give other machines.
    beside: tuple[tuple[str, str], ...] = ()

    def names_beside(self, view: MachineView) -> tuple[tuple[str, str], ...]:
        return self.beside

    def machine(self, view: MachineView, secure_boot: bool | None = None) -> Observed[_Rendered]:
        spec = view.machine.spec
        return _rendered(text_at(spec, "role"), text_at(spec, "hostname"), self.disk)


@functools.cache
def _rendered(role: str, hostname: str, disk: str) -> Observed[_Rendered]:
    text = w.config(role, hostname, disk)
    return Present(_Rendered(bring(text), load(text, "1.13")))


def member(number: int, name: str = "") -> EtcdMember:
    return EtcdMember(f"{number:016x}", name or f"cp{number}", (f"https://10.0.0.{number}:2380",))


def status_id(world: w.World) -> None:
    """Members of this file have ids that are numbers."""
    for endpoint, node in world.nodes.items():
        node.member_id = f"{int(endpoint.host.rpartition('.')[2]):016x}"


def worker(world: w.World | None = None) -> tuple[w.World, w.Node]:
    """One worker, wiped."""
    world = world or w.World()
    world.store.put(w.cluster_record(status={"bootstrappedAt": "2023-11-01T00:00:00Z"}))
    node = w.place(world, "w9", 9, status=JOINED)
    node.certificate = w.certificate("two")
    return world, node


def planes(count: int = 3, wiped: tuple[int, ...] = (1,)) -> w.World:
    """Control planes cp1 … with one member each; the wiped ones are in maintenance mode, their members still listed."""
    world = w.World()
    world.store.put(w.cluster_record(status={"bootstrappedAt": "2023-11-01T00:00:00Z"}, count=count if count % 2 else count + 1))
    members = tuple(member(number) for number in range(1, count + 1))
    alive = [number for number in range(1, count + 1) if number not in wiped]
    for number in range(1, count + 1):
        node = w.place(world, f"cp{number}", number, "controlplane", status=JOINED)
        node.certificate = w.certificate(f"boot-{number}")
        if number in wiped:
            continue
        node.mode, node.stage, node.ready, node.etcd, node.members = "running", "running", True, "Running", members
        node.leader = f"{alive[0]:016x}" if len(alive) > count // 2 else ""
    status_id(world)
    return world


def node_of(world: w.World, number: int) -> w.Node:
    return world.nodes[Endpoint(f"10.0.0.{number}")]


class Life:
    """One machine through looks and steps."""

    def __init__(self, world: w.World, name: str, *, check: bool = False, holder: str = "run-1", discard: str = "", renderer: Renderer | None = None) -> None:
        self.world, self.name = world, name
        self.around = Surroundings(world.ports(holder, check=check), Timing(), renderer=renderer or Renderer(),  # type: ignore[arg-type]
                                   names=(name,), discard_etcd=discard)
        self.effects = Effects(self.around.ports)
        self.rounds: list[Round | None] = []
        self.done: list[str] = []

    async def look(self) -> Round | None:
        found = await reprovision.look(self.around, self.name, self.effects, "it does not answer")
        self.rounds.append(found)
        return found

    async def act(self, found: Round) -> Acted | None:
        """Carry out the first step that waits for nothing."""
        for step in found.plan.steps:
            if not step.waits_for:
                acted = await reprovision.act(self.around, found, step, self.effects)
                if acted.done:
                    self.done.append(step.id)
                return acted
        return None

    async def live(self, looks: int = 6) -> None:
        """Look and act, as a controller does, until nothing more is called for."""
        for unused in range(looks):
            found = await self.look()
            if found is None or not text_at(self.world.machine(self.name).status, "appliedConfigHash"):
                return
            acted = await self.act(found)
            if acted is None:
                if found.settled:
                    return
                await self.world.clock.sleep(found.requeue_after)

    def run(self, looks: int = 6) -> Life:
        asyncio.run(self.live(looks))
        return self

    @property
    def last(self) -> Round:
        found = self.rounds[-1]
        assert found is not None
        return found


def checked(world: w.World, name: str, **options: object) -> Round | None:
    """One look in check mode, which has to leave no trace."""
    records, writes = dict(world.store.records), world.store.writes
    life = Life(world, name, check=True, **options)  # type: ignore[arg-type]
    found = asyncio.run(life.look())
    assert (dict(world.store.records), world.store.writes, world.store.written) == (records, writes, world.store.written)
    return found


def with_annotation(world: w.World, name: str, key: str, value: str) -> None:
    world.store.put(replace(world.machine(name), annotations={key: value}))
