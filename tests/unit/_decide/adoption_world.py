# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observations of an adoption: nodes that run what Talos's generator made, with what people patch into it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption import decide_adoption
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_case import Case
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import (
    AdoptCluster, Adoption, AdoptMachine, AdoptPatch, AdoptSeen, AdoptWish, KeepBundle, LiveNode,
)
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch import apply_patches, load_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import Bundle, read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Certificate, Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Disk, NodeFacts, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present, Unknown
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor
from ansible_collections.ichor.talos.plugins.module_utils._model.record_uid import record_uid
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Record

VECTORS = Path(__file__).parents[2] / "vectors"
NOW = 1_700_000_000.0
#: As the generated configurations call their cluster, so that nothing of class B is left.
CLUSTER = "c1"
ADA = Actor("ada", "ada")
UUID = "5a1f0c{:02x}-51c8-4f0e-8d39-3cecef0000{:02x}"
SYSCTL = "machine:\n  sysctls:\n    net.core.somaxconn: 4096\n"
LOGIN = "apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: registry.example.org\npassword: s3cr3t-of-the-registry\n"


@functools.cache
def generated(role: str, contract: str = "1.13") -> str:
    for line in (VECTORS / "generate.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["id"].endswith(f"/v{contract}/{role}/base") and row["machinery"].startswith(f"v{contract}."):
            return str(row["output"])
    raise AssertionError(f"there is no {role} of {contract}")


@functools.cache
def config(role: str = "worker", *patches: str, contract: str = "1.13") -> str:
    """Generated, with patches merged in."""
    merged = apply_patches(load(generated(role, contract), contract), [load_patch(patch, contract) for patch in patches])
    return merged.text() if patches else generated(role, contract)


@functools.cache
def bundle() -> Bundle:
    return read_bundle((VECTORS / "secrets.yaml").read_bytes())


def node(number: int, text: str, **facts: Any) -> LiveNode:
    """The node at 192.0.2.NUMBER."""
    endpoint = Endpoint(f"192.0.2.{number}", 50000)
    found = NodeFacts(
        endpoint, Certificate("", "", 0.0, 0.0, ""), Identity(UUID.format(number, number), f"ACME-{number}", (f"3c:ec:ef:00:00:{number:02x}",)),
        Present(StageReading("running", True)), Present((Disk("sda", "/dev/sda", 10 ** 11, wwid=f"wwid-{number}"),)), talos_version="v1.13.9",
        hostname=f"n-{number}")
    return LiveNode(str(endpoint), replace(found, **facts), text.encode())


def plane(number: int = 1, *patches: str, **facts: Any) -> LiveNode:
    return node(number, config("controlplane", *patches), **facts)


def worker(number: int = 4, *patches: str, **facts: Any) -> LiveNode:
    return node(number, config("worker", *patches), **facts)


def seen(*nodes: LiveNode, silent: Mapping[str, str] | None = None, stored: Observed[Bundle] = Absent(), **more: Any) -> AdoptSeen:
    """`silent`: the reason for each address that gave no answer."""
    answers: list[tuple[str, Observed[LiveNode]]] = [(one.address, Present(one)) for one in nodes]
    answers += [(address, Unknown(reason, "it gave no answer")) for address, reason in (silent or {}).items()]
    return AdoptSeen(nodes=tuple(answers), bundle=stored, **more)


def wish(**more: Any) -> AdoptWish:
    return AdoptWish(**{"cluster": CLUSTER, "addresses": ("192.0.2.1",), "actor": ADA, **more})


def cluster(**more: Any) -> Record:
    """A cluster that is managed."""
    spec = {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443", "secretsRef": {"name": CLUSTER},
            "cni": {"preset": "unmanaged"}, "controlPlane": {"count": 1}, **more}
    return Record("TalosCluster", CLUSTER, spec, {"bootstrappedAt": "2023-11-14T00:00:00Z"}, uid=record_uid("TalosCluster", CLUSTER, spec))


def record(number: int, state: str = "approved", role: str = "worker", status: Mapping[str, Any] | None = None, **more: Any) -> Record:
    """The record of the machine with that number."""
    name = more.pop("name", f"{CLUSTER}-5a1f0c{number:02x}")
    spec = {"clusterRef": CLUSTER, "identity": {"uuid": UUID.format(number, number)}, "endpoint": f"192.0.2.{number}:50000", "approvalState": state,
            "role": role, **({"approvedBy": "ada", "approvedAt": "2023-11-14T00:00:00Z"} if state != "pending" else {}), **more}
    return Record("TalosMachine", name, spec, dict(status or {}), uid=record_uid("TalosMachine", name, spec), generation=1)


def adopt(observed: AdoptSeen, **more: Any) -> Adoption:
    return decide_adoption(wish(**more), observed, NOW)


def case(observed: AdoptSeen, **more: Any) -> Case:
    return Case(wish(**more), observed)


def carried_out(found: Adoption, before: AdoptSeen) -> AdoptSeen:
    """What is read once the records of the plan are written, and nothing is released."""
    stored: Observed[Bundle] = before.bundle
    machines, patches = {one.name: one for one in before.machines}, {one.name: one for one in before.patches}
    known = before.cluster
    for step in found.plan.steps:
        if isinstance(step, KeepBundle) and step.bundle is not None:
            stored = Present(step.bundle)
        elif isinstance(step, AdoptCluster):
            known = step.record
        elif isinstance(step, AdoptPatch):
            patches[step.record.name] = step.record
        elif isinstance(step, AdoptMachine):
            machines[step.record.name] = step.record
    return replace(before, bundle=stored, cluster=known, machines=tuple(machines.values()), patches=tuple(patches.values()))
