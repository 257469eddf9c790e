# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepares a fleet: a store with a cluster, one control plane and workers, each of which joined. Prints the configuration of each machine.

The machines are given their configurations behind the product's back, since what counts is the reading afterwards. Discovery is off: hundreds
of emulated nodes that tell each other of each other in one process would take longer than all the rest.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.render import PatchRecord, RenderInput, render
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Record
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store

THEN = "2026-01-01T00:00:00Z"
SPEC = {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.9.9:6443", "secretsRef": {"name": "prod"},
        "controlPlane": {"count": 1}}
PATCH = {"clusterRef": "prod", "layer": "cluster", "documents": [{"cluster": {"discovery": {"enabled": False}}}]}


class Clock:
    """The system's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError(f"nothing waits {seconds} s here")


def specs(machines: list[dict[str, str]]) -> list[dict[str, object]]:
    return [{
        "clusterRef": "prod", "identity": {"uuid": machine["uuid"], "serial": machine["serial"], "macs": [machine["mac"]]},
        "endpoint": machine["address"], "approvalState": "approved", "approvedBy": "bench", "approvedVia": "bench", "approvedAt": THEN,
        "role": "worker" if machine is not machines[0] else "controlplane", "hostname": machine["name"], "install": {"disk": "/dev/sda"}}
        for machine in machines]


def prepare(folder: Path, machines: list[dict[str, str]]) -> list[str]:
    store = open_store(str(folder), clock=Clock(), create=True)
    secrets = folder / "secrets"
    secrets.mkdir(mode=0o700)
    shutil.copy("tests/vectors/secrets.yaml", secrets / "prod.yaml")
    (secrets / "prod.yaml").chmod(0o600)
    bundle = read_bundle((secrets / "prod.yaml").read_bytes())
    store.create(Record(CLUSTER, "prod", SPEC, {"bootstrappedAt": THEN}))
    store.create(Record(CONFIG_PATCH, "quiet", PATCH))
    texts = []
    for machine, spec in zip(machines, specs(machines), strict=True):
        rendered = render(RenderInput("prod", SPEC, machine["name"], spec, bundle, (PatchRecord.of("quiet", PATCH),)))
        store.create(Record(MACHINE, machine["name"], spec, {
            "stage": "running", "configStoredAt": THEN, "storedConfigHash": rendered.sha256, "appliedConfigHash": rendered.sha256}))
        texts.append(rendered.text)
    return texts


def main() -> None:
    plan = json.load(sys.stdin)
    print(json.dumps({"texts": prepare(Path(plan["store"]), plan["machines"])}))


main()
