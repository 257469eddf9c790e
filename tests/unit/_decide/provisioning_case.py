# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An observation of provisioning at which every gate is passed, and ways to spoil one thing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.provisioning_words import Provisioning, Settled
from ansible_collections.ichor.talos.plugins.module_utils._decide.running_words import RunningNode
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.bring import bring
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.machine import identity_of, pin_of
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk, Endpoint, EtcdMember, NodeFacts, Partition, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Target
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record
from ansible_collections.ichor.talos.tests.unit._operations import world as w

NOW = w.START
BOOTSTRAPPED = {"bootstrappedAt": "2023-11-01T00:00:00Z"}
SILENT = Unknown("ConnectionRefused", "nothing listens")
OTHERS = (w.machine_record("cp2", 2, "controlplane", status={"stage": "running", "appliedConfigHash": "a"}),
          w.machine_record("w3", 3, status={"stage": "running", "appliedConfigHash": "a"}))
MEMBERS = (EtcdMember("00000000000000a2", "cp2", ("https://10.0.0.2:2380",)),)


def facts(identity: Identity | None = None, certificate: str = "one", stage: str = "maintenance", version: str = "v1.13.9",
          disks: tuple[Disk, ...] = (Disk("sda", "/dev/sda", 10 ** 11, wwid="wwid-sda"),), secure_boot: bool = False,
          partitions: Observed[tuple[Partition, ...]] = Absent()) -> NodeFacts:
    """A node that waits in maintenance mode as machine 1."""
    return NodeFacts(Endpoint("10.0.0.1"), w.certificate(certificate), identity or w.identity(1), Present(StageReading(stage, True)),
                     Present(disks), Absent(), partitions, version, Present(secure_boot))


def case(role: str, *, machine: Mapping[str, object] | None = None, status: Mapping[str, object] | None = None,
         annotations: Mapping[str, str] | None = None, cluster: Mapping[str, object] | None = None,
         cluster_status: Mapping[str, object] | None = None, others: tuple[Record, ...] = OTHERS, hostname: str = "m1",
         config: bytes | None = None, stored: bool = True) -> Provisioning:
    """The observation. `status` is added to a never-sent machine's; `machine` and `cluster` to the specs."""
    own = {"stage": "maintenance", "maintenanceFingerprint": "FP-one", "maintenanceFingerprintAt": "2023-11-14T00:00:00Z", **(status or {})}
    record = w.machine_record("m1", 1, role, status={key: value for key, value in own.items() if value is not None},
                              **(machine or {}))  # type: ignore[arg-type]
    record = replace(record, annotations=dict(annotations or {}))
    spec = dict(cluster or {})
    count = spec.pop("count", 3)
    owner = w.cluster_record(status=cluster_status, count=count, **spec)  # type: ignore[arg-type]
    return Provisioning(
        target=Target(name="m1", cluster="prod", uid="uid-m1", uuid=w.uuid(1)), identity=identity_of(record), pin=pin_of(record),
        config=Present(bring(config if config is not None else w.config(role, hostname))), authority=Present("CA PEM"),
        endpoint=Present("10.0.0.1:50000"), machine=record if stored else None, cluster=owner if stored else None,
        siblings=(record, *others) if stored else (), running=SILENT, maintenance=Present(facts()), holder="run-1")


def labels(*names: str, state: str = "xfs") -> Present[tuple[Partition, ...]]:
    """Partitions with these labels; `state` is the file system of STATE."""
    return Present(tuple(Partition(f"/dev/sda{number}", "/dev/sda", name, state if name == "STATE" else "xfs") for number, name in enumerate(names, 1)))


def worker(*, cluster: Mapping[str, object] | None = None, **more: object) -> Provisioning:
    return case("worker", cluster=cluster, **more)  # type: ignore[arg-type]


def controlplane(*, bootstrapped: bool = False, **more: object) -> Provisioning:
    seen = case("controlplane", cluster_status=BOOTSTRAPPED if bootstrapped else None, **more)  # type: ignore[arg-type]
    return replace(seen, members=Present(MEMBERS) if bootstrapped else None)


def running(seen: Provisioning, number: int = 1, config: str = "") -> Provisioning:
    """The authenticated read works."""
    return replace(seen, running=Present(RunningNode(w.identity(number), StageReading("running", True), config)))


def silent(seen: Provisioning, reason: str = "ConnectionRefused") -> Provisioning:
    """The maintenance API gives no answer."""
    return replace(seen, maintenance=Unknown(reason, "no answer"))


def shows(seen: Provisioning, **changed: object) -> Provisioning:
    """The node in maintenance mode shows something else."""
    return replace(seen, maintenance=Present(facts(**changed)))  # type: ignore[arg-type]


def settled(seen: Provisioning, certificate: str = "one") -> Provisioning:
    """A second look at the certificate."""
    return replace(seen, settled=Present(Settled(w.certificate(certificate))))
