# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The port to a managed cluster's Kubernetes, in memory: for what a run does around it, killed and stopped at every boundary.

What the API server itself does is tried with a real one (test_draining).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.drain import elsewhere
from ansible_collections.ichor.talos.plugins.module_utils._kube.nodes import place_of
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import NodePlace
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Absent, Observed, Present
from ansible_collections.ichor.talos.plugins.module_utils._model.workloads import ASKED, REFUSED, Eviction, Hosting, Pod


@dataclass
class Kubernetes:
    """Implements the port `Workloads`. `call` hears of each call before and after it is made. `held`: pods whose eviction is refused."""

    call: Callable[[str], None]
    known: dict[str, NodePlace] = field(default_factory=dict)
    running: dict[str, list[Pod]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    away: bool = False
    #: Every write, in order.
    written: list[str] = field(default_factory=list)

    def add(self, name: str, uuid: str = "", *pods: Pod) -> None:
        self.known[name] = NodePlace(name, ("10.0.0.1",), uuid, f"uid-{name}", name, ready=True)
        self.running[name] = list(pods)

    def nodes(self, cluster: str) -> tuple[NodePlace, ...]:
        self._asked("nodes")
        return tuple(self.known.values())

    def node(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[NodePlace]:
        return place_of(self.nodes(cluster), names, uuid)

    def hosting(self, cluster: str, names: Sequence[str], uuid: str) -> Observed[Hosting]:
        nodes = self.nodes(cluster)
        found = place_of(nodes, names, uuid)
        if not isinstance(found, Present):
            return Absent()
        return Present(Hosting(found.value, tuple(self.running[found.value.name]), elsewhere=elsewhere(nodes, found.value)))

    def pods(self, cluster: str, node: str) -> tuple[Pod, ...]:
        self._asked(f"pods {node}")
        return tuple(self.running[node])

    def cordon(self, cluster: str, node: NodePlace, at: str) -> None:
        if not node.unschedulable:
            self._write(f"cordon {node.name}", lambda: self._change(node.name, unschedulable=True, cordoned_at=at))

    def uncordon(self, cluster: str, node: NodePlace) -> None:
        if node.cordoned_at:
            self._write(f"uncordon {node.name}", lambda: self._change(node.name, unschedulable=False, cordoned_at=""))

    def evict(self, cluster: str, pod: Pod) -> Eviction:
        if str(pod) in self.held:
            self._asked(f"evict {pod}")
            return Eviction(REFUSED, "the budget allows nothing")

        def gone() -> None:
            for pods in self.running.values():
                pods[:] = [one for one in pods if one.uid != pod.uid]

        self._write(f"evict {pod}", gone)
        return Eviction(ASKED)

    def mark_reset(self, cluster: str, node: NodePlace, at: str) -> None:
        self._write(f"mark {node.name}", lambda: self._change(node.name, reset_at=at))

    def delete_node(self, cluster: str, node: NodePlace) -> None:
        self._write(f"delete {node.name}", lambda: self.known.pop(node.name, None))

    def _change(self, name: str, **changes: object) -> None:
        self.known[name] = replace(self.known[name], **changes)  # type: ignore[arg-type]

    def _asked(self, what: str) -> None:
        self.call(what)
        if self.away:
            raise TalosError("TimedOut", "The cluster's API server did not answer.", "Look at it.")

    def _write(self, what: str, change: Callable[[], object]) -> None:
        self._asked(what)
        change()
        self.written.append(what)
        self.call(f"{what} is written")
