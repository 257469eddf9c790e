# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters in memory from which machines are removed, and runs of the removal."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.removal_words import RemovalWish
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Partition
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.machine_removal import Request, run
from ansible_collections.ichor.talos.tests.unit._operations import fallen_world as fallen
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._operations.kubernetes_world import Kubernetes

LABELS = ("EFI", "META", "STATE", "EPHEMERAL", "ETCD")
DISKS = Present(tuple(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs") for number, label in enumerate(LABELS, 1)))


class Store(w.Store):
    """The same store, from which records can be deleted."""

    def delete(self, record: Record) -> None:
        self._world.write(f"delete {record.name}")
        del self.records[record.ref]
        self._world.write(f"deleted {record.name}")


def planes(count: int, *dead: int, wanted: int = 3, worker: bool = False) -> w.World:
    """Control planes cp1 …, of which the dead ones are off, and a worker w9."""
    world = fallen.planes(count, dead)
    store = Store(world)
    store.records = world.store.records
    world.store = store
    store.put(w.cluster_record(status={"bootstrappedAt": "2023-11-01T00:00:00Z"}, count=wanted))
    for endpoint, node in world.nodes.items():
        node.partitions = DISKS
        if int(endpoint.host.rpartition(".")[2]) in dead:
            node.mode = "closed"
    if worker:
        node = w.place(world, "w9", 9, status=fallen.JOINED)
        node.mode, node.stage, node.ready, node.partitions = "running", "running", True, DISKS
    return world


def remove(world: w.World, name: str, *, holder: str = "run-1", check: bool = False, store: bool = True, gate: w.OpenGate | None = None,
           lift: bool = False, record: bool = True, kubernetes: Kubernetes | None = None, **wish: bool) -> Outcome:
    request = Request(name, RemovalWish(name, record, **{"skip_drain": kubernetes is None, **wish}), lift)
    ports = replace(world.ports(holder, check=check, store=store), workloads=kubernetes)
    return asyncio.run(run(request, ports, gate or w.OpenGate(check)))


def record_of(world: w.World, name: str) -> Record | None:
    return world.store.records.get(Ref(MACHINE, name))


def node(world: w.World, number: int) -> w.Node:
    return world.nodes[Endpoint(f"10.0.0.{number}")]
