# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access to the networks of clusters: the API server, and helm (design section 15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._kube import helm
from .._model.container_network import Chart, KubeAccess, Live, NetworkSeen
from .._model.errors import CheckModeWrite
from .._model.observed import Observed
from .._model.records import Json, JsonMap

if TYPE_CHECKING:  # the client takes a third of a second to import: only a run that has to ask pays it
    from .._kube.any_objects import Objects
    from .._kube.api import Api

#: Seconds for a connection and for an answer.
_CONNECT, _ANSWER = 5.0, 10.0
#: Seconds for which an API server that answers is waited for where it is busy; whoever wants to wait for a silent one does so.
_BUSY = 15.0


class KubeNetworks:
    """Implements the port `Networks`. Writes are made through here alone."""

    def __init__(self, check: bool) -> None:
        self._check = check
        self._apis: dict[str, Api] = {}
        self._objects: dict[str, Objects] = {}

    def look(self, access: KubeAccess) -> NetworkSeen:
        from .._kube.network import look

        return look(self._api(access))

    async def render(self, chart: Chart, values: JsonMap, kubernetes: str, apis: Sequence[str] = ()) -> tuple[dict[str, Json], ...]:
        return await helm.render(chart, values, kubernetes, apis)

    def live(self, access: KubeAccess, wanted: Sequence[dict[str, Json]]) -> tuple[Live, ...]:
        return self._of(access).live(wanted)

    def tried(self, access: KubeAccess, wanted: JsonMap) -> Observed[JsonMap]:
        return self._of(access).tried(wanted)

    def create(self, access: KubeAccess, wanted: JsonMap) -> None:
        self._writes()
        self._of(access).create(wanted)

    def replace(self, access: KubeAccess, wanted: JsonMap) -> None:
        self._writes()
        self._of(access).replace(wanted)

    def close(self) -> None:
        """Close every connection."""
        for api in self._apis.values():
            api.close()

    def _writes(self) -> None:
        if self._check:
            raise CheckModeWrite("an object of the network would be written in check mode")

    def _of(self, access: KubeAccess) -> Objects:
        from .._kube.any_objects import Objects

        if access.cluster not in self._objects:
            self._objects[access.cluster] = Objects(self._api(access), "kube-system")
        return self._objects[access.cluster]

    def _api(self, access: KubeAccess) -> Api:
        from .._kube.access import Access, open_api

        if access.cluster not in self._apis:
            self._apis[access.cluster] = open_api(Access(content=access.kubeconfig), connect=_CONNECT, timeout=_ANSWER, patience=_BUSY,
                                                  silence=0.0)
        return self._apis[access.cluster]
