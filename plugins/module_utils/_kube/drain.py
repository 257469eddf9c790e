# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written to a managed cluster's Kubernetes: a Node is cordoned, marked or deleted, and a pod is evicted (design sections 6, 13 and 14)."""

from __future__ import annotations

from .._model.errors import TalosError
from .._model.observations import NodePlace
from .._model.records import CORDONED_AT, RESET_AT, Json
from .._model.workloads import ASKED, GONE, REFUSED, Eviction, Pod
from .api import MERGE_PATCH, Api, ApiRefused, ApiSilent
from .asking import failed
from .objects import FIELD_MANAGER

#: Says of a later cordon that it is this one, so that nobody's own is taken away.
_UNMARKED: dict[str, Json] = {"metadata": {"annotations": {CORDONED_AT: None}}, "spec": {"unschedulable": None}}


def cordon(api: Api, node: NodePlace, at: str) -> None:
    """Keep new pods away from the Node, and note that it was this product. One that is cordoned already stays as it is."""
    if not node.unschedulable:
        _patch(api, node, {"metadata": {"annotations": {CORDONED_AT: at}}, "spec": {"unschedulable": True}}, "does not cordon")


def uncordon(api: Api, node: NodePlace) -> None:
    """Take back a cordon of this product; somebody else's stays, and a Node that is gone needs none."""
    if node.cordoned_at:
        _patch(api, node, _UNMARKED, "does not uncordon")


def mark_reset(api: Api, node: NodePlace, at: str) -> None:
    """Note on the Node that its machine was reset then (section 6)."""
    _patch(api, node, {"metadata": {"annotations": {RESET_AT: at}}}, "does not mark")


def delete_node(api: Api, node: NodePlace) -> None:
    """Delete this very Node; one of the same name that was made since stays. Raises TalosError."""
    path = f"/api/v1/nodes/{node.name}"
    try:
        api.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": node.uid}})
    except (ApiSilent, ApiRefused) as error:
        if isinstance(error, ApiRefused) and error.status in (404, 409):
            return
        raise failed(api, f"DELETE {path}", f"does not delete the Node {node.name}", error) from None


def evict(api: Api, pod: Pod) -> Eviction:
    """Ask once for this very pod to go. Raises TalosError where the API server forbids it, or does not know evictions."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
    body: dict[str, Json] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name, "namespace": pod.namespace},
                             "deleteOptions": {"preconditions": {"uid": pod.uid}}}
    try:
        api.request("POST", path, body)
    except ApiSilent as silent:
        # It may have heard: whether the pod goes is seen at the next look.
        return Eviction(REFUSED, f"the API server did not answer ({silent.message.rstrip('.')})")
    except ApiRefused as refused:
        if refused.status in (404, 409):
            return Eviction(GONE)
        if refused.status == 403 and "being terminated" in refused.message:
            return Eviction(ASKED)  # its whole namespace goes
        if refused.status in (429, 500, 503, 504):
            return Eviction(REFUSED, (refused.cause or refused.message).rstrip("."))
        raise failed(api, f"POST {path}", f"does not evict {pod}", refused) from None
    return Eviction(ASKED)


def _patch(api: Api, node: NodePlace, patch: dict[str, Json], what: str) -> None:
    """A merge patch of this very Node: one of the same name that was made since, or none, is left alone."""
    path = f"/api/v1/nodes/{node.name}"
    metadata = patch.get("metadata")
    own: dict[str, Json] = {**patch, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "uid": node.uid}}
    try:
        api.request("PATCH", path, own, content_type=MERGE_PATCH, query={"fieldManager": FIELD_MANAGER})
    except (ApiSilent, ApiRefused) as error:
        if isinstance(error, ApiRefused) and (error.status in (404, 409) or error.status == 422 and "metadata.uid" in error.message):
            raise TalosError("RecordChanged", f"The Kubernetes Node {node.name} is gone, or another one now.", "Run this again.") from None
        raise failed(api, f"PATCH {path}", f"{what} the Node {node.name}", error) from None
