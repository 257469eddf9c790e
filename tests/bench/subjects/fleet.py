# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepares a fleet: a store with a cluster, one control plane and workers, each of which runs what its record says. Prints how many took it.

It sends by itself what the product renders, since what counts is the reading afterwards. Discovery is off: hundreds of emulated nodes that tell each
other of each other in one process would take longer than all the rest.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store

THEN = "2026-01-01T00:00:00Z"
SPEC = {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.9.9:6443", "secretsRef": {"name": "prod"},
        "controlPlane": {"count": 3}}
PATCH = {"clusterRef": "prod", "layer": "cluster", "documents": [{"cluster": {"discovery": {"enabled": False}}}]}


class Clock:
    """The system's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def specs(machines: list[dict[str, str]]) -> list[dict[str, object]]:
    return [{
        "clusterRef": "prod", "identity": {"uuid": machine["uuid"], "serial": machine["serial"], "macs": [machine["mac"]]},
        "endpoint": machine["address"], "approvalState": "approved", "approvedBy": "bench", "approvedVia": "bench", "approvedAt": THEN,
        "role": "worker" if machine is not machines[0] else "controlplane", "hostname": machine["name"], "install": {"disk": "/dev/sda"}}
        for machine in machines]


async def prepare(folder: Path, machines: list[dict[str, str]]) -> int:
    store = open_store(str(folder), clock=Clock(), create=True)
    secrets = folder / "secrets"
    secrets.mkdir(mode=0o700)
    shutil.copy("tests/vectors/secrets.yaml", secrets / "prod.yaml")
    (secrets / "prod.yaml").chmod(0o600)
    bundle = read_bundle((secrets / "prod.yaml").read_bytes())
    store.create(Record(CLUSTER, "prod", SPEC))
    store.create(Record(CONFIG_PATCH, "quiet", PATCH))
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),), timing=Timing(call=600.0, apply=600.0))
    limit = asyncio.Semaphore(8)

    async def one(machine: dict[str, str], spec: dict[str, object]) -> int:
        rendered = render(RenderInput("prod", SPEC, machine["name"], spec, bundle, (PatchRecord.of("quiet", PATCH),)))
        async with limit, nodes.maintenance(Endpoint(machine["address"], 50000), machine["fingerprint"]) as session:
            await session.apply(rendered.text.encode(), "AUTO")
        store.create(Record(MACHINE, machine["name"], spec, {
            "stage": "running", "maintenanceFingerprint": machine["fingerprint"], "maintenanceFingerprintAt": THEN, "configStoredAt": THEN,
            "storedConfigHash": rendered.sha256, "appliedConfigHash": rendered.sha256}))
        return 1

    sent = sum(await asyncio.gather(*(one(machine, spec) for machine, spec in zip(machines, specs(machines), strict=True))))
    await nodes.close()
    return sent


def main() -> None:
    plan = json.load(sys.stdin)
    print(json.dumps({"sent": asyncio.run(prepare(Path(plan["store"]), plan["machines"]))}))


main()
