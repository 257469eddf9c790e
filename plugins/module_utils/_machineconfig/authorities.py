# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate authorities of a bundle: making and checking them. The one file of this room that needs `cryptography`.

Shapes are those of Talos (reference: certificates and keys): an Ed25519 CA for the Talos API whose key has a PEM header of its own,
ECDSA P-256 CAs for etcd, Kubernetes and the aggregator, an RSA key for service accounts, ten years, no path length, no authority key id.
"""
from __future__ import annotations

import base64
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import problem
from .problem import ConfigProblem
from .secrets import Bundle, Pair

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    HAS_CRYPTOGRAPHY = True
except ImportError:  # reported by whoever runs the module
    HAS_CRYPTOGRAPHY = False

_TEN_YEARS = datetime.timedelta(hours=87600)
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ED25519_HEADER = "ED25519 PRIVATE KEY"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a bundle. path as in secrets.yaml; talos: Talos refuses the bundle for it."""

    path: str
    message: str
    talos: bool


def make_bundle(now: datetime.datetime, random: Callable[[int], bytes], *, contract: str = "1.14") -> Bundle:
    """A new bundle. now: aware time from which the CAs are valid; random: so many bytes of a safe source (os.urandom).

    The keys themselves come from the library's own safe source. contract decides the alphabet of the cluster id: 1.14 has the
    standard one, older Talos the one for URLs; no Talos ever decodes it.
    """
    _need_library()
    start = now.astimezone(datetime.timezone.utc).replace(microsecond=0)
    identity = random(32)
    return Bundle(
        cluster_id=(base64.b64encode if contract >= "1.14" else base64.urlsafe_b64encode)(identity).decode(),
        cluster_secret=base64.b64encode(random(32)).decode(), secretbox=base64.b64encode(random(32)).decode(),
        bootstrap_token=_token(random), trustd_token=_token(random),
        etcd=certificate_authority("etcd", ec.generate_private_key(ec.SECP256R1()), start, random),
        k8s=certificate_authority("kubernetes", ec.generate_private_key(ec.SECP256R1()), start, random),
        aggregator=certificate_authority("", ec.generate_private_key(ec.SECP256R1()), start, random),
        service_account=Pair(key=_key_pem(rsa.generate_private_key(public_exponent=65537, key_size=4096))),
        os=certificate_authority("talos", ed25519.Ed25519PrivateKey.generate(), start, random),
    )


def _token(random: Callable[[int], bytes]) -> str:
    """`[0-9a-z]{6}.[0-9a-z]{16}`, each character equally likely."""
    found: list[str] = []
    while len(found) < 22:
        found.extend(_ALPHABET[byte % 36] for byte in random(32) if byte < 252)
    return "".join(found[:6]) + "." + "".join(found[6:22])


def certificate_authority(organization: str, key: Any, start: datetime.datetime, random: Callable[[int], bytes]) -> Pair:
    """A CA of Talos's shape around a key, with the key; both as PEM texts."""
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else [])
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(int.from_bytes(random(16), "big") or 1).not_valid_before(start).not_valid_after(start + _TEN_YEARS)
        .add_extension(x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier(random(20)), critical=False)
    )
    certificate = builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM).decode(), _key_pem(key))


def _key_pem(key: Any) -> str:
    """PEM with the headers that Talos expects: PKCS#8 under a header of its own for Ed25519, the traditional forms for the others."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        der = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        body = base64.b64encode(der).decode()
        lines = "\n".join(body[at:at + 64] for at in range(0, len(body), 64))
        return f"-----BEGIN {_ED25519_HEADER}-----\n{lines}\n-----END {_ED25519_HEADER}-----\n"
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return pem.decode()


def load_key(pem: str) -> Any:
    """A private key with any of the headers that Talos reads. Raises ValueError with one sentence that quotes nothing."""
    _need_library()
    try:
        return serialization.load_pem_private_key(pem.replace(_ED25519_HEADER, "PRIVATE KEY").encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("no private key in PEM that Talos can read") from None


def load_certificate(pem: str) -> Any:
    """The first certificate of a PEM text. Raises ValueError with one sentence."""
    _need_library()
    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except (ValueError, TypeError):
        raise ValueError("no certificate in PEM") from None


def check_bundle(bundle: Bundle, now: datetime.datetime | None = None) -> tuple[Finding, ...]:
    """What is wrong with a bundle, field by field; () for a good one. now: also finds CAs that are not valid at that time."""
    found = [
        Finding(path, f"{path} is required", True)
        for path, value in (
            ("cluster.id", bundle.cluster_id), ("cluster.secret", bundle.cluster_secret), ("trustdinfo.token", bundle.trustd_token),
            ("secrets.bootstraptoken", bundle.bootstrap_token))
        if not value
    ]
    both = "[secrets.secretboxencryptionsecret, secrets.aescbcencryptionsecret]"
    if not bundle.secretbox and not bundle.aescbc:
        found.append(Finding("secrets", f"one of {both} is required", True))
    if bundle.secretbox and bundle.aescbc:
        found.append(Finding("secrets", f"only one of {both} is allowed", True))
    for path, value in (
        ("cluster.secret", bundle.cluster_secret), ("secrets.secretboxencryptionsecret", bundle.secretbox),
        ("secrets.aescbcencryptionsecret", bundle.aescbc),
    ):
        if value and not _has_32_bytes(value):
            found.append(Finding(path, f"{path} is not 32 bytes in base64", False))
    for name, pair in (("etcd", bundle.etcd), ("k8s", bundle.k8s), ("k8saggregator", bundle.aggregator), ("os", bundle.os)):
        found.extend(_check_authority(f"certs.{name}", pair, now))
    found.extend(_check_key("certs.k8sserviceaccount.key", bundle.service_account.key))
    if not any(finding.path.startswith("certs.os") for finding in found):
        key = load_key(bundle.os.key)
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            found.append(Finding("certs.os", "certs.os is no Ed25519 key, which Talos makes; its nodes may not accept it", False))
    return tuple(found)


def _has_32_bytes(value: str) -> bool:
    try:
        return len(base64.b64decode(value, validate=True)) == 32
    except ValueError:
        return False


def _check_key(path: str, pem: str) -> list[Finding]:
    if not pem:
        return [Finding(path, f"{path} is required", True)]
    try:
        load_key(pem)
    except ValueError as error:
        return [Finding(path, f"{path} is invalid: {error}", True)]
    return []


def _check_authority(path: str, pair: Pair, now: datetime.datetime | None) -> list[Finding]:
    found = _check_key(f"{path}.key", pair.key)
    try:
        certificate = load_certificate(pair.crt)
    except ValueError as error:
        return [*found, Finding(f"{path}.crt", f"{path}.crt is {'required' if not pair.crt else f'invalid: {error}'}", True)]
    if not _is_authority(certificate):
        found.append(Finding(f"{path}.crt", f"{path}.crt is no CA, it may not sign certificates", False))
    if now is not None and not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        found.append(Finding(f"{path}.crt", f"{path}.crt is not valid now (until {certificate.not_valid_after_utc:%Y-%m-%d})", False))
    if not found and _public_bytes(load_key(pair.key).public_key()) != _public_bytes(certificate.public_key()):
        found.append(Finding(f"{path}.key", f"{path}.key is not the key of {path}.crt", False))
    return found


def _is_authority(certificate: Any) -> bool:
    try:
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    return bool(basic.ca and usage.key_cert_sign)


def _public_bytes(key: Any) -> bytes:
    der: bytes = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return der


def signed_by(certificate_pem: str, authority_pem: str) -> bool:
    """Whether the CA signed the certificate. Raises ValueError when one of them cannot be read."""
    certificate, authority = load_certificate(certificate_pem), load_certificate(authority_pem)
    key = authority.public_key()
    signature, signed = certificate.signature, certificate.tbs_certificate_bytes
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, signed)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, signed, ec.ECDSA(certificate.signature_hash_algorithm))
        else:
            key.verify(signature, signed, padding.PKCS1v15(), certificate.signature_hash_algorithm)
    except (InvalidSignature, TypeError):
        return False
    return True


def _need_library() -> None:
    if not HAS_CRYPTOGRAPHY:
        raise ConfigProblem(problem.MISSING_LIBRARY, "the Python library cryptography is missing", hint="Install cryptography.")
