# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that comes and goes: its power, or only the way to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.lab.faults import Fault

if TYPE_CHECKING:
    from tests.lab.node import Node

_LOST = "connect-hang"


def lose(node: Node) -> None:
    """No way leads to the node any more: connections break, new ones get no answer. The node and its etcd go on."""
    if not any(fault.kind == _LOST for fault in node.faults.active):
        node.faults.add(Fault(_LOST))
    if node.boot is not None and node.boot.endpoint is not None:
        for connection in list(node.boot.endpoint.connections):
            connection.abort()


def find(node: Node) -> None:
    """The way is there again."""
    node.faults.clear(_LOST)


class Flapping:
    """Nodes that flap, until each is told to stop."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, node: Node, what: str, away: float, there: float) -> None:
        """`what` is power or route; `away` and `there` are lab seconds."""
        if what not in ("power", "route"):
            raise ValueError("what is power or route")
        if node.name in self._tasks:
            raise ValueError(f"{node.name} flaps already")
        self._tasks[node.name] = asyncio.get_running_loop().create_task(self._flap(node, what, away, there))

    async def stop(self, node: Node) -> None:
        """It is there from now on."""
        task = self._tasks.pop(node.name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        find(node)
        node.power_on()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _flap(self, node: Node, what: str, away: float, there: float) -> None:
        while True:
            if what == "power":
                await node.power_off()
            else:
                lose(node)
            node.note("flap", there=False)
            await node.world.clock.sleep(away)
            if what == "power":
                node.power_on()
            else:
                find(node)
            node.note("flap", there=True)
            await node.world.clock.sleep(there)
