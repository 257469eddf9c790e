# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineReclaim records in a real API server: carried out once by one of two controllers, and not again when the status is lost or the time is
over (design sections 3 and 16)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, RECLAIM, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store

from tests.lab.control import Lab
from tests.lives.running_cluster import LONGEST, QUICK, writes
from tests.nursery.client import Nursery
from tests.parts.apiserver import ApiServer
from tests.scenarios.foreign_cluster import Foreign
from tests.scenarios.playing import network_of

NETWORK = network_of(__name__)
RESET = "Reset"
TIMING = {**QUICK, "call": 20.0, "discovery_after_reset": 0.5, "lock_wait": 60.0}
API = "/apis/ichor.maesh.dev/v1alpha1/namespaces"


class Orders:
    """A namespace with the cluster prod, a foreign cluster of one control plane and three workers, and two controllers."""

    def __init__(self, server: ApiServer, lab: Lab, nurseries: tuple[Nursery, Nursery], namespace: str) -> None:
        self.server, self.lab, self.nurseries, self.namespace = server, lab, nurseries, namespace
        self.store = open_store(Access(kubeconfig=str(server.kubeconfig)), namespace, clock=SystemClock(), create=True)
        self.api = open_api(Access(kubeconfig=str(server.kubeconfig)))
        self.foreign = Foreign(lab, "old", NETWORK, 1, 3).create()
        self.store.create(Record(CLUSTER, "prod", {
            "endpoint": f"https://{NETWORK}.250:6443", "talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "secretsRef": {"name": "prod"},
            "controlPlane": {"count": 1}, "discovery": {"ranges": [f"{NETWORK}.1-20"]}}))
        self.store.write_bundle("old", self.foreign.secrets.talosconfig([]).encode())

    def order(self, name: str, host: str, until: str = "2099-01-01T00:00:00Z") -> None:
        self.store.create(Record(RECLAIM, name, {
            "address": self.foreign.address(host), "clusterRef": "prod", "talosconfigRef": {"name": "old"}, "confirmUUID": self.foreign.uuid(host),
            "notAfter": until}))

    def controllers(self, count: int) -> list[dict[str, Any]]:
        """As many side by side, to their ends."""
        for nursery in self.nurseries[:count]:
            nursery.start("talos_controller", cluster="prod", store_namespace=self.namespace, allow_loopback=True, timing=TIMING, discover=False,
                          until="settled", max_runtime=LONGEST)
        ended = [nursery.finish() for nursery in self.nurseries[:count]]
        for one in ended:
            assert one.result and not one.result.get("failed"), f"{one.output} {one.errors}"
        return [one.result for one in ended]

    def found(self, name: str) -> dict[str, Any]:
        return dict(json.loads(self.server.read(f"{API}/{self.namespace}/machinereclaims/{name}")))

    def ready(self, name: str) -> str:
        return next((entry["reason"] for entry in self.found(name)["status"]["conditions"] if entry["type"] == "Ready"), "")

    def lose_status(self, name: str) -> None:
        self.api.request("PATCH", f"{API}/{self.namespace}/machinereclaims/{name}/status", {"status": None}, content_type=MERGE_PATCH)
        assert not self.found(name).get("status")

    def put_back(self, host: str) -> None:
        """Somebody installs the foreign cluster on it again."""
        self.lab.remove(node=host)
        self.foreign.add(host)
        self.lab.wait(node=host, stage="ready", seconds=60)


@pytest.fixture(scope="module")
def orders(apiserver: ApiServer) -> Iterator[Orders]:
    environment = {"ICHOR_STORE": "kubernetes", "ICHOR_STORE_KUBECONFIG": str(apiserver.kubeconfig)}
    with Lab.start({"nodes": {}}, speed=20.0) as lab, Nursery(**environment) as first, Nursery(**environment) as second:
        made = Orders(apiserver, lab, (first, second), f"t-{uuid.uuid4().hex[:12]}")
        yield made
        made.store.close()


def test_two_racing_controllers_carry_an_order_out_once(orders: Orders) -> None:
    mark = orders.lab.mark()
    orders.order("race", "old-w-1")
    orders.controllers(2)
    found = orders.found("race")
    assert writes(orders.lab, mark) == {RESET: 1} and found["status"]["outcome"].startswith("Pending as "), found
    assert found["status"]["recordUID"] == found["metadata"]["uid"] and found["status"]["inspection"]["cluster"]["name"] == "old"
    begun = [event for event in orders.store.events(Ref(RECLAIM, "race")) if event.reason == "ReclaimStarted"]
    assert len(begun) == 1
    machines = json.loads(orders.server.read(f"{API}/{orders.namespace}/talosmachines"))["items"]
    assert [(one["spec"]["approvalState"], one["spec"]["identity"]["uuid"]) for one in machines] == [("pending", orders.foreign.uuid("old-w-1"))]
    assert machines[0]["status"]["maintenanceFingerprint"] == orders.lab.state(node="old-w-1")["fingerprint"] and machines[0]["status"]["discoveredDisks"]
    leases = json.loads(orders.server.read(f"/apis/coordination.k8s.io/v1/namespaces/{orders.namespace}/leases"))["items"]
    assert leases and [lease["spec"].get("holderIdentity", "") for lease in leases] == [""] * len(leases)


def test_an_order_is_not_carried_out_again(orders: Orders) -> None:
    """Its machine has its old cluster again, and so could be wiped once more: with its status, and without."""
    orders.order("again", "old-w-2")
    orders.controllers(1)
    assert orders.found("again")["status"]["outcome"].startswith("Pending as ")
    orders.put_back("old-w-2")
    mark = orders.lab.mark()
    orders.controllers(2)
    assert writes(orders.lab, mark, accepted=False) == {}
    orders.lose_status("again")
    orders.controllers(2)
    assert writes(orders.lab, mark, accepted=False) == {} and orders.ready("again") == "StatusMissing"


def test_an_order_that_is_late_is_none(orders: Orders) -> None:
    orders.order("late", "old-w-3", until="2020-01-01T00:00:00Z")
    mark = orders.lab.mark()
    orders.controllers(2)
    assert writes(orders.lab, mark, accepted=False) == {} and orders.ready("late") == "StatusMissing"
    assert "outcome" not in orders.found("late")["status"] and orders.lab.state(node="old-w-3")["mode"] == "configured"
