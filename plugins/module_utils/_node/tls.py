# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One TLS connection to a node, by OpenSSL inside the process (design section 5).

OpenSSL works on memory buffers, so that the very moment at which the handshake is complete is ours: a certificate that is
not the pinned one ends the connection before our last handshake message is sent, let alone a byte of HTTP/2.

Talos speaks first: a node that accepts the connection sends HTTP/2 SETTINGS, one that wants another certificate
sends an alert. `greeting` waits for that before anything is sent, because an alert that crosses with our first bytes is
often lost in a connection reset.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from .._model.errors import TalosError
from .._model.endpoint import Certificate, Endpoint
from .certificates import read_certificate
from .failures import failed, tls_reason

#: Bytes that a connection may receive before it is given up (answers are capped apart); of a stream, between two answers that were taken.
RECEIVE_LIMIT = 128 * 1024 * 1024
_FRAME_HEADER = 9
_SETTINGS = 4
_CHUNK = 256 * 1024


class Receiver:
    """Who gets what the node sends after the greeting."""

    def from_node(self, data: bytes) -> None:
        """Decrypted bytes."""

    def node_paused(self, paused: bool) -> None:
        """The node takes no more for now, or takes more again."""

    def node_gone(self) -> None:
        """No more bytes will come."""


class TlsConnection(asyncio.Protocol):
    """The client's side of one connection. Use it inside one event loop; `error` says why it ended."""

    def __init__(self, node: Endpoint, context: ssl.SSLContext, accept: Callable[[Certificate], None]) -> None:
        loop = asyncio.get_running_loop()
        self.node = node
        self.certificate: Certificate | None = None
        self.alpn = ""
        self.error: TalosError | None = None
        self.closed: asyncio.Future[None] = loop.create_future()
        self._accept = accept
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._transport: asyncio.Transport | None = None
        self._handshaken: asyncio.Future[None] = loop.create_future()
        self._greeted: asyncio.Future[None] = loop.create_future()
        self._early = bytearray()
        self._received = 0
        self._receiver: Receiver | None = None

    async def handshake(self) -> Certificate:
        """Wait for the end of the handshake; raises what ended the connection instead."""
        await self._wait(self._handshaken)
        if self.certificate is None:
            raise failed("NotTalos", self.node)
        return self.certificate

    async def greeting(self) -> None:
        """Wait for the node's HTTP/2 SETTINGS; raises `NotTalos`, or the reason of the alert that came instead."""
        await self._wait(self._greeted)
        if self._early[3] != _SETTINGS or any(self._early[5:_FRAME_HEADER]):
            self.fail(failed("NotTalos", self.node))
            raise failed("NotTalos", self.node)

    def attach(self, receiver: Receiver) -> None:
        """Hand over to the one who speaks HTTP/2; what came so far is delivered at once."""
        self._receiver = receiver
        early, self._early = bytes(self._early), bytearray()
        if early:
            receiver.from_node(early)
        if self.gone:
            receiver.node_gone()

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        if self.gone:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self.fail(failed(tls_reason(error), self.node, detail=str(error)))
            return
        self._flush()

    def pause(self, paused: bool) -> None:
        """Stop or resume reading from the node."""
        if self._transport is not None and not self.gone:
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def taken(self) -> None:
        """What came so far was wanted, however much it is: a snapshot of etcd is gigabytes. The bound on what is received counts anew."""
        self._received = 0

    @property
    def gone(self) -> bool:
        return self.error is not None or self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Say goodbye and close at once; nothing waits for the node."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._handshaken.done() and self.error is None:
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # the node's own goodbye is not waited for
            self._flush()
        self._transport.abort()

    def fail(self, error: TalosError) -> None:
        """End the connection with an error, the first of which is kept."""
        if self.error is None:
            self.error = error
        for waiting in (self._handshaken, self._greeted):
            if not waiting.done():
                waiting.set_result(None)
        if self._transport is not None:
            self._transport.abort()
        if self._receiver is not None:
            self._receiver.node_gone()

    async def _wait(self, moment: asyncio.Future[None]) -> None:
        await asyncio.shield(moment)
        if self.error is not None:
            raise self.error

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._advance()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > RECEIVE_LIMIT:
            self.fail(failed("AnswerTooLarge", self.node))
            return
        self._incoming.write(data)
        if self._handshaken.done():
            self._read()
        else:
            self._advance()

    def eof_received(self) -> bool:
        self._incoming.write_eof()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        reason = "ConnectionLost"
        if not self._handshaken.done() and not self._received:
            reason = "NotTls"  # it took the connection and closed it without a word
        if exc is not None:
            reason = tls_reason(exc)
        self.fail(failed(reason, self.node, detail=str(exc or "")))
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        if self._receiver is not None:
            self._receiver.node_paused(True)

    def resume_writing(self) -> None:
        if self._receiver is not None:
            self._receiver.node_paused(False)

    # TLS.

    def _flush(self) -> None:
        if self._outgoing.pending and self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    def _advance(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._flush()
            self.fail(failed(tls_reason(error), self.node, detail=str(error)))
            return
        self.alpn = self._tls.selected_alpn_protocol() or ""
        self.certificate = read_certificate(self._tls.getpeercert(True) or b"")
        try:
            if self.certificate is None or self.alpn != "h2":
                raise failed("NotTalos", self.node)
            self._accept(self.certificate)
        except TalosError as refusal:
            self.fail(refusal)
            return
        self._flush()
        self._handshaken.set_result(None)
        self._read()

    def _read(self) -> None:
        parts: list[bytes] = []
        failure: TalosError | None = None
        try:
            while part := self._tls.read(_CHUNK):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            failure = failed(tls_reason(error), self.node, detail=str(error))
        self._flush()
        data = b"".join(parts)
        if data and self._receiver is not None:
            self._receiver.from_node(data)
        elif data:
            self._early += data
            if len(self._early) >= _FRAME_HEADER and not self._greeted.done():
                self._greeted.set_result(None)
            if len(self._early) > _CHUNK and self._transport is not None:
                self._transport.pause_reading()
        if failure is not None:
            self.fail(failure)
