# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking a cordon of this product back, whichever run made it (design section 13)."""

from __future__ import annotations

from .._model.errors import TalosError
from .._model.ports import Ports
from .in_thread import in_thread


async def take_back(ports: Ports, cluster: str, node: str) -> str:
    """Uncordon the Node where this product cordoned it; why it could not, or ''. A Node that is gone needs nothing."""
    workloads = ports.workloads
    if workloads is None:
        return "no Kubernetes can be asked from here"
    port = workloads

    def call() -> None:
        for found in port.nodes(cluster):
            if found.name == node and found.cordoned_at:
                port.uncordon(cluster, found)

    try:
        await in_thread(call)
    except TalosError as error:
        return "" if error.reason == "RecordChanged" else error.message.rstrip(".")
    return ""
