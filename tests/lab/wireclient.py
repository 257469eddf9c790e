# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plain gRPC client for tests of the lab: Python's ssl and the `h2` library, nothing of the server's own code.

It shows everything: alerts, resets, GOAWAY, trailers-only answers, streams left open.
"""

from __future__ import annotations

import gzip
import re
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from tests.lab.certificates import Leaf
from tests.lab.status import NAMES


@dataclass
class Outcome:
    """How a call went. `code` is a status name, `OPEN`, `TLS`, `TCP` or `RST_STREAM n`."""

    code: str
    details: str = ""
    messages: list[bytes] = field(default_factory=list)
    trailers_only: bool = False
    http_status: str = "200"
    end: str | None = None
    goaway: bool = False
    seconds: float = 0.0


def context(leaf: Leaf | None = None, alpn: Sequence[str] = ("h2",), low: ssl.TLSVersion | None = None, high: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """A client context that verifies nothing."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if low is not None:
        made.minimum_version = low
    if high is not None:
        made.maximum_version = high
    if leaf is not None:
        certificate, key = leaf.pem()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            path.write_bytes(certificate + key)
            made.load_cert_chain(path)
    return made


class WireError(Exception):
    """The connection did not work; `kind` is TLS or TCP."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class WireClient:
    """One connection."""

    def __init__(self, address: str, port: int, tls: ssl.SSLContext, seconds: float = 5.0, server_name: str | None = None) -> None:
        self.seconds = seconds
        try:
            plain = socket.create_connection((address, port), timeout=seconds)
        except ConnectionRefusedError as error:
            raise WireError("TCP", "connection refused") from error
        except OSError as error:
            raise WireError("TCP", str(error)) from error
        try:
            self.socket = tls.wrap_socket(plain, server_hostname=server_name)
        except ssl.SSLError as error:
            plain.close()
            raise WireError("TLS", error.reason or str(error)) from error
        except OSError as error:
            plain.close()
            raise WireError("TCP", str(error)) from error
        self.certificate = self.socket.getpeercert(binary_form=True)
        settings = h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.h2 = h2.connection.H2Connection(settings)
        self.h2.initiate_connection()
        self.goaway = False
        self._partial = bytearray()
        self.early: list[h2.events.Event] = []
        self._flush()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def _flush(self) -> None:
        data = self.h2.data_to_send()
        if data:
            try:
                self.socket.sendall(data)
            except (ssl.SSLError, OSError):
                pass  # what the peer had to say comes with the next read

    def _events(self, wait: float) -> list[h2.events.Event]:
        self.socket.settimeout(max(wait, 0.001))
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            return []
        except ssl.SSLError as error:
            raise WireError("TLS", error.reason or str(error)) from error
        except OSError as error:
            raise WireError("TCP", str(error)) from error
        if not data:
            raise WireError("TCP", "closed by server")
        try:
            events = self.h2.receive_data(self._without_goaway(data))
        except h2.exceptions.ProtocolError as error:
            raise WireError("HTTP2", str(error)) from error
        self._flush()
        return events

    def _without_goaway(self, data: bytes) -> bytes:
        """Takes GOAWAY frames out: `h2` would end the connection, while a client of Talos goes on reading and may still call."""
        self._partial += data
        out = bytearray()
        while len(self._partial) >= 9:
            size = 9 + int.from_bytes(self._partial[:3], "big")
            if len(self._partial) < size:
                break
            if self._partial[3] == 7:
                self.goaway = True
            else:
                out += self._partial[:size]
            del self._partial[:size]
        return bytes(out)

    def unary(self, path: str, request: bytes = b"", **options: Any) -> Outcome:
        return self.call(path, [request], **options)

    def call(
        self, path: str, messages: Iterable[bytes], metadata: Sequence[tuple[str, str]] = (), deadline: float | None = None, compress: bool = False,
        half_close: bool = True, read_for: float = 5.0, quiet: float | None = None, headers: dict[str, str | None] | None = None,
    ) -> Outcome:
        """One call. A stream that is still open after `quiet` seconds without an event counts as OPEN."""
        start = time.monotonic()
        stream = self.h2.get_next_available_stream_id()
        base: dict[str, str | None] = {
            ":method": "POST", ":scheme": "https", ":path": path, ":authority": "lab", "content-type": "application/grpc", "te": "trailers",
        }
        if deadline is not None:
            base["grpc-timeout"] = f"{int(deadline * 1000000)}u" if deadline < 90 else f"{int(deadline)}S"
        if compress:
            base["grpc-encoding"] = "gzip"
        base.update(headers or {})
        listed = [(name, value) for name, value in base.items() if value is not None] + list(metadata)
        outcome = Outcome("OPEN")
        try:
            self.h2.send_headers(stream, listed)
            bodies = list(messages)
            for index, body in enumerate(bodies):
                payload = gzip.compress(body) if compress else body
                data = bytes((int(compress),)) + struct.pack(">I", len(payload)) + payload
                self._send(stream, data, half_close and index == len(bodies) - 1)
            if not bodies and half_close:
                self.h2.end_stream(stream)
            self._flush()
            self._read(stream, outcome, start, read_for if deadline is None else min(read_for, deadline + 2.0), quiet)
        except WireError as error:
            outcome.code, outcome.details = error.kind, error.text
        except h2.exceptions.ProtocolError as error:
            outcome.code, outcome.details = "HTTP2", str(error)
        outcome.goaway = self.goaway
        outcome.seconds = time.monotonic() - start
        return outcome

    def _send(self, stream: int, data: bytes, end: bool) -> None:
        offset = 0
        while offset < len(data) or not data:
            window = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if window <= 0:
                self._flush()
                for event in self._events(self.seconds):
                    self.early.append(event)
                if any(isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)) for event in self.early):
                    return
                continue
            part = data[offset:offset + window]
            offset += len(part)
            self.h2.send_data(stream, part, end_stream=end and offset >= len(data))
            self._flush()

    def _read(self, stream: int, outcome: Outcome, start: float, read_for: float, quiet: float | None) -> None:
        body = bytearray()
        trailers: dict[str, str] = {}
        seen_headers, last = False, time.monotonic()
        queue: list[h2.events.Event] = self.early
        self.early = []
        ended = False
        while not ended:
            now = time.monotonic()
            limit = start + read_for
            if quiet is not None and outcome.messages:
                limit = min(limit, last + quiet)
            if now >= limit and not queue:
                outcome.end = "open"
                break
            if not queue:
                queue = self._events(limit - now)
            for event in queue:
                last = time.monotonic()
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    got = {str(name): str(value) for name, value in event.headers}
                    trailers.update(got)
                    if isinstance(event, h2.events.ResponseReceived):
                        outcome.http_status = got.get(":status", "")
                        outcome.trailers_only = "grpc-status" in got
                    seen_headers = True
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                    self._flush()
                    while len(body) >= 5 and len(body) >= 5 + int.from_bytes(body[1:5], "big"):
                        size = int.from_bytes(body[1:5], "big")
                        outcome.messages.append(bytes(body[5:5 + size]))
                        del body[:5 + size]
                elif isinstance(event, h2.events.StreamReset):
                    outcome.end = f"RST_STREAM {int(event.error_code or 0)}"
                    ended = True
                elif isinstance(event, h2.events.StreamEnded):
                    ended = True
            queue = []
        if "grpc-status" in trailers:
            if outcome.end is None or ended:
                self._linger(stream, outcome)
            number = int(trailers["grpc-status"])
            outcome.code = NAMES[number] if number < len(NAMES) else str(number)
            outcome.details = unquote(trailers.get("grpc-message", ""))
            if outcome.end == "open":
                outcome.end = None
        elif outcome.end is not None and outcome.end.startswith("RST_STREAM"):
            outcome.code = outcome.end
        elif ended and seen_headers:
            outcome.code = f"HTTP {outcome.http_status}"

    def _linger(self, stream: int, outcome: Outcome) -> None:
        """A RST_STREAM may follow the end of a stream that the client has not ended."""
        if outcome.end is not None:
            return
        pending = self.h2.streams.get(stream) if hasattr(self.h2, "streams") else None
        if pending is None or pending.closed:
            return
        try:
            for event in self._events(0.2):
                if isinstance(event, h2.events.StreamReset) and event.stream_id == stream:
                    outcome.end = f"RST_STREAM {int(event.error_code or 0)}"
        except WireError:
            return


def alert_number(text: str) -> int | None:
    """The alert in the text of an OpenSSL error."""
    known = {
        "PROTOCOL_VERSION": 70, "CERTIFICATE_REQUIRED": 116, "UNKNOWN_CA": 48, "CERTIFICATE_EXPIRED": 45, "BAD_CERTIFICATE": 42, "HANDSHAKE_FAILURE": 40,
        "NO_APPLICATION_PROTOCOL": 120, "DECRYPT_ERROR": 51,
    }
    upper = re.sub(r"[^A-Z0-9]+", "_", text.upper())
    return next((number for name, number in known.items() if name in upper), None)
