# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes before the node of a removal and what after it, on the Kubernetes side (design section 14): evacuation and drain, its Node last."""

from __future__ import annotations

from dataclasses import dataclass

from .._model.machine import identity_of
from .._model.observations import NodePlace
from .._model.observed import Present, Unknown
from .._model.plan import Refusal, Step, Wait, Warn
from .._model.workloads import Hosting
from .drain import REMOVAL, blocked_now, is_other_machine, named, to_go, unowned
from .drain_volumes import lost_with, told
from .removal_words import SCRATCH, DeleteNode, DrainNode, EvacuateStorage, Leaving


@dataclass(frozen=True)
class Before:
    """What goes first, or why nothing goes."""

    steps: tuple[Step, ...] = ()
    warnings: tuple[Warn, ...] = ()
    refusal: Refusal | None = None


def drain_first(seen: Leaving) -> Before:
    """Evacuation and drain, or a person's word that the node is not drained."""
    wish, name = seen.wish, seen.target.name
    if wish.skip_drain or not wish.record:
        return Before(warnings=(_warn(seen, "14/not-drained", "The node is not drained, and nobody looks for data that pods keep on its disks. Talos itself "
                                      "evicts what it can within the reset and goes on when it cannot."),))
    if seen.hosting is None:
        return _refuse(seen, "14/drain", "DrainRequired", f"{name} is not drained: this run cannot ask the cluster's Kubernetes.",
                       "Drain it with kubectl first, then run with skip_drain: true.")
    if isinstance(seen.hosting, Unknown):
        why = (seen.hosting.message or seen.hosting.reason).rstrip(".")
        return _refuse(seen, "14/drain-unknown", "DrainRequired", f"What runs on {name} cannot be read: {why}.", "Run this again, or with skip_drain: true.")
    if not isinstance(seen.hosting, Present):
        return Before(warnings=(_warn(seen, "14/no-node", "Kubernetes has no Node of it, so there is nothing to drain."),))
    hosting = seen.hosting.value
    if _is_foreign(seen, hosting.node):
        return _refuse(seen, "14/other-node", "IdentityMismatch", f"The Kubernetes Node {hosting.node.name} is another machine: its systemUUID is "
                       f"{hosting.node.system_uuid}.", "Correct spec.hostname with talos_machine, or run with skip_drain: true.")
    volumes = lost_with(hosting)
    if volumes and not wish.accept_data_loss:
        return _refuse(seen, "14/data-loss", "DataLossNotAccepted", f"These volumes are on the disks of {name} and would be lost: {named(map(told, volumes))}.",
                       "Move their data, then run with accept_data_loss: true; nothing is moved for you.")
    steps: list[Step] = []
    if volumes:
        kept = tuple(dict.fromkeys(volume.claim for volume in volumes if volume.kind != SCRATCH))
        steps.append(EvacuateStorage(seen.target, f"nothing is moved, and this is lost with the machine: {named(map(told, volumes))}", volumes=kept))
    going = to_go(hosting.pods, REMOVAL)
    why = f"{_pods(len(going))} of Node {hosting.node.name} {'goes' if len(going) == 1 else 'go'} elsewhere first" if going else \
        f"Node {hosting.node.name} takes no more pods"
    steps.append(DrainNode(seen.target, why, locked=True, node=hosting.node.name))
    return Before(tuple(steps), _warnings(seen, hosting))


def node_last(seen: Leaving, *waits: Wait) -> tuple[Step, ...]:
    """Its Kubernetes Node is deleted once the machine is in maintenance mode."""
    if not seen.wish.record or not isinstance(seen.hosting, Present) or _is_foreign(seen, seen.hosting.value.node):
        return ()
    node = seen.hosting.value.node
    return (DeleteNode(seen.target, f"Kubernetes Node {node.name} is the machine's, which is no node then", waits_for=waits, node=node.name),)


def node_left(seen: Leaving) -> tuple[Warn, ...]:
    """Where the Node is not deleted although the machine goes."""
    if not seen.wish.record or seen.hosting is None:
        return ()
    if isinstance(seen.hosting, Unknown):
        return (_warn(seen, "14/node-unread", "Whether Kubernetes has a Node of it cannot be read; where it has, delete that with kubectl delete node."),)
    if isinstance(seen.hosting, Present) and _is_foreign(seen, seen.hosting.value.node):
        return (_warn(seen, "14/node-of-another", f"Kubernetes Node {seen.hosting.value.node.name} is another machine's, and stays."),)
    return ()


def _warnings(seen: Leaving, hosting: Hosting) -> tuple[Warn, ...]:
    found: list[Warn] = []
    blocked, bare = blocked_now(hosting, REMOVAL), unowned(hosting.pods, REMOVAL)
    if blocked:
        found.append(_warn(seen, "14/drain-blocked", f"The drain waits for these, and ends without a reset when they do not go in time: {named(blocked)}."))
    if bare:
        found.append(_warn(seen, "14/drain-unowned", f"Nobody makes these pods again elsewhere: {named(map(str, bare))}."))
    if to_go(hosting.pods, REMOVAL) and hosting.elsewhere == 0:
        found.append(_warn(seen, "14/drain-nowhere", "No other Node is Ready and takes pods: what is evicted waits until one does."))
    return tuple(found)


def _is_foreign(seen: Leaving, node: NodePlace) -> bool:
    return seen.machine is not None and is_other_machine(node, identity_of(seen.machine).uuid)


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"


def _warn(seen: Leaving, rule: str, message: str) -> Warn:
    return Warn(seen.target, message, rule)


def _refuse(seen: Leaving, rule: str, reason: str, message: str, hint: str) -> Before:
    return Before(refusal=Refusal(seen.target, reason, message, hint, rule))
