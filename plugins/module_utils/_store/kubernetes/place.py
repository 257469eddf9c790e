# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a store in Kubernetes says of itself, in a Lease that nobody takes: every role can read it already (design section 4)."""

from __future__ import annotations

from ..._kube.api import Api
from ..._kube.objects import FIELD_MANAGER
from ..._model.records import Json, JsonMap, text_at
from ..._model.store_place import StorePlace
from .refusals import doing

#: The Lease's name; those of locks and leaders begin with `talos-` and `ichor-`.
NAME = "store"
_PREFIX = "ichor.maesh.dev/"
_NOTES = {"moved-to": "moved_to", "moved-to-id": "moved_to_id", "filled-from": "filled_from", "filled-from-id": "filled_from_id"}


def read(api: Api, namespace: str) -> StorePlace:
    """Raises TalosError as `store_error` says."""
    with doing("look whether the store has moved", api):
        return _of(api.get(f"{_path(namespace)}/{NAME}"))


def write(api: Api, namespace: str, place: StorePlace) -> StorePlace:
    """Raises TalosError as `store_error` says; `RecordChanged` where another one wrote at the same time."""
    with doing("mark the store", api):
        found = api.get(f"{_path(namespace)}/{NAME}")
        notes: dict[str, Json] = {_PREFIX + note: str(getattr(place, field)) for note, field in _NOTES.items() if getattr(place, field)}
        metadata: dict[str, Json] = {"name": NAME, "namespace": namespace, "annotations": notes}
        if found is not None:
            metadata["resourceVersion"] = text_at(found, "metadata", "resourceVersion")
        body: JsonMap = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}
        if found is None:
            return _of(api.request("POST", _path(namespace), body, query={"fieldManager": FIELD_MANAGER}))
        return _of(api.request("PUT", f"{_path(namespace)}/{NAME}", body, query={"fieldManager": FIELD_MANAGER}))


def _of(found: JsonMap | None) -> StorePlace:
    if found is None:
        return StorePlace()
    said = {field: text_at(found, "metadata", "annotations", _PREFIX + note) for note, field in _NOTES.items()}
    return StorePlace(text_at(found, "metadata", "uid"), **said)


def _path(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
