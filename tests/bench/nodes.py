# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several figures need: emulated nodes at addresses, the bodies of calls, a module as a process of its own."""

from __future__ import annotations

import base64
import json

from ansible_collections.ichor.talos.plugins.module_utils._node import cosi
from ansible_collections.ichor.talos.plugins.module_utils._node.messages import method
from tests.lab.control import Lab

from .measure import run

MODULES = "ansible_collections.ichor.talos.plugins.modules."


def get(kind: cosi.Kind, name: str = "") -> tuple[str, str]:
    """Path and body of the call that reads one resource."""
    request = method("cosi.resource.State", "Get").request(namespace=kind.namespace, type=kind.type, id=name or kind.id)
    return "/cosi.resource.State/Get", base64.b64encode(request.SerializeToString()).decode()


def listing(kind: cosi.Kind) -> tuple[str, str]:
    """Path and body of the call that reads all resources of a kind."""
    request = method("cosi.resource.State", "List").request(namespace=kind.namespace, type=kind.type)
    return "/cosi.resource.State/List", base64.b64encode(request.SerializeToString()).decode()


def calls() -> list[tuple[str, str]]:
    """The calls that read identity, disks, links, version and the rest of a node's facts."""
    single = (cosi.SYSTEM_INFORMATION, cosi.MACHINE_STATUS, cosi.UNATTENDED_INSTALL, cosi.VERSION, cosi.SECURITY_STATE, cosi.HOSTNAME)
    return [*map(get, single), *map(listing, (cosi.LINKS, cosi.DISKS, cosi.DISCOVERED_VOLUMES))]


def calls_of_a_pass() -> list[tuple[str, str]]:
    """The calls of a look at a converged machine: identity, stage, what it runs and what it keeps (design section 11)."""
    return [*map(get, (cosi.SYSTEM_INFORMATION, cosi.MACHINE_STATUS, cosi.UNATTENDED_INSTALL, cosi.MACHINE_CONFIG)),
            get(cosi.MACHINE_CONFIG, "persistent"), listing(cosi.LINKS)]


def addresses_of(count: int, third: int) -> list[str]:
    return [f"127.0.{third + number // 250}.{1 + number % 250}" for number in range(count)]


def lab_of(addresses: list[str]) -> Lab:
    return Lab.start({"nodes": {f"n{number}": {"address": address} for number, address in enumerate(addresses)}})


def module(name: str, **arguments: object) -> tuple[dict[str, object], float]:
    """Result and CPU seconds of one module process."""
    told = run("run_module.py", MODULES + name, stdin=json.dumps(arguments))
    return told, float(told["process_cpu"])
