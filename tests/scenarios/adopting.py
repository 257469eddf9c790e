# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that somebody made with talosctl, in the lab: what adoption finds. Its configurations come from Talos's own machinery."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.patch import apply_patches, load_patch
from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.documents import load
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._node.issue import credentials_from_bundle
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from tests.lab.control import Lab
from tests.lives.records import Folder, Records
from tests.machinery.random_rows import SECRETS, base
from tests.scenarios.playing import QUICK, machine

RUNNING = {"1.12": "v1.12.11", "1.13": "v1.13.9", "1.14": "v1.14.0-rc.1"}
NAME = "prod"


def configuration(contract: str, role: str, *patches: str) -> str:
    """As Talos's generator made it from the bundle of the vectors, with patches merged in."""
    config = load(base(contract, role), contract)
    return apply_patches(config, [load_patch(patch, contract) for patch in patches]).text() if patches else base(contract, role)


def named(hostname: str) -> str:
    return f"apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: {hostname}\n"


def talosconfig(endpoints: list[str], bundle: str = SECRETS, now: float | None = None) -> str:
    """As `talosctl gen config` leaves it beside the configurations."""
    found = credentials_from_bundle(bundle, now=SystemClock().now() if now is None else now)
    pem = {"ca": found.ca, "crt": found.certificate, "key": found.key}
    return yaml.safe_dump({"context": NAME, "contexts": {NAME: {
        "endpoints": endpoints, **{key: base64.b64encode(value.encode()).decode() for key, value in pem.items()}}}})


@dataclass
class Running:
    """Nodes by name, each with the configuration that it was given; the first is bootstrapped."""

    lab: Lab
    folder: Path
    network: str
    configs: Mapping[str, str]
    contract: str = "1.13"
    first: int = 1
    addresses: dict[str, str] = field(default_factory=dict)
    #: Where its records are to be; None is the folder `ichor` in its own.
    kept_in: Records | None = None

    def start(self, bootstrap: bool = True) -> Running:
        self.folder.mkdir(parents=True, exist_ok=True)
        for number, (name, text) in enumerate(self.configs.items(), self.first):
            self.lab.add(name=name, description=machine(number, self.network, f"5a1f0c{number:02x}", version=RUNNING[self.contract], installed=text))
            self.addresses[name] = f"{self.network}.{number}"
        self.path.write_text(talosconfig(list(self.addresses.values())), encoding="utf-8")
        if bootstrap:
            plane = next(name for name, text in self.configs.items() if "type: controlplane" in text)
            self.lab.wait(node=plane, stage="booting")
            asyncio.run(_bootstrap(self.addresses[plane]))
        for name in self.configs:
            self.lab.wait(node=name, stage="ready", seconds=60)
        return self

    @property
    def path(self) -> Path:
        return self.folder / "talosconfig"

    @property
    def records(self) -> Records:
        return self.kept_in or Folder(self.folder / "ichor")

    def options(self, *names: str, **more: Any) -> dict[str, Any]:
        """For talos_adopt; of all nodes unless some are named."""
        return {"cluster": NAME, "addresses": [self.addresses[name] for name in names or self.configs], "talosconfig": str(self.path),
                **self.records.options, "allow_loopback": True, "timing": dict(QUICK), **more}

    def record(self, name: str) -> str:
        """The name that the record of a node has."""
        number = list(self.configs).index(name) + self.first
        return f"{NAME}-5a1f0c{number:02x}"

    def status(self, record: str, kind: str = "machines") -> dict[str, Any]:
        return self.records.status(kind, record)

    def ready(self, name: str) -> str:
        """The reason of Ready of a node's record."""
        return next((str(entry["reason"]) for entry in self.status(self.record(name)).get("conditions", []) if entry["type"] == "Ready"), "")


async def _bootstrap(address: str) -> None:
    """A node that boots takes it a moment later."""
    end = time.monotonic() + 60
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
    try:
        async with nodes.authenticated(Endpoint(address, 50000), credentials_from_bundle(SECRETS, now=SystemClock().now())) as session:
            while True:
                try:
                    await session.bootstrap()
                    return
                except TalosError as error:
                    if error.reason != "BootstrapNotAvailable" or time.monotonic() > end:
                        raise
                await asyncio.sleep(0.05)
    finally:
        await nodes.close()
