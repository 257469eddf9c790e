# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gRPC over a TLS connection that is already open: grpcio speaks plain HTTP/2 to a Unix socket, and we carry the bytes.

grpcio's own TLS refuses the Ed25519 certificates of Talos (design section 5). The socket is in a private folder (0700), takes
one connection, and is gone, with its folder, as soon as grpcio has connected; a channel whose connection is lost
cannot connect anew, so a session never changes its peer behind our back.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from typing import Any

from .tls import Receiver, TlsConnection

# Read by grpcio when it is imported: no log lines of the C core among ours, and no hooks into fork.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

try:
    import grpc
    import grpc.aio
except ImportError:
    grpc = None  # type: ignore[assignment,unused-ignore]

__all__ = ["Bridge", "channel_options", "grpc"]

#: In memory, where there is such a folder: on a disk, making and removing a folder for each session can cost milliseconds.
MEMORY = "/dev/shm"
#: A path of a Unix socket has at most 107 bytes; where the temporary folder's is long, /tmp is taken.
_PATH_ROOM = 70


class _GrpcSide(asyncio.Protocol, Receiver):
    """The accepted connection of grpcio."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._bridge.connected(self)

    def data_received(self, data: bytes) -> None:
        self._bridge.upstream.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._bridge.upstream.close()
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        self._bridge.upstream.pause(True)

    def resume_writing(self) -> None:
        self._bridge.upstream.pause(False)

    def from_node(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def node_paused(self, paused: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def node_gone(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close without sending what is still buffered."""
        if self._transport is not None:
            self._transport.abort()


class Bridge:
    """One gRPC channel over one TLS connection. `open` it, use `channel`, `close` it."""

    def __init__(self, upstream: TlsConnection) -> None:
        self.upstream = upstream
        self.channel: Any = None
        self._folder = ""
        self._server: asyncio.AbstractServer | None = None
        self._side: _GrpcSide | None = None

    async def open(self, answer_limit: int) -> None:
        """Make the channel; it connects at the first call. No message of more than `answer_limit` bytes is read."""
        self._folder = _private_folder()
        path = os.path.join(self._folder, "s")
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(lambda: _GrpcSide(self), path, backlog=1)
            self.channel = grpc.aio.insecure_channel(f"unix:{path}", options=channel_options(str(self.upstream.node), answer_limit))
        except BaseException:
            self._remove_socket()
            raise

    def connected(self, side: _GrpcSide) -> None:
        """grpcio has connected: the first connection is the only one."""
        if self._side is not None:
            side.abort()
            return
        self._side = side
        self._remove_socket()
        self.upstream.attach(side)

    async def close(self) -> None:
        """Close all of it; returns when no socket is left."""
        self._remove_socket()
        self.upstream.close()
        if self._side is not None:
            self._side.abort()
        if self.channel is not None:
            await self.channel.close(None)
        if self._side is not None:
            await self._side.closed
        await self.upstream.closed

    def _remove_socket(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""


def _private_folder() -> str:
    """A new folder of mode 0700."""
    if os.path.isdir(MEMORY):
        try:
            return tempfile.mkdtemp(prefix="ichor-", dir=MEMORY)
        except OSError:
            pass  # not ours to write to, or full
    root = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="ichor-", dir=root if len(root) <= _PATH_ROOM else "/tmp")


def channel_options(authority: str, answer_limit: int) -> list[tuple[str, Any]]:
    """Options of a channel: one connection, no retries, no compression (a small message cannot grow), capped answers."""
    return [
        ("grpc.default_authority", authority),
        ("grpc.max_receive_message_length", answer_limit),
        ("grpc.max_metadata_size", 64 * 1024),
        ("grpc.absolute_max_metadata_size", 128 * 1024),
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.client_idle_timeout_ms", 2**31 - 1),
        ("grpc.service_config_disable_resolution", 1),
    ]
