# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The emulated machines of the demonstration, and the configurations that a person would bring for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab.configs import ClusterSecrets

#: An install then takes three seconds, long enough to be seen.
SPEED = 1.0
SECOND_WORKER = "worker-2"


def world() -> dict[str, Any]:
    """Three machines that have just booted into maintenance mode."""
    return {"nodes": {
        "cp-1": _machine(1, "5a1f0c3e-0d2b-4c61-9a57-3cecef000001", {"name": "sda", "model": "ACME SSD 512"}),
        "worker-1": _machine(2, "7be2944d-51c8-4f0e-8d39-3cecef000002", {"name": "nvme0n1", "model": "ACME NVMe 1000"}),
        SECOND_WORKER: _machine(3, "c09d61aa-77f3-4b14-b2c5-3cecef000003", {"name": "sda", "model": "ACME SSD 512"}),
    }}


def _machine(number: int, uuid: str, disk: dict[str, Any]) -> dict[str, Any]:
    link = {"name": "enp1s0", "mac": f"3c:ec:ef:00:00:{number:02x}"}
    return {"address": f"127.60.0.{number}", "machine": {"uuid": uuid, "serial": f"ACME-{1000 + number}", "links": [link], "disks": [disk]}}


def write_configurations(project: Path) -> None:
    """What `talosctl gen config` would give: a configuration a machine, and a talosconfig."""
    secrets = ClusterSecrets(name="demo", endpoint="https://192.0.2.10:6443")
    folder = project / "configs"
    folder.mkdir(mode=0o700)
    for kind, name, disk in (("controlplane", "cp-1", "/dev/sda"), ("worker", "worker-1", "/dev/nvme0n1"), ("worker", SECOND_WORKER, "/dev/sda")):
        _private(folder / f"{name}.yaml", secrets.config(kind, name, disk))
    _private(project / "talosconfig", secrets.talosconfig(["127.60.0.1"]))


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
