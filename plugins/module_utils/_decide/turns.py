# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose turn it is in a cluster: steps under its lock go one machine after the other (design sections 2 law 5, 9 and 13).

Pure. A cluster that was never bootstrapped has nothing to lose, so there the lock alone keeps the sends apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from .._model.plan import Step, Wait
from .._model.records import Record
from .approved import is_bootstrapped
from .etcd_words import RemoveEtcdMember
from .lock import disruption_of
from .provisioning_words import ApplyConfig
from .reprovision_words import Resume


_READY = " is Ready"


@dataclass(frozen=True)
class Turn:
    """The steps that one machine's observation calls for, in order."""

    machine: str
    control_plane: bool
    steps: tuple[Step, ...]

    @property
    def locked(self) -> bool:
        """Whether it wants the lock at all."""
        return any(step.locked for step in self.steps)

    @property
    def joins(self) -> bool:
        """Whether it would make the machine a new member of etcd."""
        return self.control_plane and any(isinstance(step, ApplyConfig) and not isinstance(step, Resume) for step in self.steps)


def plan_order(machine: str, cluster: str, control_plane: bool) -> tuple[str, bool, str]:
    """The stable order of a plan: by cluster, its control planes first, by name. Whoever is disrupted changes no plan."""
    return cluster, not control_plane, machine


def in_turn(turns: Sequence[Turn], cluster: Record | None, joining: Collection[str] = ()) -> dict[str, tuple[Step, ...]]:
    """The steps of each machine of one cluster with what they wait for.

    turns: the machines that are acted on. joining: the control planes of the cluster that were sent a configuration and are no
    members yet, acted on or not: of those there is one at a time.
    """
    steps = {turn.machine: turn.steps for turn in turns}
    if not is_bootstrapped(cluster):
        return steps
    disruption = disruption_of(cluster)
    disrupted = disruption.machine if disruption is not None else ""
    ahead = disrupted
    for turn in sorted((turn for turn in turns if turn.locked), key=lambda turn: (turn.machine != disrupted, not turn.control_plane, turn.machine)):
        first = [ahead] if ahead and ahead != turn.machine else []
        first += sorted(name for name in joining if turn.joins and name not in (turn.machine, *first))
        steps[turn.machine] = tuple(_waiting(step, first) if step.locked and not _helps(step) else step for step in turn.steps)
        ahead = turn.machine
    return steps


def _helps(step: Step) -> bool:
    """What the machine ahead may need in order to become Ready: etcd takes no new member while a voter is dead, and has no leader before
    enough of those come back that kept their data (section 12)."""
    return isinstance(step, (RemoveEtcdMember, Resume))


def _waiting(step: Step, first: Sequence[str]) -> Step:
    """The step after these machines; one that it waits for already is named once."""
    known = {wait.target for wait in step.waits_for}
    return replace(step, waits_for=(*step.waits_for, *(Wait(f"{name}{_READY}") for name in first if name not in known)))


def waits_for_others(steps: Sequence[Step], machine: str) -> bool:
    """Whether the machine's next step waits for other machines and for nothing else: it goes on when one of them does."""
    return bool(steps) and bool(steps[0].waits_for) and all(
        wait.what.endswith(_READY) if not wait.target else wait.target != machine for wait in steps[0].waits_for)


def awaited(steps: Sequence[Step]) -> tuple[str, ...]:
    """The machines that the next step waits for, by name."""
    return tuple(wait.target or wait.what.removesuffix(_READY) for wait in steps[0].waits_for) if steps else ()


def next_step(steps: Sequence[Step]) -> Step | None:
    """The one step that may go now: the first, when it waits for nothing."""
    return steps[0] if steps and not steps[0].waits_for else None
