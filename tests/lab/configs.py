# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machine configurations with fresh secrets for tests and the demo: a small cluster's worth, in the form of each version.

Not a renderer: texts with values filled in, just enough for a node (and Talos's own validation) to accept.
"""

from __future__ import annotations

import base64
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.lab.certificates import TEN_YEARS, Authority, Leaf, certificate_pem, issue_client, key_pem, moment, new_authority, talos_key_pem
from tests.lab.machine_calls import talosconfig


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _ecdsa_authority(name: str, now: float) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name)])
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(moment(now)).not_valid_after(moment(now) + TEN_YEARS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    )
    return certificate_pem(certificate), key_pem(key)


def _service_account() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


@dataclass
class ClusterSecrets:
    """The secrets of one cluster, made once."""

    name: str = "demo"
    endpoint: str = "https://127.0.70.1:6443"
    now: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.os: Authority = new_authority(self.now - 60, "talos")
        self.etcd = _ecdsa_authority("etcd", self.now - 60)
        self.k8s = _ecdsa_authority("kubernetes", self.now - 60)
        self.aggregator = _ecdsa_authority("", self.now - 60)
        self.service_account = _service_account()
        self.id = _b64(secrets.token_bytes(32))
        self.secret = _b64(secrets.token_bytes(32))
        self.token = f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"
        self.bootstrap_token = f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"
        self.secretbox = _b64(secrets.token_bytes(32))

    def client(self, *roles: str, **options: Any) -> Leaf:
        """A client certificate of the cluster; `os:admin` without a role."""
        return issue_client(self.os, time.time(), roles or ("os:admin",), **options)

    def talosconfig(self, endpoints: list[str], *roles: str) -> str:
        leaf = self.client(*roles)
        ca = certificate_pem(self.os.certificate)
        return talosconfig(self.name, ca, certificate_pem(leaf.certificate), talos_key_pem(leaf.key), list(roles or ("os:admin",)), endpoints)

    def config(self, kind: str, hostname: str, disk: str = "/dev/sda", version: str = "v1.13.9", install: bool = True, extra: str = "") -> str:
        """A configuration for `controlplane` or `worker`. `extra` is appended, documents and all."""
        plane = kind == "controlplane"
        ca = _b64(certificate_pem(self.os.certificate))
        key = _b64(talos_key_pem(self.os.key)) if plane else '""'
        minor = int(version.removeprefix("v").split(".")[1])
        lines = [
            "version: v1alpha1", "debug: false", "persist: true", "machine:", f"    type: {kind}", f"    token: {self.token}", "    ca:", f"        crt: {ca}",
            f"        key: {key}", "    certSANs: []",
        ]
        if install and minor < 14:
            lines += ["    install:", f"        disk: {disk}", f"        image: registry.example.org/installer:{version}", "        wipe: false"]
        lines += ["    features:", "        diskQuotaSupport: true"]
        if minor < 14:
            lines += self._cluster(plane)
        else:
            lines += ["cluster:", f"    token: {self.bootstrap_token}"]
            if plane:
                lines += ["    etcd:", "        ca:", f"            crt: {_b64(self.etcd[0])}", f"            key: {_b64(self.etcd[1])}"]
        documents = ["\n".join(lines) + "\n"]
        if minor >= 14:
            documents.append(f"apiVersion: v1alpha1\nkind: DiscoveryIdentityConfig\nclusterID: {self.id}\nclusterSecret: {self.secret}\n")
            documents.append(f"apiVersion: v1alpha1\nkind: KubeClusterConfig\nclusterName: {self.name}\nendpoint: {self.endpoint}\n")
            if install:
                documents.append(
                    f"apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller:\n    image: registry.example.org/metal-installer:{version}\n"
                    f'provisioning:\n    diskSelector:\n        match: disk.dev_path == "{disk}"\n    wipe: false\n'
                )
        if hostname:
            documents.append(f"apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: {hostname}\n" if minor >= 13 else "")
            if minor < 13:
                documents.pop()
                documents[0] = documents[0].replace("    certSANs: []\n", f"    certSANs: []\n    network:\n        hostname: {hostname}\n")
        return "---\n".join(documents) + extra

    def _cluster(self, plane: bool) -> list[str]:
        lines = [
            "cluster:", f"    id: {self.id}", f"    secret: {self.secret}", "    controlPlane:", f"        endpoint: {self.endpoint}",
            f"    clusterName: {self.name}", "    network:", "        dnsDomain: cluster.local", "        podSubnets:", "            - 10.244.0.0/16",
            "        serviceSubnets:", "            - 10.96.0.0/12", f"    token: {self.bootstrap_token}",
        ]
        if plane:
            lines += [f"    secretboxEncryptionSecret: {self.secretbox}"]
        lines += ["    ca:", f"        crt: {_b64(self.k8s[0])}", f"        key: {_b64(self.k8s[1]) if plane else chr(34) * 2}"]
        if plane:
            lines += [
                "    aggregatorCA:", f"        crt: {_b64(self.aggregator[0])}", f"        key: {_b64(self.aggregator[1])}", "    serviceAccount:",
                f"        key: {_b64(self.service_account)}", "    discovery:", "        enabled: true", "        registries: {}", "    etcd:", "        ca:",
                f"            crt: {_b64(self.etcd[0])}", f"            key: {_b64(self.etcd[1])}",
            ]
        return lines
