# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subject: the product's scan over a network whose ports are closed, with the limits off."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
import time

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes


async def scan(targets: list[Endpoint], rate: float, unresolved: int, timeout: float) -> dict[str, int]:
    kinds: dict[str, int] = {}
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
    async for found in nodes.scan(targets, rate=rate, unresolved=unresolved, timeout=timeout):
        kinds[found.kind] = kinds.get(found.kind, 0) + 1
    await nodes.close()
    return kinds


def main() -> None:
    targets = [Endpoint(str(address), int(sys.argv[2])) for address in ipaddress.ip_network(sys.argv[1]).hosts()]
    limited = len(sys.argv) > 3
    began, cpu = time.perf_counter(), time.process_time()
    kinds = asyncio.run(scan(targets, 1000.0 if limited else 0.0, 255 if limited else 0, 2.0))
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "kinds": kinds}))


main()
