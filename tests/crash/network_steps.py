# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of an adoption and of a network as boundaries: the module process is killed as soon as some of them are done."""

from __future__ import annotations

import functools
import os
import signal
from typing import Any


def install(told: dict[str, Any]) -> None:
    """`after`: how many steps this process lives for."""
    from ansible_collections.ichor.talos.plugins.module_utils._operations import adopt, network_plan

    left = [int(told["after"])]

    def done() -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    record, letting_go, network = adopt._write, adopt.release, network_plan.Writer.write

    @functools.wraps(record)
    def wrote(*arguments: Any) -> None:
        record(*arguments)
        done()

    @functools.wraps(letting_go)
    async def let_go(*arguments: Any) -> Any:
        found = await letting_go(*arguments)
        done()
        return found

    @functools.wraps(network)
    async def networked(*arguments: Any) -> None:
        await network(*arguments)
        done()

    adopt._write, adopt.release = wrote, let_go
    network_plan.Writer.write = networked  # type: ignore[method-assign]
