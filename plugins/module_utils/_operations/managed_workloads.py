# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on the Nodes of managed clusters, read and written with the same credential as their whereabouts (design sections 10, 11 and 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._decide.drain import elsewhere
from .._model.errors import CheckModeWrite
from .._model.kubeconfig import Kubeconfig
from .._model.observations import NodePlace
from .._model.observed import Absent, Observed, Present
from .._model.ports import Clock, Store
from .._model.workloads import Eviction, Hosting, Pod
from .managed_cluster import ManagedClusters

if TYPE_CHECKING:
    from .._kube.api import Api


class ManagedWorkloads(ManagedClusters):
    """Implements the ports `Whereabouts` and `Workloads`. `check`: nothing may be written."""

    #: Whole lists take longer than one look-up, and nobody waits for the thread that reads them.
    answer_within = 10.0

    def __init__(self, store: Store, clock: Clock, check: bool = False, given: Kubeconfig | None = None) -> None:
        super().__init__(store, clock, given)
        self._check = check

    def nodes(self, cluster: str) -> tuple[NodePlace, ...]:
        """As they are now."""
        from .._kube.nodes import read_nodes

        return read_nodes(self.api(cluster))

    def node(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[NodePlace]:
        from .._kube.nodes import place_of

        return place_of(self.nodes(cluster), names, uuid, f"Kubernetes of {cluster}")

    def hosting(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[Hosting]:
        from .._kube.nodes import place_of
        from .._kube.pods import read_budgets, read_pods, read_volumes

        nodes = self.nodes(cluster)
        found = place_of(nodes, names, uuid, f"Kubernetes of {cluster}")
        if not isinstance(found, Present):
            return Absent(f"Kubernetes of {cluster}")
        api, node = self.api(cluster), found.value
        return Present(Hosting(node, read_pods(api, node.name), read_volumes(api), read_budgets(api), elsewhere(nodes, node)), found.source)

    def pods(self, cluster: str, node: str) -> tuple[Pod, ...]:
        from .._kube.pods import read_pods

        return read_pods(self.api(cluster), node)

    def cordon(self, cluster: str, node: NodePlace, at: str) -> None:
        from .._kube.drain import cordon

        cordon(self._writing(cluster, "cordon"), node, at)

    def uncordon(self, cluster: str, node: NodePlace) -> None:
        from .._kube.drain import uncordon

        uncordon(self._writing(cluster, "uncordon"), node)

    def evict(self, cluster: str, pod: Pod) -> Eviction:
        from .._kube.drain import evict

        return evict(self._writing(cluster, "evict"), pod)

    def mark_reset(self, cluster: str, node: NodePlace, at: str) -> None:
        from .._kube.drain import mark_reset

        mark_reset(self._writing(cluster, "mark_reset"), node, at)

    def delete_node(self, cluster: str, node: NodePlace) -> None:
        from .._kube.drain import delete_node

        delete_node(self._writing(cluster, "delete_node"), node)

    def _writing(self, cluster: str, what: str) -> Api:
        """The one place through which anything is written to a managed cluster's Kubernetes."""
        if self._check:
            raise CheckModeWrite(f"{what} of cluster {cluster} in check mode")
        return self.api(cluster)
