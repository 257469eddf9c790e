# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A converged machine that does not answer: since when, and what that is called (design section 11, with the reboot of section 13)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._model.moments import moment, seconds_of
from .._model.records import Record, condition_of
from .._model.timing import Timing
from .approved import approved_control_planes, is_control_plane
from .lock import disruption_of


@dataclass(frozen=True)
class Silence:
    """`passing`: it may yet answer by itself, so it is looked at again soon and nothing is said to be over."""

    reason: str
    message: str
    passing: bool


def silent_since(machine: Record, now: float) -> float:
    """When the first read of this silence failed; now, where none did before."""
    found = condition_of(machine, "NodeReachable")
    began = seconds_of(found.last_transition_time) if found is not None and found.status == "False" else None
    return now if began is None else min(began, now)


def own_reboot_began(machine: Record, cluster: Record | None) -> float | None:
    """When this product sent the machine its reboot, while that has not shown its end."""
    found = disruption_of(cluster)
    if found is None or found.machine != machine.name or found.step != "reboot":
        return None
    return seconds_of(found.time)


def nobody_answers(machine: Record, siblings: Iterable[Record]) -> bool:
    """Whether no control plane of the cluster answers, as far as their records say: then Kubernetes tells nobody's address either."""
    if not is_control_plane(machine):
        return False
    others = [one for one in approved_control_planes(siblings) if one.name != machine.name]
    return all((found := condition_of(one, "NodeReachable")) is not None and found.status == "False" for one in others)


def silence(machine: Record, cluster: Record | None, endpoint: str, why: str, told: str, timing: Timing, now: float) -> Silence:
    """What the silence of a machine is called. `why`: the last error. `told`: where Kubernetes says that it is now, '' where it says nothing else."""
    began = own_reboot_began(machine, cluster)
    if began is not None and now - began < timing.follow_slow:
        return Silence("NodeRebooting", f"It was told to reboot at {moment(began)} and does not answer yet.", True)
    since = silent_since(machine, now)
    moved = f" spec.endpoint may need updating to {told}." if told else ""
    if now - since < timing.unreachable_grace:
        return Silence("CurrentConfigUnavailable", f"{endpoint} could not be read ({why}).{moved}", True)
    return Silence("NodeUnreachable", f"{endpoint} cannot be read since {moment(since)} ({why}).{moved}", False)
