# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster in the lab that somebody else made: with secrets of its own, from disks on which Talos is installed already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.lab.wireclient import WireClient, context
from tests.scenarios.playing import machine, wait_for

BOOTSTRAP = "/machine.MachineService/Bootstrap"


@dataclass
class Foreign:
    """Control planes <name>-cp-1 … and workers <name>-w-1 … at <network>.<first> and on. `boards` adds to a node's machine."""

    lab: Lab
    name: str
    network: str
    planes: int = 3
    workers: int = 1
    first: int = 1
    version: str = "v1.13.9"
    boards: dict[str, dict[str, Any]] = field(default_factory=dict)
    more: dict[str, dict[str, Any]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.secrets = ClusterSecrets(name=self.name, endpoint=f"https://{self.network}.{self.first}:6443")

    def create(self, bootstrap: bool = True) -> Foreign:
        hosts = [f"{self.name}-{kind}-{number}" for kind, count in (("cp", self.planes), ("w", self.workers)) for number in range(1, count + 1)]
        for number, host in enumerate(hosts, self.first):
            self.numbers[host] = number
            self.add(host)
        if bootstrap:
            self.bootstrap()
        return self

    def add(self, host: str) -> None:
        """The machine with Talos on its disk, configured for this cluster. A worker opens its API only beside a control plane."""
        number = self.numbers[host]
        text = self.secrets.config("controlplane" if "-cp-" in host else "worker", host, version=self.version)
        description = machine(number, self.network, f"{0xf0000000 + number:08x}", version=self.version, installed=text, **self.more.get(host, {}))
        description["machine"].update(self.boards.get(host, {}))
        self.lab.add(name=host, description=description)

    def bootstrap(self) -> None:
        first = f"{self.name}-cp-1"
        wait_for(lambda: [item["reason"] for item in self.lab.state(node=first)["unmet"]] == ["etcd not running"], "etcd to wait for its bootstrap", 60)
        with WireClient(self.address(first), 50000, context(self.secrets.client())) as client:
            assert client.unary(BOOTSTRAP, b"").code == "OK"
        for host in self.numbers:
            self.lab.wait(node=host, stage="ready", seconds=90)
        wait_for(lambda: len(self.members()) == self.planes and all(self.members().values()), "etcd with all its voters", 90)

    def address(self, host: str) -> str:
        return f"{self.network}.{self.numbers[host]}"

    def uuid(self, host: str) -> str:
        number = self.numbers[host]
        return str(machine(number, self.network, f"{0xf0000000 + number:08x}")["machine"]["uuid"])

    def talosconfig(self, folder: Path, *roles: str) -> str:
        path = folder / f"{self.name}{'-'.join(roles)}.talosconfig"
        path.touch(mode=0o600)
        path.write_text(self.secrets.talosconfig([], *roles), encoding="utf-8")
        return str(path)

    def members(self, but: Sequence[str] = ()) -> dict[str, bool]:
        """etcd's members by name: whether each is a voter that lives."""
        planes = [host for host in self.numbers if "-cp-" in host and host not in but]
        found = next((state["etcd"] for host in planes if (state := self.lab.state(node=host)).get("etcd")), [])
        return {member["name"]: member["alive"] and not member["learner"] for member in found}

    def end(self) -> None:
        for host in self.numbers:
            self.lab.remove(node=host)
