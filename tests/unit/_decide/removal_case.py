# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observations of machines that are to go: a cluster of control planes, one of which is looked at."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.etcd_words import EtcdView
from ansible_collections.ichor.talos.plugins.module_utils._decide.removal_words import AliveNode, Leaving, MemberLook, RemovalWish
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, EtcdStatus, NodeFacts, Partition, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._operations import world as w

JOINED = {"stage": "running", "configStoredAt": "2023-11-01T00:00:00Z", "appliedConfigHash": "old"}
BOOTSTRAPPED = {"bootstrappedAt": "2023-11-01T00:00:00Z"}
SILENT = Unknown("ConnectionRefused", "nothing listens")
DISKS = tuple(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs") for number, label in enumerate(("EFI", "META", "STATE", "EPHEMERAL"), 1))


def hex_of(number: int) -> str:
    return f"{number:016x}"


def member(number: int, name: str = "", **changes: object) -> EtcdMember:
    return replace(EtcdMember(hex_of(number), name or f"cp{number}", (f"https://10.0.0.{number}:2380",)), **changes)  # type: ignore[arg-type]


def plane(number: int, **changes: object) -> Record:
    return w.machine_record(f"cp{number}", number, "controlplane", status=JOINED, **changes)


def view(*numbers: int, healthy: tuple[int, ...] = (), members: tuple[EtcdMember, ...] = ()) -> Observed[EtcdView]:
    return Present(EtcdView(tuple(member(number) for number in numbers) + members, frozenset(map(hex_of, healthy)),
                            tuple(f"10.0.0.{number}:50000" for number in healthy)))


def status(number: int, leader: int = 2, learner: bool = False) -> Observed[EtcdStatus]:
    return Present(EtcdStatus(hex_of(number), hex_of(leader) if leader else "", learner))


def silent_plane(count: int = 3, planes: int = 3) -> Leaving:
    """cp1 answers nobody; the others list it and answer."""
    numbers = tuple(range(1, planes + 1))
    machines = tuple(plane(number) for number in numbers)
    target = Target(name="cp1", cluster="prod", cluster_id="uid-prod", uid="uid-cp1", uuid=w.uuid(1))
    return Leaving(target, RemovalWish("cp1"), machines[0], w.cluster_record(status=BOOTSTRAPPED, count=count), machines,
                   etcd=view(*numbers, healthy=numbers[1:]), look=MemberLook(SILENT, SILENT), node=SILENT, maintenance=SILENT)


def alive_plane(count: int = 3, planes: int = 4) -> Leaving:
    """cp1 answers, and is one more than the count."""
    seen = silent_plane(count, planes)
    node = AliveNode(w.identity(1), StageReading("running", True), Present(DISKS), Present("boot-1"), status(1))
    return replace(seen, node=Present(node), look=MemberLook(status(1), Absent()), wish=RemovalWish("cp1", skip_drain=True))


def worker() -> Leaving:
    machine = w.machine_record("w1", 1, status=JOINED)
    node = AliveNode(w.identity(1), StageReading("running", True), Present(DISKS), Present("boot-1"))
    return Leaving(Target(name="w1", cluster="prod", cluster_id="uid-prod", uid="uid-w1", uuid=w.uuid(1)), RemovalWish("w1", skip_drain=True), machine,
                   w.cluster_record(status=BOOTSTRAPPED), (machine, plane(2), plane(3), plane(4)), node=Present(node), maintenance=SILENT)


def with_machine(seen: Leaving, machine: Record) -> Leaving:
    return replace(seen, machine=machine, machines=tuple(machine if one.name == machine.name else one for one in seen.machines))


def with_status(seen: Leaving, **values: object) -> Leaving:
    if seen.machine is None:
        raise ValueError("there is no record")
    return with_machine(seen, replace(seen.machine, status={**seen.machine.status, **values}))  # type: ignore[dict-item]


def removing(seen: Leaving, reason: str = "Removing") -> Leaving:
    """The removal had begun before."""
    return with_status(seen, conditions=[{"type": "Removal", "status": "True", "reason": reason, "message": ""}])


def in_maintenance(seen: Leaving, labels: tuple[str, ...] = ()) -> Leaving:
    """The machine itself answers in maintenance mode."""
    partitions = Present(tuple(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs") for number, label in enumerate(labels, 1))) if labels else Absent()
    facts = NodeFacts(Endpoint("10.0.0.1"), w.certificate("two"), w.identity(1), partitions=partitions)
    return replace(seen, node=Unknown("UnknownAuthority", "another CA"), maintenance=Present(facts))


def disrupted(seen: Leaving, machine: str, step: str = "reset") -> Leaving:
    cluster = seen.cluster
    if cluster is None:
        raise ValueError("there is no cluster")
    return replace(seen, cluster=replace(cluster, status={**cluster.status, "disruption": {"machine": machine, "step": step, "time": "2023-11-14T00:00:00Z"}}))
