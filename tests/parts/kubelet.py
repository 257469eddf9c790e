# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the parts of Kubernetes that no process of the tests is: a kubelet that registers Nodes and lets pods end, and the controller of
PodDisruptionBudgets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH, Api, ApiRefused, ApiSilent

from tests.parts.apiserver import ApiServer

#: Between two looks for pods that were told to end, in seconds; nothing is measured by it.
_LOOK = 0.1
_INFO = ("machineID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture")


@dataclass
class Kubelets:
    """The kubelets of every Node of one API server. `stubborn`: pods, as namespace/name, that do not end when they are told to."""

    api: Api
    stubborn: set[str] = field(default_factory=set)
    #: Pods that ended, in order.
    ended: list[str] = field(default_factory=list)

    def register(self, name: str, address: str, uuid: str = "", ready: bool = True) -> None:
        """A Node, or what its kubelet says of it now."""
        if self.api.get(f"/api/v1/nodes/{name}") is None:
            self.api.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": name, "labels": {"kubernetes.io/hostname": name}}})
        addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
        condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Test", "message": ""}
        self.api.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "addresses": addresses, "conditions": [condition], "nodeInfo": {**dict.fromkeys(_INFO, "x"), "systemUUID": uuid}}}, content_type=MERGE_PATCH)

    def node(self, name: str) -> dict[str, Any]:
        """The Node as it is now, {} where there is none."""
        return dict(self.api.get(f"/api/v1/nodes/{name}") or {})

    def run(self, namespace: str, name: str, node: str, *, owner: str = "ReplicaSet", labels: Mapping[str, str] | None = None,
            volumes: list[dict[str, Any]] | None = None, annotations: Mapping[str, str] | None = None, ready: bool = True, phase: str = "Running") -> None:
        """A pod that runs on the Node. `owner`: the kind of its controller, '' for none."""
        if self.api.get(f"/api/v1/namespaces/{namespace}") is None:
            self.api.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        owners = [{"apiVersion": "apps/v1", "kind": owner, "name": name, "uid": f"uid-of-{name}", "controller": True}] if owner else []
        mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes or []]
        pod: dict[str, Any] = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": dict(labels or {}), "ownerReferences": owners,
                                                            "annotations": dict(annotations or {})},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none", "volumeMounts": mounts}], "volumes": volumes or []}}
        self.api.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        self.api.request("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status}, content_type=MERGE_PATCH)

    def pods(self, node: str) -> list[str]:
        """The pods of a Node, as namespace/name."""
        items = self.api.request("GET", "/api/v1/pods", query={"fieldSelector": f"spec.nodeName={node}"})["items"]
        return sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items)  # type: ignore[index, call-overload, union-attr]

    def budget(self, namespace: str, name: str, labels: Mapping[str, str], allowed: int) -> None:
        """A PodDisruptionBudget, and how many of its pods its controller lets go now."""
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        if self.api.get(f"{path}/{name}") is None:
            self.api.request("POST", path, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
                                            "spec": {"minAvailable": 1, "selector": {"matchLabels": dict(labels)}}})
        status = {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1, "expectedPods": 1 + allowed, "observedGeneration": 1}
        self.api.request("PATCH", f"{path}/{name}/status", {"status": status}, content_type=MERGE_PATCH)

    def local_volume(self, namespace: str, claim: str, node: str) -> None:
        """A claim that is bound to a volume on a disk of the Node."""
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}
        self.api.request("POST", "/api/v1/persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{claim}"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/var/mnt/data"}, "nodeAffinity": affinity,
            "claimRef": {"namespace": namespace, "name": claim}}})

    def let_end(self) -> None:
        """Every pod that was told to end has ended, but for the stubborn ones."""
        for item in self.api.request("GET", "/api/v1/pods")["items"]:  # type: ignore[union-attr]
            metadata: Any = item["metadata"]  # type: ignore[index, call-overload]
            name = f"{metadata['namespace']}/{metadata['name']}"
            if not metadata.get("deletionTimestamp") or name in self.stubborn:
                continue
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            try:
                self.api.request("DELETE", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", body)
            except ApiRefused as refused:
                if refused.status not in (404, 409):
                    raise
            self.ended.append(name)


@contextmanager
def kubelets(server: ApiServer) -> Iterator[Kubelets]:
    """They run beside the test until it is over."""
    api, over = open_api(Access(kubeconfig=str(server.kubeconfig))), threading.Event()
    found = Kubelets(open_api(Access(kubeconfig=str(server.kubeconfig))))
    beside = Kubelets(api, found.stubborn, found.ended)

    def run() -> None:
        while not over.wait(_LOOK):
            with suppress(ApiSilent, ApiRefused):  # a test may stop the API server for a while
                beside.let_end()

    thread = threading.Thread(target=run, name="kubelets", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(30)
        api.close()
        found.api.close()
