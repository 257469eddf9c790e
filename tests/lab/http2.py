# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server side of HTTP/2, without I/O: bytes in, events out.

Only what a gRPC server needs, with the settings and the reactions of grpc-go as real nodes showed them. Frames are built by
hand, so that faults can be as rude as they have to be; header blocks are decoded with `hpack` and encoded as literals.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from hpack import Decoder, HPACKError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY, ACK = 0x1, 0x4, 0x8, 0x20, 0x1
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR = 0, 1, 2, 3, 6
REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 7, 8, 9, 11
MAX_FRAME_SIZE = 16384
STREAM_WINDOW = 2097120
CONNECTION_WINDOW = 1048560
_DEFAULT_WINDOW = 65535


class ConnectionError2(Exception):
    """The peer broke the protocol: the connection is closed (with a GOAWAY when `code` is set)."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"HTTP/2 error {code}")
        self.code = code


@dataclass(frozen=True)
class Request:
    """A new stream."""

    stream: int
    headers: list[tuple[str, str]]
    ended: bool


@dataclass(frozen=True)
class Data:
    """Bytes of a stream's body."""

    stream: int
    data: bytes
    ended: bool


@dataclass(frozen=True)
class Reset:
    """The peer gave a stream up."""

    stream: int
    code: int


@dataclass(frozen=True)
class PingAck:
    """The peer answered a ping."""


Event = Request | Data | Reset | PingAck


@dataclass
class _Outgoing:
    """A stream's side towards the peer: window and what waits for it."""

    window: int
    queue: deque[tuple[bytes, bool, bool]] = field(default_factory=deque)  # payload, is a header block, ends the stream


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header_block(headers: Iterable[tuple[str, str]]) -> bytes:
    """A block of literals without indexing, which needs no state."""
    block = bytearray()
    for name, value in headers:
        if name == ":status" and value == "200":
            block.append(0x88)
            continue
        block += b"\x00" + _string(name.encode()) + _string(value.encode("utf-8", "surrogateescape"))
    return bytes(block)


def _string(value: bytes) -> bytes:
    if len(value) < 127:
        return bytes((len(value),)) + value
    rest, size = len(value) - 127, bytearray(b"\x7f")
    while rest >= 128:
        size.append(rest % 128 + 128)
        rest //= 128
    size.append(rest)
    return bytes(size) + value


class Http2Server:
    """One connection. `outgoing` collects the bytes to send."""

    def __init__(self) -> None:
        self.outgoing = bytearray()
        self.preface_seen = False
        self._in = bytearray()
        self._decoder = Decoder()
        self._streams: dict[int, _Outgoing] = {}
        self._half_closed: set[int] = set()  # streams that the peer has ended
        self._window = _DEFAULT_WINDOW
        self._peer_stream_window = _DEFAULT_WINDOW
        self._received = 0
        self._stream_received: dict[int, int] = {}
        self._last = 0
        self._block: tuple[int, int, bytearray] | None = None

    def start(self) -> None:
        """The server's settings go out first, without waiting for the client's preface."""
        settings = struct.pack(">HIHI", 5, MAX_FRAME_SIZE, 4, STREAM_WINDOW)
        self.outgoing += frame(SETTINGS, 0, 0, settings)
        self.outgoing += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", CONNECTION_WINDOW - _DEFAULT_WINDOW))

    def receive(self, data: bytes) -> list[Event]:
        self._in += data
        if not self.preface_seen:
            size = min(len(self._in), len(PREFACE))
            if self._in[:size] != PREFACE[:size]:
                raise ConnectionError2(None)
            if size < len(PREFACE):
                return []
            del self._in[: len(PREFACE)]
            self.preface_seen = True
        events: list[Event] = []
        while len(self._in) >= 9:
            length = int.from_bytes(self._in[:3], "big")
            if length > MAX_FRAME_SIZE:
                raise ConnectionError2(FRAME_SIZE_ERROR)
            if len(self._in) < 9 + length:
                break
            kind, flags = self._in[3], self._in[4]
            stream = int.from_bytes(self._in[5:9], "big") & 0x7FFFFFFF
            payload = bytes(self._in[9:9 + length])
            del self._in[: 9 + length]
            self._frame(kind, flags, stream, payload, events)
        return events

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes, events: list[Event]) -> None:
        if self._block is not None and kind != CONTINUATION:
            raise ConnectionError2(PROTOCOL_ERROR)
        if kind == HEADERS:
            body = _unpad(payload, flags)
            self._block = (stream, flags, bytearray(body[5:] if flags & WITH_PRIORITY else body))
            self._headers_done(flags, events)
        elif kind == CONTINUATION:
            if self._block is None or self._block[0] != stream:
                raise ConnectionError2(PROTOCOL_ERROR)
            self._block[2].extend(payload)
            self._headers_done(flags, events)
        elif kind == DATA:
            self._data(stream, flags, payload, events)
        elif kind == SETTINGS:
            if not flags & ACK:
                self._settings(payload)
                self.outgoing += frame(SETTINGS, ACK, 0)
        elif kind == PING:
            if flags & ACK:
                events.append(PingAck())
            else:
                self.outgoing += frame(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            self._window_update(stream, int.from_bytes(payload, "big") & 0x7FFFFFFF)
        elif kind == RST_STREAM:
            self._streams.pop(stream, None)
            self._half_closed.discard(stream)
            events.append(Reset(stream, int.from_bytes(payload, "big")))
        elif kind == PUSH_PROMISE:
            raise ConnectionError2(PROTOCOL_ERROR)

    def _headers_done(self, flags: int, events: list[Event]) -> None:
        if not flags & END_HEADERS or self._block is None:
            return
        stream, first_flags, block = self._block
        self._block = None
        try:
            decoded = self._decoder.decode(bytes(block), raw=True)
        except HPACKError as error:
            raise ConnectionError2(COMPRESSION_ERROR) from error
        headers = [(bytes(name).decode("utf-8", "surrogateescape"), bytes(value).decode("utf-8", "surrogateescape")) for name, value in decoded]
        if stream % 2 == 0 or stream <= self._last:
            if stream in self._streams and first_flags & END_STREAM:  # trailers of the client
                self._half_closed.add(stream)
                events.append(Data(stream, b"", True))
                return
            raise ConnectionError2(PROTOCOL_ERROR)
        self._last = stream
        self._streams[stream] = _Outgoing(self._peer_stream_window)
        if any(name != name.lower() for name, unused in headers):
            self.reset(stream, PROTOCOL_ERROR)
            return
        ended = bool(first_flags & END_STREAM)
        if ended:
            self._half_closed.add(stream)
        events.append(Request(stream, headers, ended))

    def _data(self, stream: int, flags: int, payload: bytes, events: list[Event]) -> None:
        size = len(payload)
        self._received += size
        if self._received >= CONNECTION_WINDOW // 4:
            self.outgoing += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._received))
            self._received = 0
        if stream not in self._streams or stream in self._half_closed:
            return
        ended = bool(flags & END_STREAM)
        if ended:
            self._half_closed.add(stream)
            self._stream_received.pop(stream, None)
        elif size:
            total = self._stream_received.get(stream, 0) + size
            if total >= STREAM_WINDOW // 4:
                self.outgoing += frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", total))
                total = 0
            self._stream_received[stream] = total
        events.append(Data(stream, _unpad(payload, flags), ended))

    def _settings(self, payload: bytes) -> None:
        for offset in range(0, len(payload) - 5, 6):
            identifier, value = struct.unpack_from(">HI", payload, offset)
            if identifier == 4:
                change = value - self._peer_stream_window
                self._peer_stream_window = value
                for number, out in list(self._streams.items()):
                    out.window += change
                    self._pump(number)

    def _window_update(self, stream: int, increment: int) -> None:
        if stream == 0:
            self._window += increment
            for number in list(self._streams):
                self._pump(number)
        elif stream in self._streams:
            self._streams[stream].window += increment
            self._pump(stream)

    def is_open(self, stream: int) -> bool:
        return stream in self._streams

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def send_headers(self, stream: int, block: bytes, end: bool = False) -> None:
        self._queue(stream, block, True, end)

    def send_data(self, stream: int, data: bytes, end: bool = False) -> None:
        self._queue(stream, data, False, end)

    def pending(self, stream: int) -> int:
        """Bytes of a stream that wait for the peer's window."""
        out = self._streams.get(stream)
        return sum(len(payload) for payload, unused, unused2 in out.queue) if out is not None else 0

    def _queue(self, stream: int, payload: bytes, headers: bool, end: bool) -> None:
        out = self._streams.get(stream)
        if out is not None:
            out.queue.append((payload, headers, end))
            self._pump(stream)

    def _pump(self, stream: int) -> None:
        out = self._streams.get(stream)
        while out is not None and out.queue:
            payload, headers, end = out.queue[0]
            if headers:
                self.outgoing += frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, payload)
            else:
                size = min(len(payload), MAX_FRAME_SIZE, self._window, out.window)
                if size <= 0 and payload:
                    return
                last = size == len(payload)
                self.outgoing += frame(DATA, END_STREAM if end and last else 0, stream, payload[:size])
                self._window -= size
                out.window -= size
                if not last:
                    out.queue[0] = (payload[size:], headers, end)
                    continue
            out.queue.popleft()
            if end:
                self._finished(stream)
                return

    def _finished(self, stream: int) -> None:
        """The server has ended the stream; a peer that has not is told to stop, as grpc-go does."""
        del self._streams[stream]
        self._stream_received.pop(stream, None)
        if stream in self._half_closed:
            self._half_closed.discard(stream)
        else:
            self.outgoing += frame(RST_STREAM, 0, stream, struct.pack(">I", NO_ERROR))

    def reset(self, stream: int, code: int) -> None:
        self._streams.pop(stream, None)
        self._half_closed.discard(stream)
        self._stream_received.pop(stream, None)
        self.outgoing += frame(RST_STREAM, 0, stream, struct.pack(">I", code))

    def goaway(self, code: int, text: bytes, last: int | None = None) -> None:
        self.outgoing += frame(GOAWAY, 0, 0, struct.pack(">II", self._last if last is None else last, code) + text)


def _unpad(payload: bytes, flags: int) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionError2(PROTOCOL_ERROR)
    return payload[1:len(payload) - payload[0]]
