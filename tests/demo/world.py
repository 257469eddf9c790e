# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The emulated machines of the demonstration."""

from __future__ import annotations

from typing import Any

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
