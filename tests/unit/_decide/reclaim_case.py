# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observations of machines that are to be reclaimed: nodes of a foreign cluster, or of one of our own."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.reclaim_words import Inspection, Managed, Owner, Reclaiming, ReclaimWish
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import (
    Disk, EtcdMember, EtcdStatus, NodeFacts, Partition, ServiceState, StageReading,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._operations import world as w

LATE = Unknown("TimedOut", "it did not answer within 20 s")
SYSTEM = tuple(Partition(f"/dev/sda{number}", "/dev/sda", label, "xfs") for number, label in enumerate(("EFI", "META", "STATE", "EPHEMERAL"), 1))
DATA = Disk("sdb", "/dev/sdb", 4 * 10 ** 12, serial="DATA-1", contents=("ext4",))
DISKS = (Disk("sda", "/dev/sda", 10 ** 11, contents=("STATE xfs", "EPHEMERAL xfs")), DATA)


def hex_of(number: int) -> str:
    return f"{number:016x}"


def member(number: int, learner: bool = False) -> EtcdMember:
    return EtcdMember(hex_of(number), f"cp{number}", (f"https://10.0.0.{number}:2380",), learner=learner)


def status(number: int, leader: int = 2, learner: bool = False) -> Observed[EtcdStatus]:
    return Present(EtcdStatus(hex_of(number), hex_of(leader) if leader else "", learner))


def worker() -> Reclaiming:
    """A worker of the living foreign cluster old, at an address that prod lists."""
    look = Inspection(
        Present(w.identity(1)), Present(Owner("id-of-old", "old", "https://old.example:6443", "worker")), Present(StageReading("running", True)),
        Present("n1"), Present("v1.13.9"), Present("boot-1"), Present(SYSTEM), Present(DISKS), Present((ServiceState("apid", "Running"),)), Absent(), Absent())
    cluster = w.cluster_record(secretsRef={"name": "prod"})
    return Reclaiming(Target(cluster="prod", cluster_id="uid-prod", uuid=w.uuid(1), address="10.0.0.1:50000"), ReclaimWish("10.0.0.1", "prod", w.uuid(1)),
                      cluster, managed=(Managed(cluster, Present("id-of-prod")),), node=Present(look))


def plane(count: int = 3, *, dead: tuple[int, ...] = (), learners: tuple[int, ...] = (), own: int = 1) -> Reclaiming:
    """Control plane cp1 of as many; the dead ones do not answer."""
    numbers = range(1, count + 1)
    others = tuple((hex_of(number), LATE if number in dead else status(number, learner=number in learners)) for number in numbers if number != own)
    seen = worker()
    return looking(seen, owner=Present(Owner("id-of-old", "old", "https://old.example:6443", "controlplane")), hostname=Present(f"cp{own}"),
                   services=Present((ServiceState("etcd", "Running"),)), etcd=status(own, learner=own in learners),
                   members=Present(tuple(member(number, number in learners) for number in numbers)), others=others)


def looking(seen: Reclaiming, **changed: object) -> Reclaiming:
    """With other readings."""
    look = seen.node.value if isinstance(seen.node, Present) else Inspection()
    return replace(seen, node=Present(replace(look, **changed)))  # type: ignore[arg-type]


def stopped(count: int = 3) -> Reclaiming:
    """Its etcd is stopped, and so nobody of it answers."""
    return looking(plane(count), services=Present((ServiceState("etcd", "Finished"),)), etcd=LATE, members=LATE, others=())


def hanging() -> Reclaiming:
    return looking(plane(), etcd=LATE, members=LATE, others=())


def wishing(seen: Reclaiming, **changed: object) -> Reclaiming:
    return replace(seen, wish=replace(seen.wish, **changed))  # type: ignore[arg-type]


def forced(seen: Reclaiming) -> Reclaiming:
    return wishing(seen, force_ungraceful=True)


def managed(seen: Reclaiming, **status_of_it: object) -> Reclaiming:
    """It is of our own cluster prod."""
    role = "controlplane" if isinstance(seen.node, Present) and isinstance(seen.node.value.etcd, Present) else "worker"
    cluster = w.cluster_record(status=status_of_it, secretsRef={"name": "prod"})
    seen = replace(seen, cluster=cluster, managed=(Managed(cluster, Present("id-of-prod")),))
    return looking(seen, owner=Present(Owner("id-of-prod", "prod", "https://10.9.9.9:6443", role)))


def unread(seen: Reclaiming, reason: str, message: str = "") -> Reclaiming:
    """The node gives no session."""
    return replace(seen, node=Unknown(reason, message), target=replace(seen.target, uuid=""))


def waiting(seen: Reclaiming, pin: str = "two", identity: Identity | None = None) -> Reclaiming:
    """It answers in maintenance mode."""
    facts = NodeFacts(Endpoint("10.0.0.1"), w.certificate(pin), identity or w.identity(1))
    return replace(seen, node=Unknown("UnknownAuthority", "another CA"), maintenance=Present(facts))


def recorded(seen: Reclaiming, state: str, *, cluster: str = "prod", pin: str = "one", **spec: object) -> Reclaiming:
    """A machine of the store has its UUID."""
    machine = w.machine_record("known", 1, approvalState=state, clusterRef=cluster, status={"maintenanceFingerprint": f"FP-{pin}"}, **spec)
    return replace(seen, machines=(machine,))


def store_of(seen: Reclaiming) -> Record:
    assert seen.cluster is not None
    return seen.cluster
