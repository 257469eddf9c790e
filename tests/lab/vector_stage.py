# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Some lab nodes that play the nodes of the recording: machines, credentials, configurations, usual ways."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.lab.certificates import Leaf, issue_client, new_authority
from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.lab.vector_configs import Configs
from tests.lab.wire import message
from tests.lab.wireclient import Outcome, WireClient, WireError, context

PORT = 50000
APPLY = "/machine.MachineService/ApplyConfiguration"
NUMBERS = {"cp1": 1, "cp2": 2, "w1": 3, "x1": 4, "y1": 5, "z1": 6, "w2": 7, "n5": 8}
ROLES = {
    "admin": ("os:admin",), "operator": ("os:operator",), "reader": ("os:reader",), "etcd-backup": ("os:etcd:backup",), "meta-writer": ("os:meta:writer",),
    "image-verifier": ("os:image:verifier",), "impersonator": ("os:impersonator",), "reader+etcd-backup": ("os:reader", "os:etcd:backup"),
    "norole": ("nobody",),
    "emptyrole": (),
}


def machine(number: int) -> dict[str, Any]:
    """The machine description of the recorded node with that number."""
    def link(name: str, index: int, up: bool) -> dict[str, Any]:
        return {"name": name, "index": index, "up": up, "mac": f"52:54:00:00:{number:02x}:{index - 1:02x}", "busPath": f"0000:{index - 1:02x}:00.0"}

    return {
        "uuid": f"4c4c4544-0000-0000-0000-{number:012d}", "serial": f"SN{number:04d}", "sparse": True,
        "links": [link("enp1s0", 2, True), link("enp2s0", 3, False)],
        "disks": [
            {
                "name": "nvme0n1", "size": 1024209543168, "model": "ACME NVMe", "serial": f"NVME{number:04d}", "wwid": f"eui.{number:016x}",
                "bus_path": "/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme",
            },
            {
                "name": "sda", "model": "ACME SSD", "serial": f"DISK{number:04d}A", "wwid": f"naa.{number:016x}",
                "bus_path": "/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0", "symlinks": [f"/dev/disk/by-id/ata-ACME_SSD_DISK{number:04d}A"],
            },
            {"name": "sr0", "size": 104857600, "cdrom": True, "model": "DVD-ROM"},
        ],
        "processors": [
            {
                "socket": "CPU0", "manufacturer": "Acme", "productName": "Acme CPU", "maxSpeedMhz": 3000, "bootSpeedMhz": 2800, "status": 65, "coreCount": 8,
                "coreEnabled": 8, "threadCount": 16,
            }
        ],
        "memory": [{"sizeMiB": 16384, "deviceLocator": "DIMM 0", "manufacturer": "Acme", "serialNumber": f"MEM{number}"}],
        "extensions": [
            {
                "id": "0", "image": "registry.example.org/siderolabs/qemu-guest-agent:v1",
                "metadata": {
                    "name": "qemu-guest-agent", "version": "v1", "author": "Sidero Labs", "description": "x", "compatibility": {"talos": {"version": ""}},
                },
            }
        ],
    }


def go_client_leaf(credentials: str, secrets: ClusterSecrets) -> Leaf | None:
    """The client certificate of a kind of credentials; None for `none`."""
    now = time.time()
    if credentials == "none":
        return None
    if credentials in ROLES:
        return issue_client(secrets.os, now, ROLES[credentials])
    admin = ROLES["admin"]
    if credentials == "foreign-ca":
        return issue_client(new_authority(now - 60, "talos"), now, admin)
    if credentials == "foreign-ca-other-name":
        return issue_client(new_authority(now - 60, "other"), now, admin)
    if credentials == "self-signed":
        return issue_client(None, now, admin)
    if credentials == "expired":
        return issue_client(secrets.os, now, admin, start=timedelta(hours=-48), lifetime=timedelta(hours=24))
    if credentials == "not-yet-valid":
        return issue_client(secrets.os, now, admin, start=timedelta(hours=24))
    if credentials in ("rsa-right-ca", "ecdsa-right-ca"):
        return issue_client(secrets.os, now, admin, key_type=credentials[:-9])
    usage = credentials.removeprefix("eku-")
    return issue_client(secrets.os, now, admin, usage=None if usage == "missing" else usage)


class Stage:
    """Some nodes of one recorded set-up. Names are those of the masks: cp1, cp2, w1, x1, y1, z1."""

    def __init__(self, lab: Lab, prefix: str, talos: str, configs: Configs, address: Callable[[], str]) -> None:
        self.lab = lab
        self.prefix = prefix
        self.talos = talos
        #: How many seconds of the lab go by in one of the machine, where that counts.
        self.speed = 1.0
        self.minor = int(talos.split(".")[1])
        self.configs = configs
        self._address = address
        self.addresses: dict[str, str] = {"dead": address()}
        self.subject = "cp1"
        self.connection: WireClient | None = None
        self.base: str | None = None  # the recorded configuration that the subject has, when a row has changed it
        self._leaves: dict[str, Leaf | None] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self.secrets = ClusterSecrets()
        self.other = ClusterSecrets()
        self._nodes: list[str] = []
        self.addresses.update({name: address() for name in NUMBERS})

    def key(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def add(self, name: str) -> None:
        number = NUMBERS[name] + (10 if self.minor >= 14 else 0)
        self.lab.add(name=self.key(name), description={"address": self.addresses[name], "version": self.talos, "port": PORT, "machine": machine(number)})
        self._nodes.append(name)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        for name in self._nodes:
            self.lab.remove(node=self.key(name))

    def leaf(self, credentials: str) -> Leaf | None:
        if credentials not in self._leaves:
            self._leaves[credentials] = go_client_leaf(credentials, self.secrets)
        return self._leaves[credentials]

    def tls(self, credentials: str) -> ssl.SSLContext:
        if credentials not in self._contexts:
            self._contexts[credentials] = context(self.leaf(credentials))
        return self._contexts[credentials]

    def connect(self, name: str, credentials: str) -> WireClient:
        return WireClient(self.addresses[name], PORT, self.tls(credentials))

    def call(self, name: str, credentials: str, path: str, request: Any = b"", **options: Any) -> Outcome:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        try:
            with self.connect(name, credentials) as client:
                return client.unary(path, data, **options)
        except WireError as error:
            return Outcome(error.kind, error.text)

    def wait(self, name: str, stage: str, seconds: float = 20.0) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.wait(node=self.key(name), stage=stage, seconds=seconds)
        return found

    def state(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.state(node=self.key(name))
        return found

    def hold(self, name: str, phase: str, held: bool = True) -> None:
        self.lab.hold(node=self.key(name), phase=phase, held=held)

    def good(self, name: str) -> str:
        """The configuration that the recorded node of that name had: the last change of each is the host name."""
        return next(item for item in self.configs.names(self.talos) if self._is_good(item, name))

    def _is_good(self, item: str, name: str) -> bool:
        row = self.configs.rows[item]
        if name == "w1":
            return row.get("kind") == "worker"
        changed = [line for line in row.get("diff") or [] if line[:1] in "+-"]
        if name == "cp1":
            return changed == ["-    nope: 1"]
        return changed == ["-    nope: 1", "-hostname: cp1", f"+hostname: {name}"]

    def text(self, item: str, other_ca: bool = False) -> str:
        """A recorded configuration by its number, with this stage's secrets and addresses."""
        secrets = self.other if self.configs.other_secrets(item) else self.secrets
        text = self.configs.text(item, secrets, self.addresses, self.other if other_ca else None)
        if self.configs.other_secrets(item):
            text = text.replace("clusterName: demo", "clusterName: demo")
        return text

    def config(self, name: str) -> str:
        if name in ("cp1", "w1", "cp2", "x1", "y1", "z1"):
            try:
                return self.text(self.good(name))
            except StopIteration:
                pass
        base = self.text(self.good("w1" if name.startswith("w") else "cp1"))
        return base.replace(f"hostname: {'w1' if name.startswith('w') else 'cp1'}", f"hostname: {name}")

    def apply(self, name: str, text: str, credentials: str = "none", mode: int = 1, seconds: int | None = None) -> Outcome:
        request = message("machine.ApplyConfigurationRequest")(data=text.encode(), mode=mode)
        if seconds is not None:
            request.try_mode_timeout.seconds = seconds
        outcome = self.call(name, credentials, APPLY, request)
        if outcome.code != "OK":
            raise RuntimeError(f"{name}: {outcome.code} {outcome.details}")
        return outcome

    def must(self, name: str, method: str, request: Any = b"", credentials: str = "admin") -> Outcome:
        outcome = self.call(name, credentials, f"/machine.MachineService/{method}", request)
        if outcome.code != "OK":
            raise RuntimeError(f"{method} on {name}: {outcome.code} {outcome.details}")
        return outcome

    def booted(self, name: str) -> None:
        """A control plane that waits for its bootstrap."""
        self.add(name)
        self.apply(name, self.config(name))
        self.until(lambda: self.state(name)["boots"] == 2 and [item["reason"] for item in self.state(name)["unmet"]] == ["etcd not running"])

    def until(self, wanted: Callable[[], bool], seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while not wanted():
            if time.monotonic() > end:
                raise RuntimeError("the stage was not reached: " + repr([self.state(name)["stage"] for name in self._nodes]))
            time.sleep(0.01)

    def joined(self, name: str) -> None:
        """1.14's recorded nodes start etcd beside the install; the reboot that ends it has to come first, or a learner is left."""
        self.add(name)
        self.hold(name, "kubelet")
        self.apply(name, self.config(name))
        self.until(lambda: self.state(name)["boots"] == 2)
        self.hold(name, "kubelet", False)
        self.until(lambda: self.state(name)["boots"] == 2 and self.state(name)["stage"] == "running" and self.state(name)["ready"])

    def bootstrapped(self) -> None:
        self.must("cp1", "Bootstrap")
        self.wait("cp1", "ready")
        self.until(lambda: self.has_member("cp1"))

    def has_member(self, name: str) -> bool:
        request = message("cosi.resource.GetRequest")(namespace="etcd", type="EtcdMembers.etcd.talos.dev", id="local")
        return self.call(name, "admin", "/cosi.resource.State/Get", request).code == "OK"

    def member_id(self, name: str) -> int:
        """The id that etcd gave a node; of cp1 when no node of that name is a member."""
        etcd = self.state("cp1")["etcd"]
        return int(next(member["id"] for member in etcd if member["name"] == name), 16)

    def reset(self, name: str, graceful: bool = False, labels: tuple[str, ...] = ("STATE", "EPHEMERAL"), reboot: bool = True) -> None:
        request = message("machine.ResetRequest")(graceful=graceful, reboot=reboot)
        for label in labels:
            request.system_partitions_to_wipe.add(label=label, wipe=True)
        self.must(name, "Reset", request)
