# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One approved machine that is being sent its configuration while the lab holds the call: a moment to stop a run, or to look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access
from ansible_collections.ichor.talos.plugins.module_utils._decide.approval_words import Wanted
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports, Store
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from ansible_collections.ichor.talos.plugins.module_utils._operations import discover, machine_approval
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store as open_kubernetes
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store

from tests.lab.control import Lab
from tests.lives.records import Namespace, Records
from tests.scenarios.playing import Project, wait_for

VECTORS = Path(__file__).parents[1] / "vectors"
MACHINE = "prod-5a1f0c3e"
NODE = "cp"


def generated(role: str) -> str:
    """A configuration that Talos's own generator made from the bundle in the vectors."""
    for line in (VECTORS / "generate.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["id"] == f"v1.13.9/v1.13/{role}/base":
            return str(row["output"])
    raise AssertionError(f"no configuration for {role}")


def opened(records: Records, create: bool = False) -> Store:
    """The product's own store where these records are."""
    if isinstance(records, Namespace):
        return open_kubernetes(Access(kubeconfig=str(records.server.kubeconfig)), records.name, clock=SystemClock(), create=create)
    return open_store(records.options["store_path"], clock=SystemClock(), create=create)


def cluster(network: str, **more: Any) -> dict[str, Any]:
    return {"name": "The cluster", "ichor.talos.talos_cluster": {
        "name": "prod", "endpoint": "https://127.0.0.9:6443", "talos_version": "v1.13.9", "kubernetes_version": "v1.35.0", "bundle": "prod",
        "control_planes": 1, "discovery": {"ranges": [f"{network}.0/29"]}, **more}}


def approved(project: Project, network: str, machines: Sequence[tuple[str, str]] = ((MACHINE, "controlplane"),)) -> None:
    """A store with the cluster, its bundle, and these machines found and approved; by the operations themselves, which takes less
    time than ansible-playbook and is not what these tests are about."""
    asyncio.run(_approved(project, network, machines))
    project.records.put_bundle((VECTORS / "secrets.yaml").read_bytes())


async def _approved(project: Project, network: str, machines: Sequence[tuple[str, str]]) -> None:
    clock = SystemClock()
    store = opened(project.records, create=True)
    store.create(Record(CLUSTER, "prod", {
        "endpoint": "https://127.0.0.9:6443", "talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "secretsRef": {"name": "prod"},
        "controlPlane": {"count": 1}, "discovery": {"ranges": [f"{network}.0/29"]}}))
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
    ports = Ports(nodes, store, clock, print, Actor("ada", "ada"))
    timing = Timing(settle=0.1)
    try:
        await discover.run(discover.Request("prod", allow_loopback=True, timing=timing), ports, lambda plan: plan)
        for name, role in machines:
            wanted = Wanted("", role=role, install={"disk": "/dev/sda"}, allow_loopback=True)
            outcome = await machine_approval.run(machine_approval.Request((name,), wanted, timing), ports, lambda plan: plan)
            assert outcome.executed, outcome
    finally:
        await nodes.close()


def apply_task(**options: Any) -> dict[str, Any]:
    return {"name": "Apply", "ichor.talos.talos_maintenance_apply": {"machine": MACHINE, **options}}


def hold(lab: Lab) -> None:
    """The next configuration is received, and its answer kept back."""
    lab.hold(node=NODE, phase="apply")


def received(lab: Lab) -> int:
    """How many configurations the node has got so far, whether answered or not."""
    return len([entry for entry in lab.log(node=NODE) if entry["event"] == "call" and str(entry.get("rpc")).endswith("/ApplyConfiguration")])


def wait_until_held(lab: Lab, project: Project) -> None:
    before = received(lab)
    wait_for(lambda: received(lab) > before or project.over(), "the configuration to reach the node")
    assert received(lab) > before, project.output()
