# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""talosconfig and kubeconfig as texts: written with one context, and read back to see whether they are still good."""
from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .bring import plain
from .client_certificate import Client, read_client
from .problem import ConfigProblem
from .secrets import Pair, encode
from .yaml_read import MAPPING, read
from .yaml_write import write

TALOSCONFIG, KUBECONFIG = "talosconfig", "kubeconfig"


@dataclass(frozen=True)
class CredentialFile:
    """The one context of such a file. endpoints: of Talos's API; server: URL of Kubernetes' API. ca: PEM text."""

    kind: str
    cluster: str
    ca: str
    client: Client = field(repr=False)
    endpoints: tuple[str, ...] = ()
    server: str = ""

    def text(self) -> str:
        """The file, with every key of the one who holds it: for mode 0600."""
        crt, key = encode(self.client.pair.crt), encode(self.client.pair.key)
        if self.kind == TALOSCONFIG:
            context: dict[str, Any] = {"endpoints": list(self.endpoints), "ca": encode(self.ca), "crt": crt, "key": key}
            return write({"context": self.cluster, "contexts": {self.cluster: context}})
        user = f"{self.client.common_name}@{self.cluster}"
        return write({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [{"name": self.cluster, "cluster": {"server": self.server, "certificate-authority-data": encode(self.ca)}}],
            "users": [{"name": user, "user": {"client-certificate-data": crt, "client-key-data": key}}],
            "contexts": [{"name": user, "context": {"cluster": self.cluster, "namespace": "default", "user": user}}], "current-context": user,
        })


def read_credential_file(data: bytes, kind: str) -> CredentialFile:
    """A file with one context as `text` writes it. Raises ValueError with one sentence for any other, quoting nothing."""
    try:
        nodes = read(data)
    except ConfigProblem:
        raise ValueError("it is no YAML") from None
    root = plain(nodes[0]) if len(nodes) == 1 and nodes[0].kind == MAPPING else {}
    return _talosconfig(root) if kind == TALOSCONFIG else _kubeconfig(root)


def _talosconfig(root: dict[str, Any]) -> CredentialFile:
    contexts = root.get("contexts")
    if not isinstance(contexts, dict) or len(contexts) != 1:
        raise ValueError("it is no talosconfig with one context")
    name, context = next(iter(contexts.items()))
    if not isinstance(context, dict):
        raise ValueError("its context is no mapping")
    client = read_client(Pair(_pem(context.get("crt")), _pem(context.get("key"))))
    return CredentialFile(TALOSCONFIG, str(name), _pem(context.get("ca")), client, tuple(str(one) for one in _sequence(context.get("endpoints"))))


def _kubeconfig(root: dict[str, Any]) -> CredentialFile:
    clusters, users = _sequence(root.get("clusters")), _sequence(root.get("users"))
    if len(clusters) != 1 or len(users) != 1 or not isinstance(clusters[0], dict) or not isinstance(users[0], dict):
        raise ValueError("it is no kubeconfig with one context")
    cluster, user = clusters[0].get("cluster"), users[0].get("user")
    if not isinstance(cluster, dict) or not isinstance(user, dict):
        raise ValueError("it is no kubeconfig with a cluster and a user")
    client = read_client(Pair(_pem(user.get("client-certificate-data")), _pem(user.get("client-key-data"))))
    return CredentialFile(KUBECONFIG, str(clusters[0].get("name")), _pem(cluster.get("certificate-authority-data")), client,
                          server=str(cluster.get("server") or ""))


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _pem(value: Any) -> str:
    try:
        return base64.b64decode("".join(str(value or "").split()), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise ValueError("a certificate or key in it is no base64") from None
