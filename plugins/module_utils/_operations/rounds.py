# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One round of reconciling one machine: what was found, what it calls for, when to look again (design sections 9 to 12).

Each phase of a machine's life (provisioning, following, converged, fallen back) is a file with two functions:

- `async look(around, name, effects) -> Round`: observe and decide. It writes status and events through `effects` (which writes
  nothing in check mode) and sends nothing.
- `async act(around, round, step, effects) -> Acted`: carry out exactly this one step of the round's plan, on readings made for
  it; the step's wait is over and the gate has granted it.

The controller calls `look`, shows the plan, calls `act` for what is granted and does not wait, and calls `look` again at once
after something was done, else after `requeue_after`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._model.errors import TalosError
from .._model.outcome import Difference, MachineRow
from .._model.plan import Plan, Refusal


@dataclass(frozen=True)
class Round:
    """`plan`: the steps of this machine in order, each with what it waits for; a step without waits may go now.
    `requeue_after`: seconds until the next look. `settled`: nothing more happens without a person, or without a change of the
    world. `silent`: the machine did not answer (a result, law 11). `fell_back`: the authenticated read of a converged machine failed,
    so the maintenance API has to be asked (section 12). `held`: a refusal holds it. `carry`: what `act` of the same file needs."""

    name: str
    cluster: str
    plan: Plan
    row: MachineRow
    requeue_after: float
    settled: bool
    silent: bool = False
    fell_back: bool = False
    held: bool = False
    carry: object = None
    #: What the node runs against what the records say, by path, secrets masked.
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Acted:
    """How a step ended. `done`: it was carried out (or counts as that). Else `refusal` says why not; nothing was changed then."""

    done: bool
    refusal: Refusal | None = None
    error: TalosError | None = None
