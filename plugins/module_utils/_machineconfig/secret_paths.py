# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which leaves of a configuration or a bundle are secrets.

Patterns are tuples of keys; `*` is any key or list element, `**` everything below. Sources: the flag "holds secrets" of
Talos's document kinds and the list of masked legacy fields; beyond them what people put into free text (proxy URLs with a
password, manifests of Secrets, configuration of extensions).
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .url_passwords import url_passwords

Path = tuple[str, ...]

_KEYS = ("static", "passphrase")
_LEGACY: tuple[Path, ...] = (
    ("machine", "token"),
    ("machine", "ca", "key"),
    ("machine", "registries", "config", "*", "auth", "*"),
    ("machine", "registries", "config", "*", "tls", "clientIdentity", "key"),
    ("machine", "systemDiskEncryption", "*", "keys", "*") + _KEYS,
    ("machine", "network", "interfaces", "*", "wireguard", "privateKey"),
    ("machine", "network", "interfaces", "*", "wireguard", "peers", "*", "presharedKey"),
    ("machine", "network", "interfaces", "*", "vip", "*", "apiToken"),
    ("machine", "network", "interfaces", "*", "vlans", "*", "vip", "*", "apiToken"),
    ("machine", "kubelet", "credentialProviderConfig", "**"),
    ("cluster", "token"),
    ("cluster", "secret"),
    ("cluster", "aescbcEncryptionSecret"),
    ("cluster", "secretboxEncryptionSecret"),
    ("cluster", "ca", "key"),
    ("cluster", "aggregatorCA", "key"),
    ("cluster", "serviceAccount", "key"),
    ("cluster", "etcd", "ca", "key"),
    ("cluster", "extraManifestHeaders", "*"),
)
_DOCUMENTS: dict[str, tuple[Path, ...]] = {
    "DiscoveryIdentityConfig": (("clusterSecret",),),
    "HCloudVIPConfig": (("apiToken",),),
    "KubeAPIServerCAConfig": (("issuingCA", "key"),),
    "KubeAggregatorCAConfig": (("issuingCA", "key"),),
    "KubeServiceAccountConfig": (("issuer", "privateKey"),),
    "KubeEtcdEncryptionConfig": (
        ("config", "resources", "*", "providers", "*", "*", "keys", "*", "secret"),
        ("config", "resources", "*", "providers", "*", "kms", "endpoint"),
    ),
    "KubeExternalManifestConfig": (("headers", "*"),),
    "KubeCredentialProviderConfig": (("configuration", "providers", "*", "env", "*", "value"),),
    "RegistryAuthConfig": (("password",), ("auth",), ("identityToken",)),
    "RegistryTLSConfig": (("clientIdentity", "key"),),
    "SideroLinkConfig": (("uniqueToken",), ("apiUrl",)),
    "WireguardConfig": (("privateKey",), ("peers", "*", "presharedKey")),
    **dict.fromkeys(
        ("VolumeConfig", "UserVolumeConfig", "RawVolumeConfig", "SwapVolumeConfig"), (("encryption", "keys", "*") + _KEYS,)
    ),
}
# Texts of the person's own that may be anything. They are shown as fingerprints, and what looks like a secret inside is one.
_LEGACY_TEXTS: tuple[Path, ...] = (
    ("machine", "files", "*", "content"),
    ("machine", "env", "*"),
    ("machine", "pods", "**"),
    ("cluster", "inlineManifests", "*", "contents"),
)
_DOCUMENT_TEXTS: dict[str, tuple[Path, ...]] = {
    "EnvironmentConfig": (("variables", "*"),),
    "EtcFileConfig": (("contents",),),
    "CRICustomizationConfig": (("content",),),
    "ContainerConfig": (("environment", "*"),),
    "ExtensionServiceConfig": (("configFiles", "*", "content"), ("environment", "*")),
    "KubeInlineManifestConfig": (("manifest",),),
    "KubeStaticPodConfig": (("pod", "**"),),
    "KmsgLogConfig": (("url",),),
}
_BUNDLE: tuple[Path, ...] = (
    ("cluster", "secret"),
    ("secrets", "*"),
    ("trustdinfo", "*"),
    ("certs", "*", "key"),
)
_SECRET_WORD = re.compile(r"(?i)(pass(word|phrase|wd)?|secret|token|api_?key|auth_?key|private_?key|credential)")
_ASSIGNMENT = re.compile(r"""(?im)^[\s"'-]*([A-Za-z0-9_.-]*)["']?\s*[:=]\s*["']?([^\s"',#][^\n"']*)""")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----", re.DOTALL)


def secret_leaves(kind: str, document: Any) -> Iterator[tuple[Path, str]]:
    """(path, value) of every secret leaf of one document as plain data; kind "" is the legacy document.

    A value inside a text of the person's own comes with the path of that text.
    """
    yield from _leaves(document, _LEGACY if not kind else _DOCUMENTS.get(kind, ()))
    for path, text in _leaves(document, _LEGACY_TEXTS if not kind else _DOCUMENT_TEXTS.get(kind, ())):
        for inner in secrets_in_text(path[-1], text):
            yield path, inner
    for path, text in (*_walk(document, ()), *_names(document, ())):
        if "://" in text and len(text) < 4096:
            for found in url_passwords(text):
                yield path, found
        if "PRIVATE KEY-----" in text:
            for pem in _PRIVATE_KEY.finditer(text):
                yield path, pem.group(0)


def sensitive(kind: str, path: Path) -> bool:
    """Whether the leaf at this path is to be shown as a fingerprint only."""
    patterns = (*_LEGACY, *_LEGACY_TEXTS) if not kind else (*_DOCUMENTS.get(kind, ()), *_DOCUMENT_TEXTS.get(kind, ()))
    return any(_matches(pattern, path) for pattern in patterns)


def bundle_leaves(bundle: Any) -> Iterator[tuple[Path, str]]:
    """(path, value) of every secret of a bundle as plain data."""
    return _leaves(bundle, _BUNDLE)


def secrets_in_text(name: str, text: str) -> Iterator[str]:
    """What looks like a secret in free text: `NAME=value` and `name: value` with a telling name, PEM keys, URL passwords.

    name: the key under which the text stands (an environment variable's, say).
    """
    if _SECRET_WORD.search(name) and "\n" not in text:
        yield text
    manifest_of_secret = "kind: Secret" in text
    for found in _ASSIGNMENT.finditer(text):
        word, value = found.group(1), found.group(2).strip()
        if value and value not in ("|", ">", "|-", ">-") and (manifest_of_secret and len(value) > 7 or _SECRET_WORD.search(word)):
            yield value
    for found in _PRIVATE_KEY.finditer(text):
        yield found.group(0)
    yield from url_passwords(text)


def _leaves(data: Any, patterns: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    for pattern in patterns:
        yield from _select(data, pattern, ())


def _select(data: Any, pattern: Path, path: Path) -> Iterator[tuple[Path, str]]:
    if not pattern:
        if isinstance(data, (str, int, float)) and not isinstance(data, bool) and data != "":
            yield path, str(data)
        return
    head, rest = pattern[0], pattern[1:]
    if head == "**":
        yield from _walk(data, path)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            if head == "*" or head == key:
                yield from _select(value, rest, path + (str(key),))
    elif isinstance(data, (list, tuple)) and head == "*":
        for index, value in enumerate(data):
            yield from _select(value, rest, path + (str(index),))


def _walk(data: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _walk(value, path + (str(key),))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _walk(value, path + (str(index),))
    elif isinstance(data, str) and data:
        yield path, data


def _names(data: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The keys of mappings: a mirror is called by its URL."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield path + (str(key),), str(key)
            yield from _names(value, path + (str(key),))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _names(value, path + (str(index),))


def _matches(pattern: Path, path: Path) -> bool:
    for index, head in enumerate(pattern):
        if head == "**":
            return len(path) > index
        if index >= len(path) or head not in ("*", path[index]):
            return False
    return len(pattern) == len(path)
