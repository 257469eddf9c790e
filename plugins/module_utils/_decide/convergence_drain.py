# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draining the Node of a machine before it is rebooted (design sections 11 and 13)."""

from __future__ import annotations

from .._model.machine import identity_of
from .._model.observations import NodePlace
from .._model.observed import Present, Unknown
from .._model.plan import Warn
from .convergence_words import Converging
from .drain import REBOOT, blocked_now, is_other_machine, named, to_go, unowned
from .lock import disruption_of, held_by_other


def needs_reboot(seen: Converging) -> bool:
    """Whether a reboot is among what has to be done: Talos, or the kind of the change, asks for it."""
    if not isinstance(seen.compared, Present):
        raise ValueError("what the node runs is judged by an earlier gate")
    return seen.compared.value.needs_reboot or seen.refused_at_once


def drains_first(seen: Converging) -> bool:
    """A step that waits for another machine is judged when that one is done."""
    waits = held_by_other(disruption_of(seen.cluster), seen.machine.name)
    return seen.drains and seen.allow_reboot and needs_reboot(seen) and not waits


def unread(seen: Converging) -> str:
    """Why nobody knows what runs on the Node, as a clause."""
    return (seen.hosting.message or seen.hosting.reason).rstrip(".") if isinstance(seen.hosting, Unknown) else ""


def other_node(seen: Converging) -> str:
    """The Node of that name, where it says that it is another machine; else ''."""
    if not isinstance(seen.hosting, Present):
        return ""
    node = seen.hosting.value.node
    return node.name if is_other_machine(node, identity_of(seen.machine).uuid) else ""


def node_to_drain(seen: Converging) -> NodePlace | None:
    """The Node that is drained before the reboot. Where no other one takes pods, its own are stopped with it and begin again on it."""
    if not drains_first(seen) or not isinstance(seen.hosting, Present) or seen.hosting.value.elsewhere == 0:
        return None
    return seen.hosting.value.node


def warnings_of_reboot(seen: Converging) -> tuple[Warn, ...]:
    """What a person reads of the pods before they agree to a reboot."""
    if not seen.drains:
        return (Warn(seen.target, "It is not drained before the reboot: its pods are stopped with it. Drain it with kubectl first where that matters.",
                     "11/not-drained"),)
    if not drains_first(seen) or not isinstance(seen.hosting, Present):
        return ()
    hosting = seen.hosting.value
    if hosting.elsewhere == 0:
        return (Warn(seen.target, "It is not drained before the reboot, since no other Node is Ready and takes pods: its own are stopped with it.",
                     "11/drain-nowhere"),)
    found = []
    blocked, bare = blocked_now(hosting, REBOOT), unowned(hosting.pods, REBOOT)
    if blocked:
        found.append(Warn(seen.target, f"The drain waits for these, and there is no reboot when they do not go in time: {named(blocked)}.",
                          "11/drain-blocked"))
    if bare:
        found.append(Warn(seen.target, f"Nobody makes these pods again, so they are stopped with the node: {named(map(str, bare))}.", "11/drain-unowned"))
    return tuple(found)


def told_of_drain(seen: Converging) -> str:
    """What the step says of it, as the end of a sentence."""
    node = node_to_drain(seen)
    if node is None or not isinstance(seen.hosting, Present):
        return ""
    count = len(to_go(seen.hosting.value.pods, REBOOT))
    return f"; Node {node.name} is drained first ({count} pod{'' if count == 1 else 's'} to go)"
