# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One TCP connection of a node: TLS, then HTTP/2, then gRPC calls.

It knows nothing of Talos: the node gives it an `Endpoint`, and a fault may change what it does at each point.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import struct
import zlib
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.lab import http2, status
from tests.lab.calllog import roles_text
from tests.lab.status import Refusal
from tests.lab.tls import HandshakeFailed, NotTls, TlsClosed, TlsSession

if TYPE_CHECKING:
    from tests.lab.endpoint import Endpoint

SILENCE_SECONDS = 120.0  # after TCP or TLS; once the preface is there a connection may be silent for ever
MAX_MESSAGE = 33554432
_TIMEOUT = re.compile(r"^(\d{1,8})([HMSmun])$")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_SHORTEST = 0.002  # a node needs longer than this for any call
_RESPONSE = http2.header_block([(":status", "200"), ("content-type", "application/grpc")])


class Call:
    """One gRPC call as a node sees it. `metadata` has lower-case names; `roles` are those of the certificate."""

    def __init__(self, connection: Connection, stream: int, path: str, metadata: list[tuple[str, str]]) -> None:
        self.connection = connection
        self.stream = stream
        self.path = path
        self.metadata = metadata
        self.roles = frozenset(connection.roles)
        self.peer = connection.peer
        self.encoding = next((value for name, value in metadata if name == "grpc-encoding"), "identity")
        self.sent = 0
        self.log_fields: dict[str, Any] = {}
        self._buffer = bytearray()
        self._messages: deque[bytes] = deque()
        self._ended = False
        self._problem: Refusal | None = None
        self._wake: asyncio.Event = asyncio.Event()

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.metadata if key == name]

    def feed(self, data: bytes, ended: bool) -> None:
        self._buffer += data
        while self._problem is None and len(self._buffer) >= 5:
            length = int.from_bytes(self._buffer[1:5], "big")
            if length > self.connection.endpoint.max_message:
                text = f"grpc: received message larger than max ({length} vs. {self.connection.endpoint.max_message})"
                self._problem = Refusal(status.RESOURCE_EXHAUSTED, text)
                break
            if len(self._buffer) < 5 + length:
                break
            payload = bytes(self._buffer[5:5 + length])
            compressed = self._buffer[0]
            del self._buffer[: 5 + length]
            if compressed:
                payload = self._inflate(payload)
            self._messages.append(payload)
        self._ended = self._ended or ended
        self._wake.set()

    def _inflate(self, payload: bytes) -> bytes:
        if self.encoding != "gzip":
            self._problem = Refusal(status.INTERNAL, "grpc: compressed flag set with identity or empty encoding")
            return b""
        try:
            return gzip.decompress(payload)
        except (OSError, EOFError, zlib.error) as error:
            self._problem = Refusal(status.INTERNAL, f"grpc: failed to decompress the received message: {error}")
            return b""

    async def receive(self) -> bytes | None:
        """The next message, or None when the peer has ended its side."""
        while True:
            if self._messages:
                return self._messages.popleft()
            if self._problem is not None:
                raise self._problem
            if self._ended:
                return None
            self._wake.clear()
            await self._wake.wait()

    async def receive_one(self) -> bytes:
        """The request of a call with one message."""
        message = await self.receive()
        if message is None:
            raise Refusal(status.UNKNOWN, "EOF")
        return message

    def send(self, message: bytes) -> None:
        """One response message."""
        self.connection.send_message(self, message)

    def send_all(self, messages: Sequence[bytes]) -> None:
        """Several response messages at once."""
        self.connection.send_messages(self, messages)

    async def flow(self) -> None:
        """Waits while much of the answer is still unsent."""
        while self.connection.backlog(self.stream) > 262144:
            await asyncio.sleep(0.01)


class Connection(asyncio.Protocol):
    """The protocol object of one connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.transport: Any = None
        self.peer = ""
        self.roles: tuple[str, ...] = ()
        self.tls: TlsSession | None = None
        self.http = http2.Http2Server()
        self.received = 0
        self.plain_received = 0
        self.calls = 0
        self.draining = False
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._open_calls: dict[int, Call] = {}
        self._deadlines: dict[int, asyncio.TimerHandle] = {}
        self._expired: set[int] = set()
        self._silence: asyncio.TimerHandle | None = None
        self._frozen = False
        #: Half open: the peer still has a connection of which this side knows nothing any more.
        self._gone = False
        self._drain_began = False
        self.dripping: bytearray | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if name else ""
        self.endpoint.connections.add(self)
        self.endpoint.log.add("connect", self.endpoint.name, peer=self.peer, address=self.endpoint.address)
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self.endpoint.silence_seconds, self.close)
        self._frozen = self.endpoint.faults.at_connect(self)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self._frozen:
            return
        try:
            self._receive(data)
        except NotTls:
            self.close()
        except HandshakeFailed as error:
            self._log_tls(str(error))
            self._flush()
            self.close()
        except TlsClosed:
            self.close()
        except http2.ConnectionError2 as error:
            if error.code is not None:
                self.http.goaway(error.code, b"")
                self._flush()
            self.close()

    def _receive(self, data: bytes) -> None:
        if self.tls is None:
            self.tls = TlsSession(self.endpoint.identity(), self.endpoint.now)
        fresh = not self.tls.established
        plain = self.tls.receive(data)
        if fresh and self.tls.established:
            self.roles = self.tls.roles
            self._log_tls(None)
            if self.endpoint.faults.after_handshake(self):
                self._frozen = True
                self._flush()
                return
            self.http.start()
            # Before anything of the client is read: what is no HTTP/2 may have come with the end of the handshake.
            self._flush()
        if plain:
            self.plain_received += len(plain)
            for event in self.http.receive(plain):
                self._event(event)
            if self.http.preface_seen and self._silence is not None:
                self._silence.cancel()
                self._silence = None
        self._flush()

    def _log_tls(self, error: str | None) -> None:
        certificate = self.tls.peer_certificate if self.tls is not None else None
        self.endpoint.log.add(
            "tls",
            self.endpoint.name,
            peer=self.peer,
            result="refused" if error is not None else "established",
            error=error,
            credentials=roles_text(self.roles) if certificate is not None else "none",
        )

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.endpoint.connections.discard(self)
        if self._silence is not None:
            self._silence.cancel()
        for task in list(self._tasks.values()):
            task.cancel()
        for timer in self._deadlines.values():
            timer.cancel()
        self._open_calls.clear()
        self.endpoint.log.add(
            "closed", self.endpoint.name, peer=self.peer, received=self.received, plaintext=self.plain_received, calls=self.calls
        )

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """A reset instead of an orderly end."""
        if self.transport is not None:
            bound = self.transport.get_extra_info("socket")
            if bound is not None and not self.transport.is_closing():
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

    def forget(self) -> None:
        """From now on nothing is read of it and nothing said on it, and no end of it is told."""
        self._frozen = self._gone = True
        if self._silence is not None:
            self._silence.cancel()
        if self.transport is not None:
            self.transport.pause_reading()

    def _flush(self) -> None:
        if self._gone or self.tls is None or self.transport is None or self.transport.is_closing():
            return
        if self.http.outgoing:
            data = bytes(self.http.outgoing)
            self.http.outgoing.clear()
            self.tls.send(data)
        data = self.tls.take()
        if data and not self.endpoint.faults.on_write(self, data):
            self.transport.write(data)

    def write_raw(self, data: bytes) -> None:
        """Bytes past TLS and HTTP/2, for faults."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _event(self, event: http2.Event) -> None:
        if isinstance(event, http2.Request):
            self._request(event)
        elif isinstance(event, http2.Data):
            call = self._open_calls.get(event.stream)
            if call is not None:
                call.feed(event.data, event.ended)
        elif isinstance(event, http2.PingAck):
            self._second_goaway()
        else:
            task = self._tasks.get(event.stream)
            if task is not None:
                task.cancel()

    def _request(self, event: http2.Request) -> None:
        self.calls += 1
        headers = dict(event.headers)
        path = headers.get(":path", "")
        content = headers.get("content-type", "")
        if content != "application/grpc" and not content.startswith(("application/grpc+", "application/grpc;")):
            self._early_abort(event, 415, status.INVALID_ARGUMENT, f'invalid gRPC request content-type "{content}"')
            return
        try:
            timeout = _timeout(headers.get("grpc-timeout"))
        except ValueError as error:
            self._early_abort(event, 400, status.INTERNAL, f"malformed grpc-timeout: {error}")
            return
        method = headers.get(":method", "")
        if method != "POST":
            self._early_abort(event, 405, status.INTERNAL, f'Received a HEADERS frame with :method "{method}" which should be POST')
            return
        encoding = headers.get("grpc-encoding", "identity")
        metadata = [(name, value) for name, value in event.headers if not name.startswith(":")]
        call = Call(self, event.stream, path, metadata)
        call.feed(b"", event.ended)
        self._open_calls[event.stream] = call
        if timeout is not None and timeout < _SHORTEST:
            self.endpoint.log.add("call", self.endpoint.name, peer=self.peer, rpc=path, expired=True)
            self._finish(call, status.DEADLINE_EXCEEDED, "context deadline exceeded")
            return
        if encoding not in ("identity", "gzip"):
            self._finish(call, status.UNIMPLEMENTED, f'grpc: Decompressor is not installed for grpc-encoding "{encoding}"')
            return
        loop = asyncio.get_running_loop()
        if timeout is not None:
            self._deadlines[event.stream] = loop.call_later(timeout, self._expire, event.stream)
        self._tasks[event.stream] = loop.create_task(self._run(call))

    def _early_abort(self, event: http2.Request, http_status: int, code: int, text: str) -> None:
        block = http2.header_block(
            [(":status", str(http_status)), ("content-type", "application/grpc"), ("grpc-status", str(code)), ("grpc-message", _escape(text))]
        )
        self.http.send_headers(event.stream, block, end=True)

    def _expire(self, stream: int) -> None:
        task = self._tasks.get(stream)
        if task is not None:
            self._expired.add(stream)
            task.cancel()

    async def _run(self, call: Call) -> None:
        code, text = status.OK, ""
        try:
            await self.endpoint.serve(call)
        except Refusal as refusal:
            code, text = refusal.code, refusal.text
        except asyncio.CancelledError:
            if call.stream not in self._expired:
                code, text = status.CANCELLED, "context canceled"
            else:
                code, text = status.DEADLINE_EXCEEDED, "context deadline exceeded"
        except Exception as error:  # a fault of the lab must not look like an answer of Talos
            code, text = status.INTERNAL, f"lab error: {type(error).__name__}: {error}"
            self.endpoint.log.add("lab-error", self.endpoint.name, rpc=call.path, error=f"{type(error).__name__}: {error}")
        finally:
            self._tasks.pop(call.stream, None)
            timer = self._deadlines.pop(call.stream, None)
            if timer is not None:
                timer.cancel()
            self._expired.discard(call.stream)
        self.endpoint.finished(call, code, text)
        if code == status.CANCELLED and not self.http.is_open(call.stream):
            self._open_calls.pop(call.stream, None)
            return
        self._finish(call, code, text)

    def send_message(self, call: Call, message: bytes) -> None:
        self.send_messages(call, (message,))

    def send_messages(self, call: Call, messages: Sequence[bytes]) -> None:
        if not messages or not self.http.is_open(call.stream):
            return
        if not call.sent:
            self.http.send_headers(call.stream, _RESPONSE)
        call.sent += len(messages)
        self.http.send_data(call.stream, b"".join(b"\x00" + struct.pack(">I", len(message)) + message for message in messages))
        self._flush()

    def send_bytes(self, call: Call, data: bytes) -> None:
        """Body bytes without a message of their own, for faults."""
        if not call.sent:
            self.http.send_headers(call.stream, _RESPONSE)
        call.sent += 1
        self.http.send_data(call.stream, data)
        self._flush()

    def backlog(self, stream: int) -> int:
        return self.http.pending(stream) + (self.transport.get_write_buffer_size() if self.transport is not None else 0)

    def _finish(self, call: Call, code: int, text: str) -> None:
        self._open_calls.pop(call.stream, None)
        trailers = [("grpc-status", str(code)), ("grpc-message", _escape(text))]
        if not call.sent:
            trailers = [(":status", "200"), ("content-type", "application/grpc"), *trailers]
        self.http.send_headers(call.stream, http2.header_block(trailers), end=True)
        self._flush()
        self._close_when_drained()

    def drain(self) -> None:
        """GOAWAY as grpc-go's GracefulStop sends it: twice, the second one when the peer has answered a ping; until then new calls
        are taken, and calls in flight go on."""
        if self.tls is None or not self.tls.established:
            self.close()
            return
        if self._drain_began:
            return
        self._drain_began = True
        self.http.goaway(http2.NO_ERROR, b"graceful_stop", last=0x7FFFFFFF)
        self.http.outgoing += http2.frame(http2.PING, 0, 0, b"\x01\x06\x01\x08\x00\x03\x03\x09")
        self._flush()

    def _second_goaway(self) -> None:
        if self._drain_began and not self.draining:
            self.draining = True
            self.http.goaway(http2.NO_ERROR, b"graceful_stop")
            self._flush()
            self._close_when_drained()

    def _close_when_drained(self) -> None:
        if self.draining and not self._tasks and not self.http.open_streams:
            self.close()


def _timeout(text: str | None) -> float | None:
    """Seconds of a grpc-timeout value; ValueError with grpc-go's text."""
    if text is None:
        return None
    if len(text) < 2:
        raise ValueError(f'transport: timeout string is too short: "{text}"')
    if text[-1] not in _UNITS:
        raise ValueError(f'transport: timeout unit is not recognized: "{text}"')
    found = _TIMEOUT.match(text)
    if found is None:
        raise ValueError(f'transport: timeout string is too long: "{text}"')
    return int(found.group(1)) * _UNITS[found.group(2)]


def _escape(text: str) -> str:
    """grpc-message: printable ASCII but for the percent sign, all else percent-encoded UTF-8."""
    return "".join(chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}" for byte in text.encode("utf-8"))
