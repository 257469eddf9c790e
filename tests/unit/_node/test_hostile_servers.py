# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers behind a good certificate that are no node: every one costs at most its deadline and has its reason."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading

import h2.config
import h2.connection
import h2.events
import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from tests.unit._node.fake_node import FakeNode

SETTINGS, PING, GOAWAY = 4, 6, 7


def frame(kind, payload=b"", flags=0, stream=0):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def server(talk):
    """The end of a test cuts the connection in the middle of whatever is said."""
    async def guarded(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.transport.abort()
    return guarded


def web(status, headers=()):
    """A web server that speaks HTTP/2."""
    async def talk(reader, writer):
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    connection.send_headers(event.stream_id, [(":status", status), ("content-type", "text/html"), *headers])
                    connection.send_data(event.stream_id, b"<html>", end_stream=True)
            writer.write(connection.data_to_send())
    return server(talk)


def reset(code):
    """Answers each call with RST_STREAM."""
    async def talk(reader, writer):
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    connection.reset_stream(event.stream_id, code)
            writer.write(connection.data_to_send())
    return server(talk)


@server
async def silent_after_settings(reader, writer):
    writer.write(frame(SETTINGS))
    await asyncio.Event().wait()


@server
async def drips(reader, writer):
    for byte in frame(SETTINGS, bytes(6)):
        writer.write(bytes((byte,)))
        await asyncio.sleep(0.1)


@server
async def garbage_after_settings(reader, writer):
    writer.write(frame(SETTINGS) + b"\xff" * 4096)
    await reader.read()


@server
async def garbage_first(reader, writer):
    writer.write(b"220 mail.example ESMTP\r\n")
    await reader.read()


@server
async def goaway_first(reader, writer):
    writer.write(frame(GOAWAY, bytes(8)))
    await reader.read()


@server
async def goaway_after_settings(reader, writer):
    writer.write(frame(SETTINGS) + frame(GOAWAY, bytes(8)))
    await reader.read()


@server
async def closes_after_settings(reader, writer):
    writer.write(frame(SETTINGS))
    await writer.drain()


@server
async def floods_with_pings(reader, writer):
    writer.write(frame(SETTINGS))
    while True:
        writer.write(frame(PING, bytes(8)) * 100)
        await writer.drain()
        await asyncio.sleep(0)


@server
async def closes_at_once(reader, writer):
    return None


@pytest.mark.parametrize(("raw", "reasons"), [
    (web("404"), {"NotTalos"}),
    (web("200"), {"NotTalos"}),
    (web("502", [("grpc-status", "0")]), {"NotTalos", "CallFailed", "Unimplemented", "NodeRefused"}),
    (reset(8), {"TimedOut", "ConnectionLost"}),
    (reset(2), {"CallFailed"}),
    (silent_after_settings, {"TimedOut"}),
    (drips, {"TimedOut"}),
    (garbage_after_settings, {"ConnectionLost", "CallFailed"}),
    (garbage_first, {"NotTalos"}),
    (goaway_first, {"NotTalos"}),
    (goaway_after_settings, {"ConnectionLost", "CallFailed"}),
    (closes_after_settings, {"ConnectionLost"}),
    (floods_with_pings, {"TimedOut", "ConnectionLost", "CallFailed"}),
    (closes_at_once, {"ConnectionLost"}),
], ids=["404", "200", "502", "cancelled", "internal", "silent", "drip", "garbage", "smtp", "goaway first", "goaway", "closes", "pings", "closes at once"])
def test_each_has_its_reason_within_its_deadline(maintenance_leaf, capfd, raw, reasons):
    async def run():
        async with FakeNode(*maintenance_leaf, raw=raw) as node:
            product = TalosNodes(rules=(DialRules(allow_loopback=True),), timing=Timing(call=0.5))
            loop = asyncio.get_running_loop()
            begun = loop.time()
            with pytest.raises(TalosError) as raised:
                async with product.maintenance(Endpoint("127.0.0.1", node.port)) as session:
                    await session.services()
            assert loop.time() - begun < 5
            return raised.value
    error = asyncio.run(run())
    assert error.reason in reasons
    assert error.message and error.hint
    assert "Traceback" not in "".join(capfd.readouterr())
    assert not [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
