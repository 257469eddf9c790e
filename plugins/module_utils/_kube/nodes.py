# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Nodes of a managed cluster: which of them a machine is, and where it is now (design section 10)."""

from __future__ import annotations

from collections.abc import Sequence

from .._model.errors import Failure, TalosError
from .._model.identity import canonical_uuid
from .._model.observations import NodePlace
from .._model.observed import Absent, Observed, Present
from .._model.records import JsonMap, list_at, text_at
from .api import Api, ApiRefused, ApiSilent

_PAGE = "500"


def read_nodes(api: Api) -> tuple[NodePlace, ...]:
    """Every Node. Raises TalosError where the API server does not answer or does not tell: unknown is never absent."""
    nodes: list[NodePlace] = []
    token: str | None = ""
    while token is not None:
        try:
            answer = api.request("GET", "/api/v1/nodes", query={"limit": _PAGE, **({"continue": token} if token else {})})
        except ApiSilent as silent:
            raise TalosError("TimedOut", f"The cluster's API server {api.host} did not answer: {silent.message}.", "Look at the cluster's endpoint.",
                             failure=Failure(node=api.host, rpc="GET /api/v1/nodes", retryable=True)) from None
        except ApiRefused as refused:
            reason = "PermissionDenied" if refused.status in (401, 403) else "CallFailed"
            raise TalosError(reason, f"The cluster's API server {api.host} does not tell its Nodes: {refused.message.rstrip('.')}.",
                             "Look at the cluster's endpoint and at its secrets bundle.",
                             failure=Failure(node=api.host, rpc="GET /api/v1/nodes", code=str(refused.status))) from None
        nodes += [_place(item) for item in list_at(answer, "items") if isinstance(item, dict)]
        token = text_at(answer, "metadata", "continue") or None
    return tuple(nodes)


def place_of(nodes: Sequence[NodePlace], names: Sequence[str], uuid: str, source: str = "") -> Observed[NodePlace]:
    """The Node of one of these names, tried in order, else the one whose systemUUID is that; a kubelet may write it in upper case."""
    by_name = {node.name.lower(): node for node in nodes}
    for name in names:
        found = by_name.get(name.lower())
        if found is not None:
            return Present(found, source)
    wanted = canonical_uuid(uuid)
    alike = [node for node in nodes if wanted and canonical_uuid(node.system_uuid) == wanted]
    return Present(alike[0], source) if len(alike) == 1 else Absent(source)


def _place(item: JsonMap) -> NodePlace:
    addresses = [text_at(entry, "address") for entry in list_at(item, "status", "addresses") if text_at(entry, "type") == "InternalIP"]
    return NodePlace(text_at(item, "metadata", "name"), tuple(address for address in addresses if address),
                     text_at(item, "status", "nodeInfo", "systemUUID"))
