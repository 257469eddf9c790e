# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pods of a Node go before its machine does, and what stands against that (design sections 11, 13 and 14).

A removal moves everything that a controller makes again elsewhere, and ends what nobody makes again, which the plan names. Before a
reboot a pod that nobody makes again stays: it comes back with its node, and an eviction would delete it for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .._model.identity import canonical_uuid, swapped_uuid
from .._model.observations import NodePlace
from .._model.workloads import Budget, Hosting, Pod, Requirement

#: What a drain is for.
REMOVAL, REBOOT = "removal", "reboot"
#: So many pods, or volumes, are named in a sentence.
_NAMED = 8


@dataclass(frozen=True)
class PodRow:
    """One row of what becomes of a pod. The first that holds decides; a pod that none holds for is evicted."""

    id: str
    when: Callable[[Pod, str], bool]
    #: Why it stays, as a clause.
    why: str


ROWS: tuple[PodRow, ...] = (
    PodRow("14/pod-mirror", lambda pod, purpose: pod.mirror, "a static pod belongs to its node"),
    PodRow("14/pod-finished", lambda pod, purpose: pod.phase in ("Succeeded", "Failed"), "it runs no more"),
    PodRow("14/pod-daemonset", lambda pod, purpose: pod.owner_kind == "DaemonSet", "its DaemonSet would put it there again"),
    PodRow("14/pod-bare", lambda pod, purpose: purpose == REBOOT and not pod.owner_kind, "nobody would make it again"),
)


def stays(pod: Pod, purpose: str, rows: tuple[PodRow, ...] | None = None) -> PodRow | None:
    """The row for which the pod is left where it is, or None where it has to go."""
    return next((row for row in (ROWS if rows is None else rows) if row.when(pod, purpose)), None)


def to_go(pods: Iterable[Pod], purpose: str) -> tuple[Pod, ...]:
    """The pods that have to be gone before the machine goes, by namespace and name."""
    return tuple(sorted((pod for pod in pods if stays(pod, purpose) is None), key=lambda pod: (pod.namespace, pod.name)))


def unowned(pods: Iterable[Pod], purpose: str) -> tuple[Pod, ...]:
    """Pods that nobody makes again: those that a removal ends for good, or that a reboot stops with the node."""
    found = [pod for pod in pods if not pod.owner_kind and ((row := stays(pod, purpose)) is None or row.id == "14/pod-bare")]
    return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))


def matches(selector: tuple[Requirement, ...] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector of Kubernetes selects these labels; an unknown operator selects nothing."""
    return selector is not None and all(_holds(one, labels) for one in selector)


def _holds(one: Requirement, labels: Mapping[str, str]) -> bool:
    if one.operator == "In":
        return labels.get(one.key) in one.values
    if one.operator == "NotIn":
        return labels.get(one.key) not in one.values
    if one.operator == "Exists":
        return one.key in labels
    return one.operator == "DoesNotExist" and one.key not in labels


def budgets_of(pod: Pod, budgets: Iterable[Budget]) -> tuple[Budget, ...]:
    """The PodDisruptionBudgets that count the pod."""
    return tuple(one for one in budgets if one.namespace == pod.namespace and matches(one.selector, pod.labels))


def blocked_now(hosting: Hosting, purpose: str) -> tuple[str, ...]:
    """Pods that could not be evicted at this moment, each with what stands against it: its budget allows nothing, or it has several,
    which the API server refuses. A budget does not hold a pod that is not ready yet."""
    found = []
    for pod in to_go(hosting.pods, purpose):
        own = budgets_of(pod, hosting.budgets)
        if len(own) > 1:
            found.append(f"{pod} (it has {len(own)} PodDisruptionBudgets: {', '.join(map(str, own))})")
        elif own and own[0].allowed <= 0 and not pod.deleting and pod.ready and pod.phase == "Running":
            found.append(f"{pod} (PodDisruptionBudget {own[0]} allows no disruption)")
    return tuple(found)


def left_over(pods: Iterable[Pod], refused: Mapping[str, str]) -> str:
    """What is still on the Node, named with what blocks it. `refused`: why an eviction was not taken, by the pod's uid."""
    told = []
    for pod in pods:
        why = "it is still ending" if pod.deleting else refused.get(pod.uid, "")
        told.append(f"{pod}{f' ({why})' if why else ''}")
    return named(told)


def named(texts: Iterable[str]) -> str:
    """The first of them, and how many more."""
    found = list(texts)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{', '.join(found[:_NAMED])}{more}"


def is_other_machine(node: NodePlace, uuid: str) -> bool:
    """Whether the Node says that it is another board; a kubelet may read the first three fields in the other byte order."""
    told, wanted = canonical_uuid(node.system_uuid), canonical_uuid(uuid)
    return bool(told and wanted) and told not in (wanted, swapped_uuid(wanted))


def elsewhere(nodes: Iterable[NodePlace], node: NodePlace) -> int:
    """How many other Nodes would take its pods."""
    return sum(1 for other in nodes if other.name != node.name and other.ready and not other.unschedulable)
