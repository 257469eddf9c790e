# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A managed cluster with a real API server: its record, its bundle, and what Talos makes for its API server from that."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._machineconfig.secrets import read_bundle
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, Record
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.parts.apiserver import Serving

BUNDLE = Path(__file__).parents[2] / "vectors" / "secrets.yaml"


class Records:
    """A store with one cluster and its bundle."""

    def __init__(self, endpoint: str, bundle: bytes = BUNDLE.read_bytes()) -> None:
        self.cluster = Record(CLUSTER, "prod", {"endpoint": endpoint, "secretsRef": {"name": "prod"}})
        self.content = bundle

    def get(self, kind: str, name: str) -> Record | None:
        return self.cluster if (kind, name) == (CLUSTER, "prod") else None

    def bundle(self, name: str) -> bytes:
        return self.content


class Clock:
    """UTC as it is, since certificates are real; the other clock moves when a test moves it."""

    def __init__(self) -> None:
        self.ticks = 0.0

    def now(self) -> float:
        return datetime.datetime.now(datetime.timezone.utc).timestamp()

    def monotonic(self) -> float:
        return self.ticks


def serving(bundle: bytes = BUNDLE.read_bytes()) -> Serving:
    """What Talos makes for its API server from the bundle's CA, here for 127.0.0.1."""
    authority = read_bundle(bundle, source="bundle").k8s
    ca = x509.load_pem_x509_certificate(authority.crt.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder().subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])).issuer_name(ca.subject)
        .public_key(key.public_key()).serial_number(int.from_bytes(os.urandom(8), "big")).not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False).sign(signer, hashes.SHA256()))
    return Serving(certificate.public_bytes(serialization.Encoding.PEM).decode(), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode(), authority.crt)
