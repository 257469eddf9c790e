# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine configuration as a node reads it: documents, strict decoding, and the few values that the lab acts on.

Errors are `ConfigError` with Talos's text. Only what a node of this lab needs is understood; a validation oracle made of
Talos's own code can be asked beside it (see `apply`).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from cryptography import x509

from tests.lab import goyaml
from tests.lab.certificates import Authority, load_key
from tests.lab.schema import flatten, schema, unknown


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class ConfigError(Exception):
    """A configuration that Talos refuses; the text is Talos's."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2 as Go reads it: only true and false are booleans, no base 60, no dates."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int")]
    for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+|0o?[0-7]+)$"), list("-+0123456789"))


def _integer(loader: Any, node: Any) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text.lstrip("+"))
    base = 16 if digits.lower().startswith("0x") else (8 if digits.startswith("0") and len(digits) > 1 else 10)
    return sign * int(digits.lower().removeprefix("0x").removeprefix("0o") or "0", base)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


@dataclass
class Document:
    """One document. `kind` is `v1alpha1` for the legacy one, whose API version is empty."""

    kind: str
    api_version: str
    name: str
    line: int
    tree: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{self.api_version}/{self.kind}/{self.name}"


@dataclass
class Config:
    """A decoded configuration. `raw` is what was sent, byte for byte."""

    raw: bytes
    version: int
    documents: list[Document] = field(default_factory=list)

    @property
    def v1alpha1(self) -> dict[str, Any] | None:
        return next((document.tree for document in self.documents if document.kind == "v1alpha1"), None)

    def document(self, kind: str) -> dict[str, Any] | None:
        return next((document.tree for document in self.documents if document.kind == kind), None)

    @property
    def complete(self) -> bool:
        return self.v1alpha1 is not None

    @property
    def machine(self) -> dict[str, Any]:
        return (self.v1alpha1 or {}).get("machine") or {}

    @property
    def cluster(self) -> dict[str, Any]:
        return (self.v1alpha1 or {}).get("cluster") or {}

    @property
    def machine_type(self) -> str:
        return str(self.machine.get("type") or "worker") if self.complete else "unknown"

    @property
    def control_plane(self) -> bool:
        return self.machine_type in ("controlplane", "init")

    @property
    def hostname(self) -> str:
        document = self.document("HostnameConfig") or {}
        return str((self.machine.get("network") or {}).get("hostname") or document.get("hostname") or "")

    @property
    def endpoint(self) -> str:
        document = self.document("KubeClusterConfig") or {}
        return str((self.cluster.get("controlPlane") or {}).get("endpoint") or document.get("endpoint") or "")

    @property
    def cluster_name(self) -> str:
        return str(self.cluster.get("clusterName") or (self.document("KubeClusterConfig") or {}).get("clusterName") or "")

    @property
    def cluster_id(self) -> str:
        return str(self.cluster.get("id") or (self.document("DiscoveryIdentityConfig") or {}).get("clusterID") or "")

    @property
    def discovers(self) -> bool:
        """False where the discovery of the cluster's members is turned off."""
        return (self.cluster.get("discovery") or {}).get("enabled", True) is not False

    @property
    def token(self) -> str:
        return str(self.machine.get("token") or "")

    @property
    def install(self) -> dict[str, Any] | None:
        return self.machine.get("install")

    @property
    def unattended(self) -> dict[str, Any] | None:
        return self.document("UnattendedInstallConfig")

    @property
    def install_image(self) -> str:
        if self.unattended is not None:
            return str((self.unattended.get("installer") or {}).get("image") or "")
        return str((self.install or {}).get("image") or "")

    @property
    def cert_sans(self) -> list[str]:
        return [str(name) for name in self.machine.get("certSANs") or []]

    def authority(self) -> Authority | None:
        """The OS CA of machine.ca; None where there is none or it cannot be read."""
        return _authority(self.machine.get("ca"))

    def accepted(self) -> list[x509.Certificate]:
        found = [_authority(item) for item in self.machine.get("acceptedCAs") or []]
        return [item.certificate for item in found if item is not None]

    @property
    def etcd_ca(self) -> str:
        """What tells one etcd cluster's members from another's."""
        return str(((self.cluster.get("etcd") or {}).get("ca") or {}).get("crt") or "")

    def etcd_authority(self) -> Authority | None:
        """The CA that issues the certificates of etcd's members and clients."""
        return _authority((self.cluster.get("etcd") or {}).get("ca"))

    @property
    def etcd_image(self) -> str:
        return str((self.cluster.get("etcd") or {}).get("image") or "")


def _authority(item: Any) -> Authority | None:
    if not isinstance(item, dict) or not item.get("crt"):
        return None
    try:
        certificate = x509.load_pem_x509_certificate(_decode(item["crt"]))
        key = load_key(_decode(item["key"])) if item.get("key") else None
    except (ValueError, TypeError, binascii.Error):
        return None
    return Authority(certificate, key)


def _decode(text: Any) -> bytes:
    return base64.b64decode("".join(str(text).split()))


def _parse_error(error: yaml.YAMLError, version: int) -> str:
    """The text of a YAML error as each version's library words it."""
    if isinstance(error, yaml.reader.ReaderError):
        value = error.character if isinstance(error.character, int) else ord(error.character)
        if version >= 14:
            return f"decode error: go-yaml load error in reader at <unknown position>: control characters are not allowed (value: {value})"
        return f"decode error: yaml: offset {error.position}: control characters are not allowed"
    context, problem, mark = getattr(error, "context", None), getattr(error, "problem", None), getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    name = "parser" if isinstance(error, yaml.parser.ParserError) else "scanner"
    if version >= 14:
        inner = f" ({context})" if context else ""
        return f"decode error: go-yaml load error in {name}{inner} at L{line}.C{column}: {problem}"
    shown = line if name == "scanner" else line - 1  # the older library counts the lines of its parser from zero
    where = f"{context} at line {shown}" if context else f"line {shown}"
    return f"decode error: yaml: {where}: {problem}"


def load(raw: bytes, version: int) -> Config:
    """Decodes strictly; ConfigError with Talos's text where Talos refuses."""
    config = Config(raw, version)
    seen: set[str] = set()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    control = _CONTROL.search(text)
    if control is not None:
        if version >= 14:
            raise ConfigError(
                f"decode error: go-yaml load error in reader at <unknown position>: control characters are not allowed (value: {ord(control.group(0))})"
            )
        raise ConfigError("decode error: yaml: offset 0: control characters are not allowed")
    text = text.removeprefix("\ufeff")
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            document = _document(loader, node, version)
            if document is None:
                continue
            if document.title in seen:
                raise ConfigError(f"duplicate document {document.title} is not allowed (line {document.line})")
            seen.add(document.title)
            config.documents.append(document)
    except yaml.YAMLError as error:
        raise ConfigError(_parse_error(error, version)) from error
    finally:
        loader.dispose()
    if not config.documents:
        raise ConfigError("config not found")
    return config


def _document(loader: Any, node: Any, version: int) -> Document | None:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return None
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"expected a YAML document at line {line}")
    tree = loader.construct_document(node)
    if not tree:
        return None
    kind, api_version = tree.get("kind"), tree.get("apiVersion")
    known = schema(version)
    if kind is None and ("machine" in tree or "cluster" in tree):
        document = Document("v1alpha1", "", "", line, tree)
        fields = known.config["fields"]
    else:
        name = str(tree.get("name") or "")
        document = Document(str(kind or "v1alpha1"), str(api_version or ""), name if kind is not None else "", line, tree)
        if kind is None:
            raise ConfigError(f"error decoding document /v1alpha1/ (line {line}): missing kind")
        if api_version is None:
            raise ConfigError(f"error decoding document {document.title} (line {line}): missing apiVersion")
        entry = known.kind(str(kind), str(api_version))
        if entry is None:
            raise ConfigError(f'error decoding document {document.title} (line {line}): "{kind}" "{api_version}": not registered')
        fields = entry["fields"]
        _types(document, node, fields, entry["pkg"], version)
    rest = unknown(tree, fields)
    if rest is not None:
        raise ConfigError(f"error decoding document {document.title} (line {line}): unknown keys found during decoding:\n{goyaml.dump(rest)}")
    return document


def _types(document: Document, node: Any, fields: list[dict[str, Any]], package: str, version: int) -> None:
    """The commonest type error: a list or a mapping where a text belongs."""
    kinds = {item["n"]: item["t"] for item in flatten(fields)}
    for key, value in node.value:
        if kinds.get(key.value) == "string" and not isinstance(value, yaml.ScalarNode):
            tag = "!!seq" if isinstance(value, yaml.SequenceNode) else "!!map"
            where = f"line {value.start_mark.line + 1}: cannot construct {tag} into string"
            joint = " " if version >= 14 else "\n  "
            raise ConfigError(
                f"error decoding document {document.title} (line {document.line}): error decoding {document.kind} to *{package}: "
                f"yaml: construct errors:{joint}{where}"
            )
