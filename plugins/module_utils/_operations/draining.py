# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draining a Node under the lock of its cluster: cordon, evict, wait until the pods are gone (design sections 11 and 14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from .._decide.drain import is_other_machine, left_over, to_go
from .._decide.lock import Disruption, disruption_of
from .._decide.moved_node import names_of
from .._model.errors import Failure, TalosError
from .._model.machine import cluster_of, identity_of
from .._model.moments import moment
from .._model.observations import NodePlace
from .._model.observed import Absent, Observed, Present
from .._model.ports import Ports, Workloads
from .._model.records import Record
from .._model.timing import Timing
from .._model.workloads import GONE, REFUSED, Eviction, Hosting, Pod
from .disruption import announce, withdraw
from .in_thread import in_thread
from .lease import Held
from .life_reads import unknown
from .node_cordon import take_back
from .teller import Teller

#: Between two looks at what is left, in seconds; an eviction that a budget stood against is asked for again with each.
_AGAIN = 2.0
#: Evictions that are asked for between two renewals of the lock.
_AT_ONCE = 20

T = TypeVar("T")


async def hosting_of(ports: Ports, machine: Record) -> Observed[Hosting] | None:
    """The machine's Node and what is on it; None where no Kubernetes can be asked from here."""
    workloads = ports.workloads
    if workloads is None:
        return None
    port = workloads
    try:
        return await in_thread(lambda: port.hosting(cluster_of(machine), names_of(machine), identity_of(machine).uuid))
    except TalosError as error:
        return unknown(error)


async def ready_of(ports: Ports, machine: Record) -> Observed[bool]:
    """Whether the machine's Node is Ready; Absent where it has none, or none can be asked for."""
    workloads = ports.workloads
    if workloads is None:
        return Absent("no Kubernetes")
    port = workloads
    try:
        found = await in_thread(lambda: port.node(cluster_of(machine), names_of(machine), identity_of(machine).uuid))
    except TalosError as error:
        return unknown(error)
    return Present(found.value.ready, found.source) if isinstance(found, Present) else found


async def drain(ports: Ports, cluster: Record, machine: Record, node: NodePlace, purpose: str, lease: Held, timing: Timing) -> None:
    """Every pod that has to go is gone when this returns. The disruption that is written first stands until the caller writes the next.

    Raises TalosError `DrainRequired` that names what blocks after `timing.drain` seconds, `OperationInProgress` where another machine's
    disruption stands, and what the lock raises; the cordon is taken back then, where this product made it.
    """
    if ports.workloads is None:
        raise TalosError("DrainRequired", "The node cannot be drained from here.", "Drain it with kubectl first.")
    lease.confirm()
    announce(ports, cluster, Disruption(machine.name, "drain", moment(ports.clock.now()), node=node.name))
    try:
        await _Drain(ports, ports.workloads, cluster.name, node, purpose, lease, Teller(ports, machine.name)).run(timing)
    except TalosError as error:
        stays = await give_up(ports, cluster, machine, node.name)
        if stays:
            error = replace(error, message=f"{error.message} Its Node stays cordoned ({stays}).")
        raise error from None


async def give_up(ports: Ports, cluster: Record, machine: Record, node: str) -> str:
    """What was drained is not done to the machine after all: its Node takes pods again; why it does not, or ''. Where it does not, the
    disruption stays, and a later look takes the cordon back."""
    stays = await take_back(ports, cluster.name, node)
    latest = ports.store.get(cluster.kind, cluster.name) if ports.store is not None else None
    open_one = disruption_of(latest)
    if not stays and latest is not None and open_one is not None and (open_one.machine, open_one.step) == (machine.name, "drain"):
        withdraw(ports, latest, open_one)
    return stays


async def mark_reset(ports: Ports, machine: Record, hosting: Observed[Hosting] | None) -> None:
    """Mark the machine's Node with the time, so that discovery looks there again (section 6). Where that cannot be done it is told, and
    keeps nobody: the mark only makes the machine found sooner."""
    workloads = ports.workloads
    if workloads is None or not isinstance(hosting, Present) or is_other_machine(hosting.value.node, identity_of(machine).uuid):
        return
    port, node, at = workloads, hosting.value.node, moment(ports.clock.now())
    try:
        await in_thread(lambda: port.mark_reset(cluster_of(machine), node, at))
    except TalosError as error:
        ports.progress(f"{machine.name}: its Kubernetes Node is not marked: {error.message}")


async def delete_node(ports: Ports, machine: Record, node: NodePlace) -> None:
    """Delete this very Node. Raises TalosError."""
    workloads = ports.workloads
    if workloads is None:
        raise TalosError("CallFailed", "The Kubernetes Node cannot be deleted from here.", "Delete it with kubectl delete node.")
    port = workloads
    ports.progress(f"{machine.name}: deleting Kubernetes Node {node.name}")
    await in_thread(lambda: port.delete_node(cluster_of(machine), node))


class _Drain:
    """One drain of one Node."""

    def __init__(self, ports: Ports, workloads: Workloads, cluster: str, node: NodePlace, purpose: str, lease: Held, teller: Teller) -> None:
        self._ports, self._workloads, self._cluster, self._node = ports, workloads, cluster, node
        self._purpose, self._lease, self._teller = purpose, lease, teller
        self._refused: dict[str, str] = {}
        self._silent = ""

    async def run(self, timing: Timing) -> None:
        clock = self._ports.clock
        deadline = clock.monotonic() + timing.drain
        at = moment(clock.now())
        await self._ask(lambda: self._workloads.cordon(self._cluster, self._node, at))
        while True:
            left = await self._left()
            if left == ():
                return
            if left is not None:
                await self._evict([pod for pod in left if not pod.deleting], deadline)
                self._teller(f"draining Node {self._node.name}: {left_over(left, self._refused)}", str(len(left)))
            remaining = deadline - clock.monotonic()
            if remaining <= 0:
                raise self._blocked(left, timing.drain)
            await clock.sleep(min(_AGAIN, timing.follow, remaining))

    async def _left(self) -> tuple[Pod, ...] | None:
        """What has to go and is still there; None where that cannot be read now, which is asked again."""
        try:
            pods = await self._ask(lambda: self._workloads.pods(self._cluster, self._node.name))
        except TalosError as error:
            self._silent = error.message.rstrip(".")
            return None
        self._silent = ""
        return to_go(pods, self._purpose)

    async def _evict(self, pods: Sequence[Pod], deadline: float) -> None:
        for number, pod in enumerate(pods):
            if number % _AT_ONCE == 0:
                self._lease.confirm()
            found = await self._ask(self._eviction(pod))
            if found.state == REFUSED:
                self._refused[pod.uid] = found.why
            elif found.state != GONE:
                self._refused.pop(pod.uid, None)
            if self._ports.clock.monotonic() >= deadline:
                return

    def _eviction(self, pod: Pod) -> Callable[[], Eviction]:
        return lambda: self._workloads.evict(self._cluster, pod)

    def _blocked(self, left: tuple[Pod, ...] | None, seconds: float) -> TalosError:
        if left is None:
            message = f"Node {self._node.name} was not drained within {seconds:g} s: {self._silent}."
        else:
            message = f"Node {self._node.name} was not drained within {seconds:g} s; these pods are still there: {left_over(left, self._refused)}."
        return TalosError("DrainRequired", message, "Give their workloads room (more replicas, a wider PodDisruptionBudget), or more time with timing.drain; "
                          "then run this again.", failure=Failure(node=self._node.name, rpc="Eviction", retryable=True))

    async def _ask(self, call: Callable[[], T]) -> T:
        return await in_thread(call)
