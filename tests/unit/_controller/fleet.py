# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small world in memory in which the controller renders from records: the one of the operations, with a secrets bundle."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import yaml

from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Gate, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken, Listing
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import read_machine
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from ansible_collections.ichor.talos.tests.unit._operations import world as w

BUNDLE = Path(__file__).resolve().parents[2] / "vectors" / "secrets.yaml"
BOOTSTRAPPED = {"bootstrappedAt": "2023-11-01T00:00:00Z"}
JOINED = {"stage": "running", "configStoredAt": "2023-11-01T00:00:00Z", "storedConfigHash": "a", "appliedConfigHash": "a"}


class Store(w.Store):
    """With a bundle, and files that are broken. `listed` counts the listings of machines."""

    def __init__(self, world: w.World) -> None:
        super().__init__(world)
        self.broken: tuple[Broken, ...] = ()
        self.listed: dict[str, int] = {}

    def bundle(self, name: str) -> bytes:
        return BUNDLE.read_bytes()

    def list(self, kind: str) -> Listing:
        self.listed[kind] = self.listed.get(kind, 0) + 1
        return replace(super().list(kind), broken=tuple(entry for entry in self.broken if entry.kind == kind))


def _authority() -> str:
    return base64.b64decode(yaml.safe_load(BUNDLE.read_text(encoding="utf-8"))["certs"]["os"]["crt"]).decode()


CA = _authority()


class Fleet(w.World):
    """The world, a cluster in it, and machines by short names."""

    def __init__(self, *, bootstrapped: bool = False, **cluster: object) -> None:
        super().__init__()
        self.store: Store = Store(self)
        self.store.put(w.cluster_record(status=BOOTSTRAPPED if bootstrapped else {}, secretsRef={"name": "prod"}, kubernetesVersion="v1.35.0", **cluster))

    def waits(self, name: str, number: int, role: str = "worker", **spec: object) -> w.Node:
        """An approved machine in maintenance mode, that was sent nothing."""
        return w.place(self, name, number, role, install={"disk": "/dev/sda"}, network={"primary": {"interface": "eth0", "dhcp": True}}, **spec)

    def runs(self, name: str, number: int, role: str = "worker", **spec: object) -> w.Node:
        """A machine that joined and runs what the records say."""
        node = self.waits(name, number, role, status=JOINED, **spec)
        node.mode, node.stage, node.ready = "running", "running", True
        rendered = Renderer(self.store).machine(read_machine(self.store, name))  # type: ignore[arg-type]
        assert isinstance(rendered, Present), rendered
        node.config = rendered.value.brought().raw
        if role == "controlplane":
            node.etcd, node.leader, node.members = "Running", "x", (EtcdMember(name, name, (f"https://10.0.0.{number}:2380",)),)
        return node

    def ports(self, holder: str = "run-1", *, check: bool = False, store: bool = True, credentials: bool = True) -> Ports:
        return replace(super().ports(holder, check=check), credentials=lambda cluster, bundle: Credentials(CA, "CERT", "KEY", "bundle"))

    def reconcile(self, *machines: str, gate: Gate | None = None, check: bool = False, holder: str = "run-1", **options: object) -> Outcome:
        request = Request(machines=machines, **options)  # type: ignore[arg-type]
        return asyncio.run(run(request, self.ports(holder, check=check), gate or w.OpenGate(check)))
