# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access to the Kubernetes of managed clusters, with a kubeconfig that was given, or an administrator's certificate issued in memory from the
bundle (design section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._model.errors import TalosError
from .._model.kubeconfig import Kubeconfig
from .._model.observations import NodePlace
from .._model.observed import Observed
from .._model.ports import Clock, Store
from .._model.records import CLUSTER, text_at

if TYPE_CHECKING:  # the client takes a third of a second to import, and the bundle nearly as long: only a run that has to ask pays it
    from .._kube.access import Access
    from .._kube.api import Api

#: Seconds for a connection and for an answer: a look-up that does not come in time is unknown, and a stop does not wait for more.
_CONNECT, _ANSWER = 2.0, 2.5
#: Seconds for which the Nodes that were read serve everybody of a pass, and for which a cluster that did not tell is not asked again.
_FRESH, _QUIET = 5.0, 30.0
#: Seconds after which a credential is issued, or read, anew: half of what an issued one is good for.
_RENEWED = 1800.0


class ManagedClusters:
    """Implements the port `Whereabouts` for the clusters of a store. Used from threads; two that ask at once both get an answer."""

    #: Seconds for one answer.
    answer_within = _ANSWER

    def __init__(self, store: Store, clock: Clock, given: Kubeconfig | None = None) -> None:
        self._store = store
        self._clock = clock
        self._given = given
        self._apis: dict[str, tuple[Api, float]] = {}
        self._nodes: dict[str, tuple[float, tuple[NodePlace, ...] | TalosError]] = {}

    def __call__(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[NodePlace]:
        """Where a machine's Node is. Raises TalosError where that cannot be told now."""
        from .._kube.nodes import place_of

        return place_of(self._read(cluster), names, uuid, f"Kubernetes of {cluster}")

    def close(self) -> None:
        """Close every connection."""
        for api, dummy in self._apis.values():
            api.close()

    def _read(self, cluster: str) -> tuple[NodePlace, ...]:
        from .._kube.nodes import read_nodes

        now = self._clock.monotonic()
        at, found = self._nodes.get(cluster, (0.0, ()))
        if cluster not in self._nodes or now - at >= (_QUIET if isinstance(found, TalosError) else _FRESH):
            try:
                found = read_nodes(self.api(cluster))
            except TalosError as error:
                found = error
            self._nodes[cluster] = (now, found)
        if isinstance(found, TalosError):
            raise found
        return found

    def api(self, cluster: str) -> Api:
        """A client with what was given, or a certificate that is good for another while."""
        from .._kube.access import open_api

        now = self._clock.now()
        api, until = self._apis.get(cluster, (None, 0.0))
        if api is None or now >= until:
            if api is not None:
                api.close()
            api = open_api(self._access(cluster, now), connect=_CONNECT, timeout=self.answer_within, patience=0.0)
            self._apis[cluster] = (api, now + _RENEWED)
        return api

    def _access(self, cluster: str, now: float) -> Access:
        from .._kube.access import Access, context_for

        if self._given is None:
            return Access(content=self._kubeconfig(cluster, now))
        return Access(self._given.path, self._given.text, context_for(self._given.text, cluster))

    def _kubeconfig(self, cluster: str, now: float) -> str:
        from .admin_access import access_from
        from .rendering import bundle_of

        record = self._store.get(CLUSTER, cluster)
        server = text_at(record.spec, "endpoint") if record is not None else ""
        if record is None or not server:
            raise TalosError("RecordNotFound", f"There is no endpoint of the cluster {cluster} to ask for its Nodes.", "Set the cluster's spec.endpoint.")
        return access_from(bundle_of(self._store, record), cluster, server, now).kubeconfig
