# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secrets bundle of a cluster: talosctl's secrets.yaml as a value, of both generations, and how it is read and written.

The old generation has an AES-CBC key where the new one has a secretbox key. Certificates and keys are PEM texts here; the file
has them in base64. Nothing is ever encoded anew: what was read is written back as it was (the cluster id has two alphabets).
"""
from __future__ import annotations

import base64
import binascii
import functools
from dataclasses import dataclass, field
from typing import Any

from . import problem
from .documents import Config
from .problem import ConfigProblem
from .scalars import resolve
from .templates import refuse_in_broken_text, refuse_in_nodes
from .yaml_read import MAPPING, Node, decode, read
from .yaml_write import write


@dataclass(frozen=True)
class Pair:
    """A certificate and its key as PEM texts; a part that is not there is ""."""

    crt: str = ""
    key: str = field(default="", repr=False)

    def encoded(self) -> dict[str, str]:
        """`{crt, key}` in base64, as the legacy document has it."""
        return {"crt": encode(self.crt), "key": encode(self.key)}


@dataclass(frozen=True)
class Bundle:
    """All secrets of one cluster. Exactly one of secretbox and aescbc is set in a whole bundle."""

    cluster_id: str
    cluster_secret: str = field(repr=False)
    bootstrap_token: str = field(repr=False)
    trustd_token: str = field(repr=False)
    etcd: Pair
    k8s: Pair
    aggregator: Pair
    service_account: Pair
    os: Pair
    secretbox: str = field(default="", repr=False)
    aescbc: str = field(default="", repr=False)

    def secrets(self) -> frozenset[str]:
        """Every secret value, for masking by value."""
        keys = (pair.key for pair in (self.etcd, self.k8s, self.aggregator, self.service_account, self.os))
        values = (self.cluster_secret, self.bootstrap_token, self.trustd_token, self.secretbox, self.aescbc, *keys)
        return frozenset(value for value in values if value)

    def plain(self) -> dict[str, Any]:
        """The file as data, in its order."""
        secrets: dict[str, str] = {"bootstraptoken": self.bootstrap_token}
        if self.aescbc:
            secrets["aescbcencryptionsecret"] = self.aescbc
        if self.secretbox:
            secrets["secretboxencryptionsecret"] = self.secretbox
        return {
            "cluster": {"id": self.cluster_id, "secret": self.cluster_secret},
            "secrets": secrets,
            "trustdinfo": {"token": self.trustd_token},
            "certs": {
                "etcd": self.etcd.encoded(), "k8s": self.k8s.encoded(), "k8saggregator": self.aggregator.encoded(),
                "k8sserviceaccount": {"key": encode(self.service_account.key)}, "os": self.os.encoded(),
            },
        }

    def text(self) -> str:
        """The file, to the byte as talosctl writes it. Holds every key of the cluster: for a file of mode 0600 or a Secret."""
        return self._text

    @functools.cached_property
    def _text(self) -> str:
        # Written once: it goes into the hash of the inputs of every machine.
        return write(self.plain())


def encode(pem: str) -> str:
    return base64.b64encode(pem.encode("utf-8")).decode("ascii")


def read_bundle(data: bytes | str, *, source: str = "") -> Bundle:
    """Reads secrets.yaml; unknown keys are ignored, as Talos does. What is in it is checked by `check_bundle`.

    Raises ConfigProblem: InvalidYAML, UnexpandedTemplate (what SOPS encrypted, too), or SecretsInvalid when it is no bundle at all or a PEM is no base64.
    """
    try:
        nodes = _read(decode(data))
        refuse_in_nodes(nodes)
        certs = nodes[0].get("certs") if len(nodes) == 1 else None
        if certs is None or certs.kind != MAPPING:
            raise ConfigProblem(
                problem.SECRETS_INVALID, "this is no secrets bundle",
                hint="Give the file that 'talosctl gen secrets' writes, with cluster, secrets, trustdinfo and certs.",
            )
        return _bundle(nodes[0])
    except ConfigProblem as error:
        raise error.at(source=source) from None


def _read(text: str) -> list[Node]:
    try:
        return read(text)
    except ConfigProblem:
        refuse_in_broken_text(text)
        raise


def _bundle(root: Node) -> Bundle:
    def at(*path: str) -> Node | None:
        node: Node | None = root
        for step in path:
            node = node.get(step) if node is not None else None
        return node

    def text(*path: str) -> str:
        node = at(*path)
        if node is None or node.is_null():
            return ""
        if node.kind == MAPPING or not isinstance(node.value, str):
            raise ConfigProblem(problem.SECRETS_INVALID, "a text is expected here", path=".".join(path), line=node.line)
        value = resolve(node)
        return node.value if not isinstance(value, str) else value

    def pem(*path: str) -> str:
        value = text(*path)
        try:
            return base64.b64decode("".join(value.split()), validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            node = at(*path)
            raise ConfigProblem(problem.SECRETS_INVALID, "base64 of a PEM text is expected here", path=".".join(path),
                                line=node.line if node is not None else 0) from None

    def pair(name: str) -> Pair:
        return Pair(pem("certs", name, "crt"), pem("certs", name, "key"))

    return Bundle(
        cluster_id=text("cluster", "id"), cluster_secret=text("cluster", "secret"), bootstrap_token=text("secrets", "bootstraptoken"),
        trustd_token=text("trustdinfo", "token"), etcd=pair("etcd"), k8s=pair("k8s"), aggregator=pair("k8saggregator"),
        service_account=Pair(key=pem("certs", "k8sserviceaccount", "key")), os=pair("os"),
        secretbox=text("secrets", "secretboxencryptionsecret"), aescbc=text("secrets", "aescbcencryptionsecret"),
    )


def bundle_of_config(config: Config) -> Bundle:
    """The bundle of the cluster whose control plane has this configuration, from the legacy document and the documents of 1.14.

    Raises ConfigProblem (SecretsInvalid) for a worker's configuration, which has no keys.
    """
    legacy = config.legacy
    machine: dict[str, Any] = (legacy.data.get("machine") or {}) if legacy is not None else {}
    cluster: dict[str, Any] = (legacy.data.get("cluster") or {}) if legacy is not None else {}
    if machine.get("type") not in ("controlplane", "init"):
        raise ConfigProblem(
            problem.SECRETS_INVALID, "this is no control plane's configuration, so it does not hold the cluster's keys",
            hint="Give the configuration of a control plane.", path="machine.type",
        )
    identity = _data(config, "DiscoveryIdentityConfig")
    service_account = _data(config, "KubeServiceAccountConfig").get("issuer") or {}
    secretbox, aescbc = _encryption(config, cluster)
    return Bundle(
        cluster_id=cluster.get("id") or identity.get("clusterID") or "", cluster_secret=cluster.get("secret") or identity.get("clusterSecret") or "",
        bootstrap_token=cluster.get("token") or "", trustd_token=machine.get("token") or "",
        etcd=_legacy_pair((cluster.get("etcd") or {}).get("ca")),
        k8s=_either(cluster.get("ca"), _data(config, "KubeAPIServerCAConfig")), aggregator=_either(
            cluster.get("aggregatorCA"), _data(config, "KubeAggregatorCAConfig")),
        service_account=Pair(key=_legacy_pair(cluster.get("serviceAccount")).key or service_account.get("privateKey") or ""),
        os=_legacy_pair(machine.get("ca")), secretbox=secretbox, aescbc=aescbc,
    )


def _data(config: Config, kind: str) -> dict[str, Any]:
    found = config.find(kind) if kind in config.schema else None
    return found.data if found is not None else {}


def _legacy_pair(value: dict[str, str] | None) -> Pair:
    if not value:
        return Pair()
    try:
        return Pair(*(base64.b64decode(value.get(part) or "").decode("utf-8") for part in ("crt", "key")))
    except (binascii.Error, ValueError):
        raise ConfigProblem(problem.SECRETS_INVALID, "a certificate or key of the configuration is no PEM text") from None


def _either(legacy: dict[str, str] | None, document: dict[str, Any]) -> Pair:
    if legacy:
        return _legacy_pair(legacy)
    issuing = document.get("issuingCA") or {}
    return Pair(issuing.get("cert") or "", issuing.get("key") or "")


def _encryption(config: Config, cluster: dict[str, Any]) -> tuple[str, str]:
    """(secretbox, aescbc): from the legacy keys, else the first key of the first provider for Secrets."""
    if cluster.get("secretboxEncryptionSecret") or cluster.get("aescbcEncryptionSecret"):
        return cluster.get("secretboxEncryptionSecret") or "", cluster.get("aescbcEncryptionSecret") or ""
    for block in (_data(config, "KubeEtcdEncryptionConfig").get("config") or {}).get("resources") or ():
        if isinstance(block, dict) and "secrets" in (block.get("resources") or ()):
            for provider in block.get("providers") or ():
                for name in ("secretbox", "aescbc"):
                    keys = ((provider or {}).get(name) or {}).get("keys") or ()
                    if keys and isinstance(keys[0], dict):
                        secret = str(keys[0].get("secret") or "")
                        # Talos 1.14 writes an old AES-CBC key as `secretbox` under the name key1
                        old = name == "aescbc" or keys[0].get("name") == "key1"
                        return ("", secret) if old else (secret, "")
    return "", ""
