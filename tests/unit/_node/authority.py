# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates for the tests of the transport: a CA as Talos makes it, leaves good and bad."""

from __future__ import annotations

import ipaddress
import os
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH


def new_key(kind="ed25519"):
    if kind == "rsa":
        return rsa.generate_private_key(65537, 2048)
    return ed25519.Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())


def name(organization=(), common=""):
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organization]
    return x509.Name(parts + ([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else []))


def pem(thing):
    if hasattr(thing, "public_bytes"):
        return thing.public_bytes(serialization.Encoding.PEM).decode()
    text = thing.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    return text


class Authority:
    """A certificate authority. `organization` is `talos` as in every cluster, or () for the one of maintenance mode."""

    def __init__(self, organization=("talos",), kind="ed25519", days=3650):
        self.kind = kind
        self.key = new_key(kind)
        self.name = name(organization)
        self.identifier = os.urandom(20)  # Go does not take the usual hash of the key either
        now = datetime.now(timezone.utc)
        builder = x509.CertificateBuilder().subject_name(self.name).issuer_name(self.name).public_key(self.key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        builder = builder.not_valid_after(now + timedelta(days=days)).add_extension(x509.BasicConstraints(True, None), True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier(self.identifier), False)
        self.certificate = builder.sign(self.key, self.algorithm)

    @property
    def algorithm(self):
        return None if self.kind == "ed25519" else hashes.SHA256()

    def leaf(self, usages=(SERVER,), common="", organization=(), begins=-3600.0, ends=86400.0, kind=None):
        """A leaf and its key, both PEM; times in seconds from now."""
        key = new_key(kind or self.kind)
        now = datetime.now(timezone.utc)
        builder = x509.CertificateBuilder().subject_name(name(organization, common)).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now + timedelta(seconds=begins))
        builder = builder.not_valid_after(now + timedelta(seconds=ends))
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("192.0.2.7"))]), False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier(self.identifier, None, None), False)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), False)
        return pem(builder.sign(self.key, self.algorithm)), pem(key)
