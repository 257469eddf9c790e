# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lab nodes for the tests of the lab: one process for a module, addresses of its own, and the calls that the tests make."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

from tests.lab.certificates import Leaf
from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.lab.wire import message
from tests.lab.wireclient import Outcome, WireClient, WireError, context

PORT = 50000
MACHINE = "/machine.MachineService/"
#: Two workers of one run never have the same addresses.
_second = random.SystemRandom().randint(20, 59) + 40 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2)
_numbers = itertools.count(1)


def address() -> str:
    number = next(_numbers)
    return f"127.{_second}.{number // 250}.{number % 250 + 1}"


class Nodes:
    """A lab, the secrets of one cluster, and shorthands."""

    def __init__(self, lab: Lab, version: str = "v1.13.9") -> None:
        self.lab = lab
        self.version = version
        self.secrets = ClusterSecrets()
        self.addresses: dict[str, str] = {}
        self.prefix = f"n{next(_numbers)}-"

    def key(self, name: str) -> str:
        return self.prefix + name

    def add(self, name: str, **description: Any) -> dict[str, Any]:
        self.addresses[name] = description.pop("address", None) or address()
        if not self.addresses.get("endpoint"):
            self.addresses["endpoint"] = self.addresses[name]
            self.secrets.endpoint = f"https://{self.addresses[name]}:6443"
        found: dict[str, Any] = self.lab.add(name=self.key(name), description={"address": self.addresses[name], "version": self.version, **description})
        return found

    def state(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.state(node=self.key(name))
        return found

    def wait(self, name: str, stage: str, seconds: float = 30.0) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.wait(node=self.key(name), stage=stage, seconds=seconds)
        return found

    def leaf(self, role: str | None) -> Leaf | None:
        return None if role is None else self.secrets.client(role)

    def connect(self, name: str, leaf: Leaf | None = None) -> WireClient:
        return WireClient(self.addresses[name], PORT, context(leaf))

    def call(self, name: str, method: str, request: Any = b"", role: str | None = None, **options: Any) -> Outcome:
        path = method if method.startswith("/") else MACHINE + method
        data = request if isinstance(request, bytes) else request.SerializeToString()
        try:
            with self.connect(name, self.leaf(role)) as client:
                return client.unary(path, data, **options)
        except WireError as error:
            return Outcome(error.kind, error.text)

    def config(self, kind: str, hostname: str, **options: Any) -> str:
        return self.secrets.config(kind, hostname, version=self.version, **options)

    def apply(self, name: str, text: str, role: str | None = None, **fields: Any) -> Outcome:
        request = message("machine.ApplyConfigurationRequest")(data=text.encode(), **{"mode": 1, **fields})
        return self.call(name, "ApplyConfiguration", request, role)

    def get(self, name: str, namespace: str, kind: str, identifier: str, role: str | None = None) -> Outcome:
        request = message("cosi.resource.GetRequest")(namespace=namespace, type=kind, id=identifier)
        return self.call(name, "/cosi.resource.State/Get", request, role)

    def control_plane(self, name: str = "cp1", bootstrap: bool = True, **description: Any) -> None:
        """A control plane, bootstrapped or waiting for it."""
        self.add(name, **description)
        assert self.apply(name, self.config("controlplane", name)).code == "OK"
        self.wait(name, "configured")
        self.lab.wait(node=self.key(name), stage="booting", seconds=30)
        self._until(name, "etcd not running")
        if bootstrap:
            assert self.call(name, "Bootstrap", role="os:admin").code == "OK"
            self.wait(name, "ready")
            self.member(name)

    def join(self, name: str, kind: str) -> None:
        self.add(name)
        assert self.apply(name, self.config(kind, name)).code == "OK"
        self.wait(name, "ready", 60)
        if kind == "controlplane":
            self.member(name)

    def member(self, name: str) -> None:
        """Waits until etcd on the node is healthy."""
        watch = message("cosi.resource.WatchRequest")(namespace="etcd", type="EtcdMembers.etcd.talos.dev", id="local", api_version=1)
        for unused in range(200):
            if self.get(name, "etcd", "EtcdMembers.etcd.talos.dev", "local", "os:admin").code == "OK":
                return
            self.call(name, "/cosi.resource.State/Watch", watch, "os:admin", read_for=0.2)
        raise AssertionError(f"{name} has no member resource")

    def _until(self, name: str, reason: str) -> None:
        watch = message("cosi.resource.WatchRequest")(namespace="runtime", type="MachineStatuses.runtime.talos.dev", id="machine", api_version=1)
        for unused in range(200):
            if [item["reason"] for item in self.state(name)["unmet"]] == [reason] and self.state(name)["boots"] == 2:
                return
            self.call(name, "/cosi.resource.State/Watch", watch, "os:admin", read_for=0.1)
        raise AssertionError(self.state(name))
