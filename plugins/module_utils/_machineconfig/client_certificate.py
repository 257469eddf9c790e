# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client certificates that the CAs of a bundle issue, as Talos issues them: for its own API and for Kubernetes (design section 5)."""
from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import problem
from .authorities import load_certificate, load_key, signed_by
from .problem import ConfigProblem
from .secrets import Pair

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    HAS_CRYPTOGRAPHY = True
except ImportError:
    HAS_CRYPTOGRAPHY = False

#: A certificate begins that long before it is made, for a node whose clock is behind.
BACKDATED = datetime.timedelta(minutes=10)


@dataclass(frozen=True)
class Client:
    """A client certificate with its key, PEM texts, and what it says. organizations: roles of Talos, groups of Kubernetes."""

    pair: Pair = field(repr=False)
    organizations: tuple[str, ...]
    common_name: str
    not_after: datetime.datetime


def issue_client(
    authority: Pair, organizations: Sequence[str], common_name: str, now: datetime.datetime, lifetime: datetime.timedelta,
    random: Callable[[int], bytes],
) -> Client:
    """A new key, of the CA's family, and its certificate; it never outlives the CA. Raises ConfigProblem (SecretsInvalid) for a bad CA."""
    try:
        ca, signer = load_certificate(authority.crt), load_key(authority.key)
    except ValueError as error:
        raise ConfigProblem(problem.SECRETS_INVALID, f"the CA cannot be used: {error}") from None
    if now >= ca.not_valid_after_utc:
        raise ConfigProblem(problem.SECRETS_INVALID, f"the CA is not valid any more (until {ca.not_valid_after_utc:%Y-%m-%d})", hint="Rotate the CA.")
    key: Any = ed25519.Ed25519PrivateKey.generate() if isinstance(signer, ed25519.Ed25519PrivateKey) else ec.generate_private_key(ec.SECP256R1())
    start, end = (now - BACKDATED).replace(microsecond=0), min(now + lifetime, ca.not_valid_after_utc).replace(microsecond=0)
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    names += [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    builder = (
        x509.CertificateBuilder().subject_name(x509.Name(names)).issuer_name(ca.subject).public_key(key.public_key())
        .serial_number(int.from_bytes(random(16), "big") or 1).not_valid_before(start).not_valid_after(end)
        .add_extension(x509.KeyUsage(
            digital_signature=True, key_cert_sign=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(_authority_key(ca), critical=False)
    )
    certificate = builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
    return Client(Pair(pem, _key_pem(key)), tuple(organizations), common_name, end)


def _authority_key(ca: Any) -> Any:
    try:
        own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _key_pem(key: Any) -> str:
    """With the header of its own that Talos gives an Ed25519 key, and the traditional form of an elliptic curve key."""
    ed = isinstance(key, ed25519.Ed25519PrivateKey)
    form = serialization.PrivateFormat.PKCS8 if ed else serialization.PrivateFormat.TraditionalOpenSSL
    text: str = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode("ascii")
    return text.replace(" PRIVATE KEY-----", " ED25519 PRIVATE KEY-----") if ed else text


def read_client(pair: Pair) -> Client:
    """What a certificate with its key says. Raises ValueError with one sentence that quotes nothing."""
    certificate, key = load_certificate(pair.crt), load_key(pair.key)
    if _public(key.public_key()) != _public(certificate.public_key()):
        raise ValueError("the key is not the key of the certificate")
    names = certificate.subject
    return Client(
        pair, tuple(str(name.value) for name in names.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)),
        next((str(name.value) for name in names.get_attributes_for_oid(NameOID.COMMON_NAME)), ""), certificate.not_valid_after_utc)


def _public(key: Any) -> bytes:
    der: bytes = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return der


def issued_by(client: Client, authority: Pair) -> bool:
    """Whether that CA issued it; False also where one of them cannot be read."""
    try:
        return signed_by(client.pair.crt, authority.crt)
    except ValueError:
        return False
