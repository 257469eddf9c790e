# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server-side TLS 1.3 with every alert under our control.

OpenSSL does the handshake through memory BIOs; it accepts any client certificate. After the client's Finished the record
layer is ours: the traffic secrets come from the key log, so no session tickets are sent, and a refused certificate gets
the very alert that Go's crypto/tls sends, encrypted as the first record of the application keys.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable, Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL import SSL, crypto

from tests.lab.certificates import Leaf

ALERT_CLOSE_NOTIFY = 0
ALERT_BAD_CERTIFICATE = 42
ALERT_CERTIFICATE_EXPIRED = 45
ALERT_UNKNOWN_CA = 48
ALERT_CERTIFICATE_REQUIRED = 116

_APPLICATION, _ALERT, _HANDSHAKE, _CHANGE_CIPHER = 23, 21, 22, 20
_MAX_PLAINTEXT = 16384
_MAX_RECORD = _MAX_PLAINTEXT + 256
_KEY_UPDATE = 24
_SIGNATURES = b"RSA-PSS+SHA256:ECDSA+SHA256:ed25519:RSA-PSS+SHA384:RSA-PSS+SHA512:ECDSA+SHA384:ECDSA+SHA512"
_SUITES = b"TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"


class NotTls(Exception):
    """The peer does not speak TLS: the connection is closed without an alert."""


class HandshakeFailed(Exception):
    """The handshake failed; the alert, if any, is in the outgoing bytes."""


class TlsClosed(Exception):
    """The peer closed the TLS connection in order, or sent an alert."""


class Identity:
    """What a listener presents: a leaf, and the CAs it accepts clients of (None: it asks for no certificate)."""

    def __init__(self, leaf: Leaf, client_authorities: Sequence[x509.Certificate] | None, tls12: bool = False) -> None:
        self.leaf = leaf
        self.client_authorities = None if client_authorities is None else list(client_authorities)
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION if tls12 else SSL.TLS1_3_VERSION)
        context.set_options(SSL.OP_CIPHER_SERVER_PREFERENCE | SSL.OP_NO_TICKET)
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        context.use_certificate(crypto.X509.from_cryptography(leaf.certificate))
        context.use_privatekey(crypto.PKey.from_cryptography_key(leaf.key))
        context.set_alpn_select_callback(_select_alpn)
        context.set_keylog_callback(_keep_secret)
        library: Any = vars(SSL)["_lib"]  # pyOpenSSL has no public call for these two lists
        library.SSL_CTX_set_ciphersuites(context._context, _SUITES)
        library.SSL_CTX_set1_sigalgs_list(context._context, _SIGNATURES)
        if self.client_authorities is not None:
            context.set_verify(SSL.VERIFY_PEER, _accept_any)
            for certificate in self.client_authorities:
                context.add_client_ca(crypto.X509.from_cryptography(certificate))
        self.context = context


def _accept_any(*unused: Any) -> bool:
    return True


class _NoProtocol(Exception):
    """Raised in the ALPN callback to make OpenSSL send alert 120."""


def _select_alpn(connection: SSL.Connection, offered: list[bytes]) -> Any:
    if b"h2" in offered:
        return b"h2"
    if b"http/1.1" in offered:
        return SSL.NO_OVERLAPPING_PROTOCOLS
    raise _NoProtocol


def _keep_secret(connection: SSL.Connection, line: bytes) -> None:
    label, unused, secret = line.split(b" ")
    session = connection.get_app_data()
    if session is not None and label in (b"CLIENT_TRAFFIC_SECRET_0", b"SERVER_TRAFFIC_SECRET_0"):
        session.secrets[label[:6]] = bytes.fromhex(secret.decode())


def _expand(digest: str, secret: bytes, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label of TLS 1.3 with an empty context, for lengths up to one hash."""
    full = b"tls13 " + label
    info = struct.pack(">HB", length, len(full)) + full + b"\x00"
    return hmac.new(secret, info + b"\x01", getattr(hashlib, digest)).digest()[:length]


class _Direction:
    """One direction of the record layer."""

    def __init__(self, suite: str, secret: bytes) -> None:
        self.digest = "sha384" if suite.endswith("SHA384") else "sha256"
        self.key_length = 16 if "AES_128" in suite else 32
        self.cipher_class: Any = ChaCha20Poly1305 if "CHACHA20" in suite else AESGCM
        self._install(secret)

    def _install(self, secret: bytes) -> None:
        self.secret = secret
        self.cipher = self.cipher_class(_expand(self.digest, secret, b"key", self.key_length))
        self.iv = int.from_bytes(_expand(self.digest, secret, b"iv", 12), "big")
        self.sequence = 0

    def update(self) -> None:
        self._install(_expand(self.digest, self.secret, b"traffic upd", len(self.secret)))

    def _nonce(self) -> bytes:
        nonce = (self.iv ^ self.sequence).to_bytes(12, "big")
        self.sequence += 1
        return nonce

    def seal(self, kind: int, data: bytes) -> bytes:
        header = struct.pack(">BHH", _APPLICATION, 0x0303, len(data) + 17)
        sealed: bytes = self.cipher.encrypt(self._nonce(), data + bytes((kind,)), header)
        return header + sealed

    def open(self, record: bytes) -> tuple[int, bytes]:
        plain = self.cipher.decrypt(self._nonce(), record[5:], record[:5]).rstrip(b"\x00")
        if not plain:
            raise TlsClosed("empty record")
        return plain[-1], plain[:-1]


class TlsSession:
    """One connection. `receive` takes bytes from the wire and gives plaintext; `take` gives what has to be sent."""

    def __init__(self, identity: Identity, clock: Callable[[], float]) -> None:
        self.identity = identity
        self.clock = clock
        self.secrets: dict[bytes, bytes] = {}
        self.established = False
        self.peer_certificate: x509.Certificate | None = None
        self.roles: tuple[str, ...] = ()
        self.alpn: str | None = None
        self._out = bytearray()
        self._in = bytearray()
        self._first = True
        self._read: _Direction | None = None
        self._write: _Direction | None = None
        self._legacy = False
        self._openssl = SSL.Connection(identity.context, None)
        self._openssl.set_app_data(self)
        self._openssl.set_accept_state()

    def take(self) -> bytes:
        data = bytes(self._out)
        self._out.clear()
        return data

    def receive(self, data: bytes) -> bytes:
        self._in += data
        plain = bytearray()
        if self._first:
            if self._in[0] != _HANDSHAKE or (len(self._in) > 1 and self._in[1] != 3):
                raise NotTls
            self._first = len(self._in) < 2
        while len(self._in) >= 5:
            length = int.from_bytes(self._in[3:5], "big")
            if length > _MAX_RECORD:
                raise NotTls
            if len(self._in) < 5 + length:
                break
            record = bytes(self._in[: 5 + length])
            del self._in[: 5 + length]
            if self.established:
                plain += self._open(record)
            else:
                self._advance(record)
        return bytes(plain)

    def _advance(self, record: bytes) -> None:
        connection = self._openssl
        connection.bio_write(record)
        try:
            connection.do_handshake()
        except SSL.WantReadError:
            self._flush_openssl()
            return
        except (SSL.Error, _NoProtocol) as error:
            self._flush_openssl()
            raise HandshakeFailed(str(error)) from error
        suite = connection.get_cipher_name() or ""
        protocol = connection.get_alpn_proto_negotiated()
        self.alpn = protocol.decode() if protocol else None
        certificate = connection.get_peer_certificate()
        self.peer_certificate = certificate.to_cryptography() if certificate is not None else None
        self.established = True
        if connection.get_protocol_version() < 0x0304:
            self._legacy = True
            self._flush_openssl()
        else:
            self._drop_openssl()
            self._read = _Direction(suite, self.secrets[b"CLIENT"])
            self._write = _Direction(suite, self.secrets[b"SERVER"])
        self._check_client()

    def _flush_openssl(self) -> None:
        while True:
            try:
                self._out += self._openssl.bio_read(65536)
            except SSL.Error:
                return

    def _drop_openssl(self) -> None:
        """What OpenSSL has to say after the client's Finished is session tickets, which Talos does not send."""
        while True:
            try:
                self._openssl.bio_read(65536)
            except SSL.Error:
                return

    def _check_client(self) -> None:
        authorities = self.identity.client_authorities
        if authorities is None:
            self.peer_certificate = None
            return
        alert = client_alert(self.peer_certificate, authorities, self.clock())
        if alert is not None:
            self.alert(alert)
            raise HandshakeFailed(f"alert {alert}")
        if self.peer_certificate is not None:
            self.roles = tuple(str(part.value) for part in self.peer_certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))

    def alert(self, number: int) -> None:
        """Queues an alert under the application keys; close_notify is a warning, all others are fatal."""
        level = 1 if number == ALERT_CLOSE_NOTIFY else 2
        if self._write is not None:
            self._out += self._write.seal(_ALERT, bytes((level, number)))

    def send(self, data: bytes) -> None:
        if self._legacy:
            if data:
                self._openssl.sendall(data)
            self._flush_openssl()
            return
        if self._write is None:
            raise TlsClosed("no handshake yet")
        for offset in range(0, len(data), _MAX_PLAINTEXT):
            self._out += self._write.seal(_APPLICATION, data[offset:offset + _MAX_PLAINTEXT])

    def send_corrupt(self, data: bytes) -> None:
        """A record that does not authenticate, for faults."""
        if self._write is None:
            raise TlsClosed("no handshake yet")
        record = bytearray(self._write.seal(_APPLICATION, data))
        record[-1] ^= 0xFF
        self._out += record

    def _open(self, record: bytes) -> bytes:
        if self._legacy:
            return self._open_legacy(record)
        if record[0] == _CHANGE_CIPHER:
            return b""
        if self._read is None or self._write is None:
            raise TlsClosed("no handshake yet")
        try:
            kind, data = self._read.open(record)
        except TlsClosed:
            raise
        except Exception as error:
            raise TlsClosed("bad record") from error
        if kind == _APPLICATION:
            return data
        if kind == _ALERT:
            raise TlsClosed(f"alert {data[1] if len(data) > 1 else '?'}")
        if kind == _HANDSHAKE and data[:1] == bytes((_KEY_UPDATE,)):
            self._read.update()
            if data[4:5] == b"\x01":
                self._out += self._write.seal(_HANDSHAKE, b"\x18\x00\x00\x01\x00")
                self._write.update()
        return b""

    def _open_legacy(self, record: bytes) -> bytes:
        self._openssl.bio_write(record)
        plain = bytearray()
        while True:
            try:
                plain += self._openssl.recv(65536)
            except SSL.WantReadError:
                self._flush_openssl()
                return bytes(plain)
            except SSL.Error as error:
                raise TlsClosed(str(error)) from error


def client_alert(certificate: x509.Certificate | None, authorities: Sequence[x509.Certificate], now: float) -> int | None:
    """The alert for a client certificate, or None when it is accepted.

    The order is that of Go: missing, time of the leaf, issuer, and then the extended key usage, which Talos wants to be
    exactly clientAuth.
    """
    if certificate is None:
        return ALERT_CERTIFICATE_REQUIRED
    if not certificate.not_valid_before_utc.timestamp() <= now <= certificate.not_valid_after_utc.timestamp():
        return ALERT_CERTIFICATE_EXPIRED
    if not any(_issued_by(certificate, authority) for authority in authorities):
        return ALERT_UNKNOWN_CA
    try:
        usages = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        usages = []
    if usages != [ExtendedKeyUsageOID.CLIENT_AUTH]:
        return ALERT_BAD_CERTIFICATE
    return None


def _issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:
        return False
    return True
