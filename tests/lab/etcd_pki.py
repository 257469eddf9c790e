# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The certificates of a real etcd member, issued as Talos does: by the cluster's etcd CA, with keys of the CA's kind, new at every start."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.lab.certificates import Authority, certificate_pem, key_pem, moment, private_key

_YEAR = timedelta(days=365)


def write(folder: Path, authority: Authority, now: float, name: str, addresses: Sequence[str]) -> ssl.SSLContext:
    """Writes `ca.crt` and the pairs `server`, `peer` and `admin`; gives the TLS context of a client with the last of them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(certificate_pem(authority.certificate))
    names = [name, "localhost"]
    _pair(folder, "server", authority, now, name, names, addresses)
    _pair(folder, "peer", authority, now, name, names, addresses)
    _pair(folder, "admin", authority, now, "talos", [], [])
    return admin_context(folder)


def admin_context(folder: Path) -> ssl.SSLContext:
    """The TLS context of an administrator, from the files that `write` left in a folder."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    # A CA made with the least that Go asks for lacks extensions that newer Pythons want to see.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    return context


def _pair(folder: Path, file: str, authority: Authority, now: float, name: str, dns: Sequence[str], addresses: Sequence[str]) -> None:
    signer = private_key(authority)
    edwards = isinstance(signer, ed25519.Ed25519PrivateKey)
    key: Any = ed25519.Ed25519PrivateKey.generate() if edwards else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(authority.certificate.subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(moment(now) - timedelta(minutes=5)).not_valid_after(moment(now) + _YEAR)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    alternatives: list[x509.GeneralName] = [x509.DNSName(item) for item in dict.fromkeys(dns) if item and item.isascii()]
    alternatives += [x509.IPAddress(ip_address(item)) for item in dict.fromkeys(addresses)]
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    certificate = builder.sign(signer, None if edwards else hashes.SHA256())
    (folder / f"{file}.crt").write_bytes(certificate_pem(certificate))
    path = folder / f"{file}.key"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(key_pem(key))
