# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepares a fleet: a store with a cluster, one approved control plane and workers, each sent its rendered configuration. Prints how many took it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node.issue import credentials_from_bundle
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._operations.maintenance_apply import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Job
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store


class Clock:
    """The system's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def quiet(line: str) -> None:
    """Nobody looks."""


def granted(plan: Plan) -> Plan:
    return plan


async def send(plan: dict[str, str], machines: list[dict[str, str]]) -> int:
    clock = Clock()
    store = open_store(plan["store"], clock=clock, create=True)
    secrets = Path(plan["store"]) / "secrets"
    secrets.mkdir(mode=0o700)
    shutil.copy("tests/vectors/secrets.yaml", secrets / "prod.yaml")
    (secrets / "prod.yaml").chmod(0o600)
    store.create(Record(CLUSTER, "prod", {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.9.9:6443",
                                          "secretsRef": {"name": "prod"}, "controlPlane": {"count": 3}}))
    for machine in machines:
        store.create(Record(MACHINE, machine["name"], {
            "clusterRef": "prod", "identity": {"uuid": machine["uuid"], "serial": machine["serial"], "macs": [machine["mac"]]},
            "endpoint": machine["address"], "approvalState": "approved", "approvedBy": "bench", "approvedVia": "bench",
            "approvedAt": "2026-01-01T00:00:00Z",
            "role": "worker" if machine is not machines[0] else "controlplane", "hostname": machine["name"], "install": {"disk": "/dev/sda"},
        }, {"stage": "maintenance", "maintenanceFingerprint": machine["fingerprint"], "maintenanceFingerprintAt": "2026-01-01T00:00:00Z"}))
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
    credentials = credentials_from_bundle((secrets / "prod.yaml").read_bytes(), now=time.time())
    ports = Ports(nodes, store, clock, quiet, Actor("bench", "bench"), holder="bench", credentials=lambda cluster, bundle: credentials)
    outcome = await run(Request(tuple(Job(machine["name"], render=True) for machine in machines), single=False, timing=Timing(settle=0.1),
                                allow_loopback=True), ports, granted)
    await nodes.close()
    return len(outcome.executed)


def main() -> None:
    plan = json.load(sys.stdin)
    print(json.dumps({"sent": asyncio.run(send(plan, plan["machines"]))}))


main()
