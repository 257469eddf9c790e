# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running the recorded connection attempts: handshakes, certificates, alerts, and what the server does with silence and garbage."""

from __future__ import annotations

import socket
import ssl
import time
import warnings
from typing import Any

from cryptography import x509
from cryptography.x509.oid import ExtensionOID
from OpenSSL import SSL

from tests.lab.certificates import Leaf
from tests.lab.vector_match import Mismatch
from tests.lab.vector_stage import PORT, Stage
from tests.lab.wireclient import alert_number, context

SILENCE = 2.0  # the lab's silence time in these rows, for the recorded 120 s
_VERSIONS = {"TLSv1": ssl.TLSVersion.TLSv1, "TLSv1_1": ssl.TLSVersion.TLSv1_1, "TLSv1_2": ssl.TLSVersion.TLSv1_2, "TLSv1_3": ssl.TLSVersion.TLSv1_3}
_WITHOUT_ED25519 = b"ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA384:RSA+SHA384:RSA-PSS+SHA512:RSA+SHA512"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = bytes.fromhex("000000040000000000")


def run(stage: Stage, row: dict[str, Any]) -> None:
    """Raises Mismatch when the lab differs from the row."""
    client = row["client"]
    if "sends" in client:
        _raw(stage, row)
    elif "note" in client:
        _without_ed25519(stage, row)
    else:
        _handshake(stage, row)


def _low(client: dict[str, Any], leaf: Leaf | None) -> ssl.SSLContext:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = context(leaf, client["alpn"], _VERSIONS[client["min"]], _VERSIONS[client["max"]])
        made.set_ciphers("ALL:@SECLEVEL=0")
    return made


def _handshake(stage: Stage, row: dict[str, Any]) -> None:
    client = row["client"]
    tls = _low(client, stage.leaf(client["client_certificate"]))
    plain = socket.create_connection((stage.addresses[stage.subject], PORT), timeout=5)
    with plain:
        try:
            connection = tls.wrap_socket(plain, server_hostname=client["sni"])
        except ssl.SSLError as error:
            _expect_alert(row, str(error), "fails")
            return
        except OSError as error:
            raise Mismatch(f"the handshake ended with {error}") from error
        with connection:
            if row["handshake"] != "completes":
                raise Mismatch("the handshake completed")
            _check_connection(row, connection)
            _check_certificate(stage, row, connection.getpeercert(binary_form=True) or b"")
            connection.settimeout(3)
            try:
                first = connection.recv(65536)
            except (ssl.SSLError, OSError) as error:
                _expect_alert(row, str(error), "completes")
                return
            if row["first_read"] != "HTTP/2 SETTINGS" or first[3:4] != b"\x04":
                raise Mismatch(f"the first read gave {first[:16].hex()}, expected {row['first_read']}")
            settings = {int.from_bytes(first[9 + 6 * part:11 + 6 * part], "big"): int.from_bytes(first[11 + 6 * part:15 + 6 * part],
                                                                                                 "big") for part in range(2)}
            wanted = row.get("http2_settings_from_server")
            if wanted and settings != {5: wanted["MAX_FRAME_SIZE"], 4: wanted["INITIAL_WINDOW_SIZE"]}:
                raise Mismatch(f"settings {settings}")
    _check_version_call(stage, row)
    _check_request(stage, row)


def _expect_alert(row: dict[str, Any], text: str, handshake: str) -> None:
    alerts = row.get("alert_from_server")
    if row["handshake"] != handshake:
        raise Mismatch(f"{handshake}: {text}, expected that the handshake {row['handshake']}")
    if not alerts:
        raise Mismatch(f"{text}, expected no alert")
    if alert_number(text) != alerts[0]["number"]:
        raise Mismatch(f"{text}, expected alert {alerts[0]['number']}")


def _check_connection(row: dict[str, Any], connection: ssl.SSLSocket) -> None:
    cipher = connection.cipher()
    seen = {"version": connection.version(), "cipher": cipher[0] if cipher else None, "alpn": connection.selected_alpn_protocol()}
    for key, value in seen.items():
        if row[key] != value:
            raise Mismatch(f"{key} is {value}, expected {row[key]}")
    if connection.session is not None and connection.session.has_ticket:
        raise Mismatch("a session ticket was sent")


def _check_certificate(stage: Stage, row: dict[str, Any], der: bytes) -> None:
    wanted = row["certificate"]
    certificate = x509.load_der_x509_certificate(der)
    seen: dict[str, Any] = {
        "key": type(certificate.public_key()).__name__.removeprefix("_"), "version": certificate.version.name, "signature": "ed25519",
        "issuer": certificate.issuer.rfc4514_string(), "subject": certificate.subject.rfc4514_string(),
        "validity_hours": (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() / 3600,
    }
    for key, value in seen.items():
        if key in wanted and str(value) != str(wanted[key]):
            raise Mismatch(f"certificate {key} is {value!r}, expected {wanted[key]!r}")
    if certificate.signature_algorithm_oid.dotted_string != "1.3.101.112":
        raise Mismatch("the certificate is not signed with Ed25519")
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    if usage.critical != wanted["extensions"]["keyUsage critical"] or not usage.value.digital_signature or usage.value.key_encipherment:
        raise Mismatch("key usage differs")
    extended = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    if [item.dotted_string for item in extended.value] != ["1.3.6.1.5.5.7.3.1"] or extended.critical:
        raise Mismatch("extended key usage differs")
    certificate.extensions.get_extension_for_oid(ExtensionOID.AUTHORITY_KEY_IDENTIFIER)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    dns = names.value.get_values_for_type(x509.DNSName)
    ips = sorted(str(item) for item in names.value.get_values_for_type(x509.IPAddress))
    expected = sorted({stage.addresses[stage.subject] if item.startswith("<ip:") else item for item in wanted["san"]["ip"]})
    if sorted(dns) != sorted(wanted["san"]["dns"]) or ips != expected:
        raise Mismatch(f"names {dns} {ips}, expected {wanted['san']}")
    order = ["DNSName" if isinstance(item, x509.DNSName) else "IPAddress" for item in names.value]
    if order != wanted["san_order"]:
        raise Mismatch(f"the order of names is {order}")


def _check_version_call(stage: Stage, row: dict[str, Any]) -> None:
    if row.get("version_call") and row["client"]["max"] == "TLSv1_3":
        outcome = stage.call(stage.subject, row["client"]["client_certificate"], "/machine.MachineService/Version")
        if not str(row["version_call"]).startswith(outcome.code):
            raise Mismatch(f"Version gave {outcome.code}, expected {row['version_call']}")


def _check_request(stage: Stage, row: dict[str, Any]) -> None:
    """Whether the server asks for a certificate, of which CAs, and that it takes the three kinds of signatures."""
    connection = _openssl(stage, None)
    names = [name.der() for name in connection.get_client_ca_list()]
    wanted = row["certificate_request"]
    if bool(names) != bool(wanted):
        raise Mismatch(f"certificate request {names}, expected {wanted}")
    known = ["O=" + str(name.O) for name in connection.get_client_ca_list()]
    if wanted and known != wanted["certificate_authorities"]:
        raise Mismatch(f"certificate authorities {known}, expected {wanted['certificate_authorities']}")


def _openssl(stage: Stage, signatures: bytes | None, version: int = SSL.TLS1_3_VERSION) -> SSL.Connection:
    made = SSL.Context(SSL.TLS_CLIENT_METHOD)
    made.set_max_proto_version(version)
    made.set_alpn_protos([b"h2"])
    if signatures is not None:
        vars(SSL)["_lib"].SSL_CTX_set1_sigalgs_list(made._context, signatures)
    plain = socket.create_connection((stage.addresses[stage.subject], PORT), timeout=5)
    plain.settimeout(None)
    connection = SSL.Connection(made, plain)
    connection.set_connect_state()
    try:
        connection.do_handshake()
    finally:
        plain.close()
    return connection


def _without_ed25519(stage: Stage, row: dict[str, Any]) -> None:
    version = SSL.TLS1_2_VERSION if row["id"].endswith("tls1_2") else SSL.TLS1_3_VERSION
    try:
        _openssl(stage, _WITHOUT_ED25519, version)
    except SSL.Error as error:
        _expect_alert(row, str(error), "fails")
        return
    raise Mismatch("the handshake completed")


def _raw(stage: Stage, row: dict[str, Any]) -> None:
    what = row["id"].rpartition("/")[2]
    start = time.monotonic()
    plain = socket.create_connection((stage.addresses[stage.subject], PORT), timeout=5)
    connection: socket.socket = plain
    try:
        if what.startswith(("tls-", "half-open-tls", "half-open-preface")):
            connection = context(stage.leaf("admin" if stage.subject != "cp1" or "maintenance" not in row["state"] else "none")).wrap_socket(plain)
        payloads = {
            "plaintext-http2": _PREFACE + _SETTINGS, "plaintext-http1": b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n", "garbage-bytes": bytes(range(32, 256)),
            "one-byte": b"\x16", "tls-then-http1": b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n", "tls-then-garbage": b"this is not the preface of HTTP/2\r\n" * 4,
            "half-open-preface": _PREFACE + _SETTINGS,
        }
        if what in payloads:
            connection.sendall(payloads[what])
        patience = SILENCE / 2 if what == "one-byte" else SILENCE + (3.0 if row["close"] == "FIN" else 0.7)
        received, closed = _until_closed(connection, patience)
    finally:
        connection.close()
    seconds = time.monotonic() - start
    if closed != (row["close"] == "FIN"):
        raise Mismatch(f"{'closed' if closed else 'still open'} after {seconds:.1f} s, expected {row['close']}")
    if row["closed_after_s"] == 120.0 and seconds < SILENCE - 0.3:
        raise Mismatch(f"closed after {seconds:.1f} s of silence")
    if received.hex() != row["received_hex"]:
        raise Mismatch(f"received {received.hex()}, expected {row['received_hex']}")


def _until_closed(connection: socket.socket, seconds: float) -> tuple[bytes, bool]:
    received = bytearray()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.settimeout(max(end - time.monotonic(), 0.01))
        try:
            data = connection.recv(65536)
        except TimeoutError:
            break
        except (ssl.SSLError, OSError):
            return bytes(received), True
        if not data:
            return bytes(received), True
        received += data
    return bytes(received), False
