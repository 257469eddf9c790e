# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subject: identity, disks, links and version of many nodes in maintenance mode, through the product's transport."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes


async def read_all(addresses: list[str], port: int) -> int:
    nodes = TalosNodes(rules=(DialRules(allow_loopback=True),))
    limit = asyncio.Semaphore(64)

    async def one(address: str) -> int:
        async with limit, nodes.maintenance(Endpoint(address, port)) as session:
            facts = await session.facts()
            return bool(facts.identity.uuid and facts.talos_version)

    read = sum(await asyncio.gather(*(one(address) for address in addresses)))
    await nodes.close()
    return read


def main() -> None:
    plan = json.load(sys.stdin)
    began, cpu = time.perf_counter(), time.process_time()
    read = asyncio.run(read_all(plan["addresses"], plan["port"]))
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "nodes": read,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


main()
