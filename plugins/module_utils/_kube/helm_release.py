# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record that Helm keeps of a release: a Secret with gzipped JSON, encoded twice, or with HELM_DRIVER=configmap a ConfigMap (design section 15)."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib

from .._model.container_network import Release
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.records import Json, JsonMap, dig, text_at
from .api import Api
from .asking import listed

#: No record unpacks to more bytes: Helm keeps one in a Secret, which is 1 MiB at most.
LARGEST = 32 << 20
_HEAD = re.compile(r"^(apiVersion|kind):\s*[\"']?([^\s\"'#]+)", re.MULTILINE)
_METADATA = re.compile(r"^metadata:[^\n]*\n((?:[ #][^\n]*\n|\n)+)", re.MULTILINE)
_NAMED = re.compile(r"^  (name|namespace):\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


def read_release(api: Api, namespace: str, name: str) -> Observed[Release]:
    """The newest revision of a release. Unknown where its record is not understood. Raises TalosError where the API server does not tell."""
    for resource in ("secrets", "configmaps"):
        kept = listed(api, f"/api/v1/namespaces/{namespace}/{resource}", "its Helm releases", {"labelSelector": f"owner=helm,name={name}"})
        newest = max(kept, key=_revision, default=None)
        if newest is not None:
            return release_of(newest, encoded=resource == "secrets")
    return Absent()


def release_elsewhere(api: Api, namespace: str, name: str) -> str:
    """The namespace that has the record of a release into `namespace`, as Flux keeps one beside its HelmRelease; '' where none has. Raises TalosError."""
    for kept in listed(api, "/api/v1/secrets", "its Helm releases", {"labelSelector": f"owner=helm,name={name}"}):
        found = release_of(kept)
        if isinstance(found, Present) and found.value.namespace == namespace:
            return text_at(kept, "metadata", "namespace")
    return ""


def release_of(kept: JsonMap, encoded: bool = True) -> Observed[Release]:
    """What a Secret or a ConfigMap of Helm says; Unknown, in words, where it is not understood. `encoded`: once more, as the API has what is in Secrets."""
    told = f"the {'Secret' if encoded else 'ConfigMap'} {text_at(kept, 'metadata', 'name')}"
    data = text_at(kept, "data", "release")
    try:
        record = json.loads(_unpacked(base64.b64decode(data) if encoded else data.encode()))
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        return Unknown("ReleaseUnsettled", f"{told} is not understood ({type(error).__name__})")
    if not isinstance(record, dict):
        return Unknown("ReleaseUnsettled", f"{told} holds no release")
    values = dig(record, "config")
    revision = record.get("version")
    return Present(Release(
        text_at(record, "name"), text_at(record, "namespace"), revision if isinstance(revision, int) else _revision(kept), text_at(record, "info", "status"),
        text_at(record, "chart", "metadata", "name"), text_at(record, "chart", "metadata", "version"), values if isinstance(values, dict) else {},
        _objects(text_at(record, "manifest"))))


def _revision(kept: JsonMap) -> int:
    found = text_at(kept, "metadata", "labels", "version")
    return int(found) if found.isdigit() else 0


def _unpacked(data: bytes) -> bytes:
    """The JSON: base64 once more, and gzip where Helm compressed it. Raises ValueError where that is too much."""
    inner = base64.b64decode(data)
    if not inner.startswith(b"\x1f\x8b"):
        return inner
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    text = unpacking.decompress(inner, LARGEST)
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ValueError("it is cut off, or too large")
    return text


def _objects(manifest: str) -> tuple[tuple[str, str, str, str], ...]:
    """(apiVersion, kind, namespace, name) of each object of a manifest, read from the lines that tell it; Helm writes two spaces a level."""
    found = []
    for document in re.split(r"^---.*$", manifest, flags=re.MULTILINE):
        head: dict[str, Json] = dict(_HEAD.findall(document))
        metadata = _METADATA.search(document + "\n")
        names = dict(_NAMED.findall(metadata.group(1))) if metadata is not None else {}
        if head.get("kind") and names.get("name"):
            found.append((str(head.get("apiVersion") or ""), str(head["kind"]), str(names.get("namespace") or ""), str(names["name"])))
    return tuple(found)
