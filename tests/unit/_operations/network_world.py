# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster whose Kubernetes is a real API server, with a network of its own, or none; and its record in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
from ansible_collections.ichor.talos.plugins.module_utils._decide.cni_values import for_render
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.any_objects import Objects
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH, Api
from ansible_collections.ichor.talos.plugins.module_utils._model.container_network import Chart
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Nodes, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, Record
from ansible_collections.ichor.talos.plugins.module_utils._operations.kube_networks import KubeNetworks
from ansible_collections.ichor.talos.plugins.module_utils._store import opening

from tests.parts.apiserver import ApiServer, running
from tests.parts.network_chart import CHART, NAMESPACE, rendered
from tests.unit._operations.managed_world import BUNDLE, serving

LOCAL = Chart(str(CHART))
SYSTEM = f"/api/v1/namespaces/{NAMESPACE}"
WITHOUT = ("container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: "
           "cni plugin not initialized")


@dataclass
class Kubernetes:
    """The API server, asked by a person. `lines`: what the product told."""

    server: ApiServer
    api: Api
    lines: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"

    def node(self, name: str, status: str = "False", message: str = WITHOUT) -> None:
        if self.api.get(f"/api/v1/nodes/{name}") is None:
            self.api.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        condition: Any = {"type": "Ready", "status": status, "reason": "Test", "message": message}
        self.api.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}}, content_type=MERGE_PATCH)

    def objects(self) -> Objects:
        return Objects(self.api, NAMESPACE)

    def apply(self, values: Mapping[str, Any]) -> None:
        """The chart as an inline manifest of Talos makes it: no Helm, no release."""
        objects = self.objects()
        for one in objects.live(rendered(for_render(dict(values)))):
            objects.create(one.wanted)

    def change(self, path: str, patch: dict[str, Any]) -> None:
        """Somebody changes an object by hand."""
        self.api.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def read(self, path: str) -> dict[str, Any]:
        return cast("dict[str, Any]", dict(self.api.get(path) or {}))

    def clear(self) -> None:
        """No network, no Node, no release."""
        objects = self.objects()
        for one in objects.live(rendered({"hubble": {"relay": {"enabled": True}}})):
            self._delete(f"{objects._collection(one.wanted)}/{one.place.name}")
        for path in ("/api/v1/nodes", f"{SYSTEM}/secrets", f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"):
            for item in cast("list[Any]", self.api.request("GET", path)["items"]):
                self._delete(f"{path}/{item['metadata']['name']}")

    def _delete(self, path: str) -> None:
        if self.api.get(path) is not None:
            self.api.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def mark(self) -> int:
        """Where the audit log stands."""
        return len(self.server.audit.read_text().splitlines())

    def written(self, since: int) -> list[str]:
        """What the product wrote since, as `verb resource/name`; what it had only tried is no write."""
        found = []
        for line in self.server.audit.read_text().splitlines()[since:]:
            entry = json.loads(line)
            if entry["user"]["username"] == "ichor.talos" and entry["verb"] in ("create", "update", "patch", "delete") \
                    and "dryRun=All" not in entry["requestURI"]:
                found.append(f"{entry['verb']} {entry['objectRef']['resource']}/{entry['objectRef'].get('name', '')}")
        return found


@contextmanager
def kubernetes() -> Iterator[Kubernetes]:
    with running(serving()) as started:
        (started.folder / "certs").mkdir(exist_ok=True)
        (started.folder / "certs" / "apiserver.crt").write_text((started.folder / "serving-authority.pem").read_text())
        api = open_api(Access(kubeconfig=str(started.kubeconfig)))
        found = Kubernetes(started, api)
        if api.get("/api/v1/namespaces/kube-system") is None:
            api.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        try:
            yield found
        finally:
            api.close()


def ports_of(folder: Path, found: Kubernetes, *, values: Mapping[str, Any] | None = None, preset: str = "managed", bootstrapped: bool = True,
             check: bool = False, holder: str = "run-1") -> Ports:
    """With a store in the folder that has the cluster `prod`."""
    clock = SystemClock()
    store = opening.open_store(str(folder / "ichor"), clock=clock, create=True)
    if store.get(CLUSTER, "prod") is None:
        store.write_bundle("prod", BUNDLE.read_bytes())
        cilium = {"cilium": {"values": dict(values)}} if values else {}
        spec: Any = {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.36.3", "endpoint": found.endpoint, "secretsRef": {"name": "prod"},
                     "controlPlane": {"count": 1}, "cni": {"preset": preset, **cilium}}
        store.create(Record(CLUSTER, "prod", spec, {"bootstrappedAt": "2026-01-01T00:00:00Z"} if bootstrapped else {}))
    return Ports(nodes=cast(Nodes, None), store=store, clock=clock, progress=found.lines.append, actor=Actor("ada", "ada"), check=check, holder=holder,
                 networks=KubeNetworks(check))
