# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses of one name: each has its share of the time."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._node.dial import connect

SILENT, DEAF = "127.0.0.2", "127.0.0.3"


async def _connected(addresses: tuple[str, ...], port: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address that took the connection; those that swallow packets are waited for until their time is over."""
    loop = asyncio.get_running_loop()
    whole = loop.sock_connect

    async def sock_connect(sock: socket.socket, where: tuple[str, int]) -> None:
        if where[0] in (SILENT, DEAF):
            await asyncio.Event().wait()
        await whole(sock, where)

    monkeypatch.setattr(loop, "sock_connect", sock_connect)
    sock = await connect(Endpoint("cp.example", port), addresses, loop.time() + seconds)
    with sock:
        return str(sock.getpeername()[0])


@pytest.mark.parametrize("addresses", [(SILENT, "127.0.0.1"), (SILENT, DEAF, "127.0.0.1"), ("127.0.0.1", SILENT)])
def test_an_address_that_swallows_packets_leaves_time_for_the_next(addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert asyncio.run(_connected(addresses, server.getsockname()[1], 3.0, monkeypatch)) == "127.0.0.1"


def test_all_of_them_silent_is_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(_connected((SILENT, DEAF), 1, 0.1, monkeypatch))
