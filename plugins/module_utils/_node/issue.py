# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An `os:admin` client certificate issued in memory from a secrets bundle (design section 5).

As Talos issues its own: one Organization value for each role, no common name, key usage digitalSignature, extended key
usage clientAuth and nothing else (a node refuses any other), signed by the OS CA. The key never leaves the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from .._model.credentials import Credentials
from .._model.errors import TalosError
from . import pem
from .certificates import moment

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment,unused-ignore]
try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    x509 = None  # type: ignore[assignment]

#: Seconds by which a certificate is backdated, for a node whose clock is behind, and its lifetime.
BACKDATED = 600.0
LIFETIME = 24 * 3600.0
ADMIN = ("os:admin",)


def credentials_from_bundle(text: bytes | str, *, now: float, source: str = "bundle", roles: Sequence[str] = ADMIN,
                            lifetime: float = LIFETIME) -> Credentials:
    """Credentials issued by the OS CA of a secrets bundle (`talosctl gen secrets`). `now` is UTC seconds.

    Raises `BundleInvalid`, and `CredentialsExpired` when the CA itself has expired. No message quotes the bundle.
    """
    authority = _os_authority(text, source)
    try:
        ca = pem.decode(authority.get("crt"), "certificate of the OS CA")
        key = pem.decode(authority.get("key"), "key of the OS CA")
        parsed = pem.load_certificate(ca, "certificate of the OS CA")
        signer = pem.load_key(key, "key of the OS CA")
        if not pem.belongs(signer, parsed):
            raise pem.Unreadable("has a key of the OS CA that is not the key of its certificate")
        if moment(parsed, "not_valid_after") <= now:
            raise TalosError("CredentialsExpired", f"The OS CA of the {source} has expired.", "Rotate the CA of the cluster.")
        certificate, client_key = issue(parsed, signer, now=now, roles=roles, lifetime=lifetime)
    except pem.Unreadable as error:
        raise TalosError("BundleInvalid", f"The {source} {error}.", "Give the bundle as `talosctl gen secrets` wrote it.") from None
    return Credentials(ca=ca, certificate=certificate, key=client_key, source=source)


def issue(ca: Any, signer: Any, *, now: float, roles: Sequence[str], lifetime: float) -> tuple[str, str]:
    """A client certificate and its key, both PEM (the key with OpenSSL's label). The key is of the CA's family."""
    key: Any = ed25519.Ed25519PrivateKey.generate() if isinstance(signer, ed25519.Ed25519PrivateKey) else ec.generate_private_key(ec.SECP256R1())
    begins = datetime.fromtimestamp(now - BACKDATED, timezone.utc)
    builder = x509.CertificateBuilder(
        issuer_name=ca.subject,
        subject_name=x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, role) for role in roles]),
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=begins,
        not_valid_after=begins + timedelta(seconds=BACKDATED + lifetime),
    )
    builder = builder.add_extension(x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    builder = builder.add_extension(_authority_key(ca), critical=False)
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    certificate = builder.sign(signer, algorithm)
    return (
        certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode("ascii"),
    )


def _authority_key(ca: Any) -> Any:
    """The key identifier that the CA carries, as Go's issuer copies it; OpenSSL takes another one for another CA."""
    try:
        own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _os_authority(text: bytes | str, source: str) -> dict[Any, Any]:
    hint = "Give the bundle as `talosctl gen secrets` wrote it."
    try:
        content = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        loaded = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        raise TalosError("BundleInvalid", f"The {source} is not YAML or is cut off.", hint) from None
    if isinstance(loaded, str) and loaded.startswith("$ANSIBLE_VAULT"):
        raise TalosError("BundleInvalid", f"The {source} is still encrypted with ansible-vault.", "Give the vault password to Ansible.")
    if isinstance(loaded, dict) and "sops" in loaded:
        raise TalosError("BundleInvalid", f"The {source} is encrypted with SOPS.", "Decrypt it first.")
    certs = loaded.get("certs") if isinstance(loaded, dict) else None
    authority = certs.get("os") if isinstance(certs, dict) else None
    if not isinstance(authority, dict):
        raise TalosError("BundleInvalid", f"The {source} has no certs.os, the certificate authority of the Talos API.", hint)
    return authority
