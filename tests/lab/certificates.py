# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates made as Talos makes them: Ed25519, leaf only, a new key at every issue.

The CA of maintenance mode has an empty subject and lives in memory for one boot; the CA of a configured node comes from
its configuration (`O=talos`). Client certificates of every kind that the vectors name are made here as well.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

MAINTENANCE_NAME = "maintenance-service.talos.dev"
TALOS_KEY_LABEL = b"ED25519 PRIVATE KEY"
DAY = timedelta(hours=24)
TEN_YEARS = timedelta(hours=87600)


@dataclass(frozen=True)
class Authority:
    """A certificate authority; `key` is None where a node only knows the certificate (a worker)."""

    certificate: x509.Certificate
    key: Any | None


@dataclass(frozen=True)
class Leaf:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: Any

    @property
    def fingerprint(self) -> str:
        """talosctl's form: base64 of the SHA-256 of the public key's DER."""
        return fingerprint(self.certificate)

    def pem(self) -> tuple[bytes, bytes]:
        """Certificate and key as PEM (the key with the standard label)."""
        return certificate_pem(self.certificate), key_pem(self.key)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 over the subject public key info, standard base64 with padding."""
    spki = certificate.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(spki).digest()).decode()


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: Any) -> bytes:
    pem: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem


def talos_key_pem(key: Any) -> bytes:
    """PKCS#8 under the label that Talos writes for Ed25519 keys."""
    return key_pem(key).replace(b"PRIVATE KEY", TALOS_KEY_LABEL)


def load_key(pem: bytes) -> Any:
    """Reads Talos's own label as well as the standard ones."""
    return serialization.load_pem_private_key(pem.replace(TALOS_KEY_LABEL, b"PRIVATE KEY"), None)


def _name(organizations: Sequence[str] = (), common_name: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    if common_name is not None:
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    return x509.Name(parts)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), tz=timezone.utc)


def new_authority(now: float, organization: str | None = None, lifetime: timedelta = TEN_YEARS) -> Authority:
    """A self-signed Ed25519 CA; without an organization its subject is empty, as in maintenance mode."""
    key = ed25519.Ed25519PrivateKey.generate()
    name = _name([organization] if organization else [])
    start = moment(now)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, False, False, False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, None)
    )
    return Authority(certificate, key)


def _authority_key(certificate: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """The identifier that the CA carries itself, as Go's issuer copies it: a CA need not have the usual hash of its key there."""
    try:
        own = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(certificate.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def private_key(authority: Authority) -> Any:
    """The key of a CA that can sign."""
    if authority.key is None:
        raise ValueError("this CA is only a certificate")
    return authority.key


def _signing_hash(key: Any) -> Any:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def issue_server(
    authority: Authority, now: float, common_name: str, dns: Sequence[str], addresses: Sequence[str], lifetime: timedelta = DAY, key: Any | None = None
) -> Leaf:
    """A server leaf as apid presents it. `key` is only for faults (an RSA leaf)."""
    private = key if key is not None else ed25519.Ed25519PrivateKey.generate()
    start = moment(now)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns if _is_dns(name)]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(common_name=common_name))
        .issuer_name(authority.certificate.subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
        .add_extension(x509.KeyUsage(True, False, False, False, False, False, False, False, False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_authority_key(authority.certificate), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(private_key(authority), _signing_hash(authority.key))
    )
    return Leaf(certificate, private)


def _is_dns(name: str) -> bool:
    return bool(name) and " " not in name and name.isascii()


_USAGES = {
    "client": [ExtendedKeyUsageOID.CLIENT_AUTH],
    "server": [ExtendedKeyUsageOID.SERVER_AUTH],
    "any": [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE],
    "client-and-server": [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH],
    "server-and-client": [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
}


def issue_client(
    authority: Authority | None,
    now: float,
    organizations: Sequence[str],
    usage: str | None = "client",
    key_type: str = "ed25519",
    start: timedelta = timedelta(minutes=-5),
    lifetime: timedelta = timedelta(hours=8760),
) -> Leaf:
    """A client certificate. Without an authority it signs itself; `usage` None leaves the extension out."""
    key: Any
    if key_type == "rsa":
        key = rsa.generate_private_key(65537, 2048)
    elif key_type == "ecdsa":
        key = ec.generate_private_key(ec.SECP256R1())
    else:
        key = ed25519.Ed25519PrivateKey.generate()
    subject = _name(organizations)
    issuer = authority.certificate.subject if authority is not None else subject
    signer = private_key(authority) if authority is not None else key
    first = moment(now) + start
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(first + lifetime)
        .add_extension(x509.KeyUsage(True, False, False, False, False, False, False, False, False), critical=True)
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(_USAGES[usage]), critical=False)
    if authority is not None:
        builder = builder.add_extension(_authority_key(authority.certificate), critical=False)
    return Leaf(builder.sign(signer, _signing_hash(signer)), key)
