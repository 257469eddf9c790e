# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The secrets bundle as a Secret of its name (design section 4)."""

from __future__ import annotations

import base64
import binascii

from ..._kube.api import MERGE_PATCH, Api, ApiRefused
from ..._kube.objects import FIELD_MANAGER
from ..._model.errors import TalosError
from ..._model.records import JsonMap, text_at
from .refusals import doing

KEY = "secrets.yaml"


def read(api: Api, namespace: str, name: str) -> bytes:
    """The bundle. Raises `SecretsUnavailable`."""
    try:
        found = _found(api, namespace, name)
    except TalosError as error:
        raise TalosError("SecretsUnavailable", f"The secrets bundle {name} cannot be read: {error.message}", error.hint, error.detail) from None
    if found is None:
        raise TalosError("SecretsUnavailable", f"There is no secrets bundle {name}: no Secret of that name in namespace {namespace}.",
                         "Make it with talos_secrets, or correct the cluster's spec.secretsRef.")
    try:
        data = base64.b64decode(text_at(found, "data", KEY), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise TalosError("SecretsUnavailable", f"The Secret {namespace}/{name} holds no bundle: it has no key {KEY}.",
                         f"Put the bundle under the key {KEY}, or import it with talos_secrets.")
    return data


def form(api: Api, namespace: str, name: str) -> str:
    """`absent` or `clear`."""
    return "absent" if _found(api, namespace, name) is None else "clear"


def write(api: Api, namespace: str, name: str, data: bytes, *, replace: bool) -> None:
    """Make the Secret, or with `replace` put the bundle into the one that is there. Raises `RecordExists`."""
    content = {KEY: base64.b64encode(data).decode()}
    query = {"fieldManager": FIELD_MANAGER}
    with doing(f"write the Secret {name}", api):
        try:
            api.request("POST", f"/api/v1/namespaces/{namespace}/secrets",
                        {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name, "namespace": namespace}, "data": dict(content)},
                        query=query)
        except ApiRefused as refused:
            if refused.reason != "AlreadyExists":
                raise
            if not replace:
                raise TalosError("RecordExists", f"There is a Secret {namespace}/{name} already.",
                                 "Choose another name for the bundle, or have it replaced.") from None
            api.request("PATCH", _path(namespace, name), {"data": dict(content)}, query=query, content_type=MERGE_PATCH)


def _found(api: Api, namespace: str, name: str) -> JsonMap | None:
    with doing(f"read the Secret {name}", api):
        return api.get(_path(namespace, name))


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"
