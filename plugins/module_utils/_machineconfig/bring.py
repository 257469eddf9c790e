# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration that a person brings: what it is, for whom, and what in it must never be shown.

Nothing is rewritten: what is sent to a node is exactly the bytes that were brought (design section 9).
"""
from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import cel, problem
from .masking import Mask
from .problem import ConfigProblem
from .scalars import resolve
from .secret_paths import secret_leaves
from .templates import refuse_encrypted_file, refuse_in_broken_text, refuse_in_nodes
from .yaml_read import MAPPING, SCALAR, Node, decode, read

_LEGACY_KEYS = frozenset({"machine", "cluster", "debug", "persist"})


@dataclass(frozen=True)
class Document:
    """One document of a configuration. kind and name are "" for the legacy document (and name for kinds without one)."""

    kind: str
    name: str
    line: int
    data: dict[str, Any] = field(repr=False)

    @property
    def id(self) -> str:
        return "/".join(part for part in (self.kind or "v1alpha1", self.name) if part)


@dataclass(frozen=True)
class BroughtConfig:
    """What is read off a configuration.

    complete: it has the legacy document, so a node takes it as a whole configuration. role: `controlplane`, `worker`, or ""
    where machine.type is missing or unknown (Talos's `init` is a control plane). install_disk: device path, from the legacy
    section, or from an UnattendedInstallConfig whose selector is exactly one path. install_selector: text of a selector as it
    stands. install_fields: the same as fields of a legacy selector, also read back from an expression that this product wrote; {} where
    only Talos can tell. endpoint: URL. machine_ca: PEM text of the CA certificate that signs the Talos API, "" when unknown.
    secrets: every secret leaf value, for masking by value. masked: the text with every spelling of them hidden.
    sha256: hexadecimal, of the bytes.
    """

    raw: bytes = field(repr=False)
    sha256: str
    documents: tuple[Document, ...]
    complete: bool
    role: str
    hostname: str
    install_disk: str
    install_selector: str
    install_fields: Mapping[str, str]
    install_image: str
    cluster_name: str
    cluster_id: str
    endpoint: str
    machine_ca: str
    accepted_cas: tuple[str, ...]
    secrets: frozenset[str] = field(repr=False)
    masked: str


def bring(data: bytes, *, source: str = "") -> BroughtConfig:
    """Reads a configuration strictly. Raises ConfigProblem with line and one sentence; schema and validation are not checked here."""
    try:
        text = decode(data)
        nodes = read_expanded(text)
        if not nodes:
            raise ConfigProblem(problem.NO_DOCUMENT, "the configuration is empty", hint="Give the machine configuration itself.")
        documents = tuple(_document(node) for node in nodes)
        _refuse_duplicates(documents)
        return _describe(data, text, documents)
    except ConfigProblem as error:
        raise error.at(source=source) from None


def read_expanded(text: str) -> list[Node]:
    """The nodes of a text in which no placeholder of another tool is left (ConfigProblem UnexpandedTemplate)."""
    refuse_encrypted_file(text)
    try:
        nodes = read(text)
    except ConfigProblem:
        refuse_in_broken_text(text)
        raise
    refuse_in_nodes(nodes)
    return nodes


def plain(node: Node) -> Any:
    """The node as plain data: dicts with text keys, lists, scalars as Talos understands them."""
    if node.kind == SCALAR:
        return resolve(node)
    if node.kind == MAPPING:
        return {key.value: plain(value) for key, value in node.value}
    return [plain(value) for value in node.value]


def _document(node: Node) -> Document:
    if node.kind != MAPPING:
        raise ConfigProblem(problem.WRONG_TYPE, "a document has to be a mapping of keys to values", line=node.line)
    data = plain(node)
    kind = data.get("kind")
    if kind is None and _LEGACY_KEYS & data.keys():
        return Document("", "", node.line, data)
    if not isinstance(kind, str) or not kind:
        raise ConfigProblem(
            problem.UNKNOWN_KIND, "a document has neither 'kind' nor 'machine' or 'cluster', so it is no machine configuration",
            line=node.line,
        )
    if data.get("apiVersion") != "v1alpha1":
        raise ConfigProblem(
            problem.UNKNOWN_KIND, f"the document {kind[:64]} has no 'apiVersion: v1alpha1', so it is no Talos document",
            hint="Give Talos machine configuration only; Kubernetes objects go into inline manifests.", line=node.line,
        )
    name = data.get("name")
    return Document(kind, name if isinstance(name, str) else "", node.line, data)


def _refuse_duplicates(documents: tuple[Document, ...]) -> None:
    seen: set[str] = set()
    for document in documents:
        if document.id in seen:
            raise ConfigProblem(problem.DUPLICATE_DOCUMENT, "this document is there twice", document=document.id, line=document.line)
        seen.add(document.id)


def _describe(data: bytes, text: str, documents: tuple[Document, ...]) -> BroughtConfig:
    legacy = next((document.data for document in documents if not document.kind), {})
    by_kind = {document.kind: document.data for document in documents if document.kind}
    machine, cluster = _map(legacy.get("machine")), _map(legacy.get("cluster"))
    install = _map(machine.get("install"))
    unattended = _map(by_kind.get("UnattendedInstallConfig"))
    cluster_document = _map(by_kind.get("KubeClusterConfig"))
    selector = _text(_map(_map(unattended.get("provisioning")).get("diskSelector")).get("match"))
    disk = _text(install.get("disk")) or cel.path_of(selector)
    fields = {key: str(value) for key, value in _map(install.get("diskSelector")).items() if value not in (None, "")}
    if not selector and fields:
        selector = ", ".join(f"{key}: {value}" for key, value in sorted(fields.items()))
    secrets = frozenset(value for document in documents for dummy, value in secret_leaves(document.kind, document.data))
    host = _map(by_kind.get("HostnameConfig"))
    return BroughtConfig(
        raw=data,
        sha256=hashlib.sha256(data).hexdigest(),
        documents=documents,
        complete=any(not document.kind for document in documents),
        role={"init": "controlplane", "controlplane": "controlplane", "worker": "worker", "join": "worker"}.get(_text(machine.get("type")), ""),
        hostname=_text(host.get("hostname")) or _text(_map(machine.get("network")).get("hostname")),
        install_disk=disk,
        install_selector=selector,
        install_fields=fields or cel.selector_of(selector),
        install_image=_text(install.get("image")) or _text(_map(unattended.get("installer")).get("image")),
        cluster_name=_text(cluster.get("clusterName")) or _text(cluster_document.get("clusterName")),
        cluster_id=_text(cluster.get("id")) or _text(_map(by_kind.get("DiscoveryIdentityConfig")).get("clusterID")),
        endpoint=_text(_map(cluster.get("controlPlane")).get("endpoint")) or _text(cluster_document.get("endpoint")),
        machine_ca=_pem(_text(_map(machine.get("ca")).get("crt"))),
        accepted_cas=tuple(_pem(_text(_map(entry).get("crt"))) for entry in _list(machine.get("acceptedCAs"))),
        secrets=secrets,
        masked=Mask(secrets)(text),
    )


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _pem(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
