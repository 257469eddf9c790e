# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A round of a machine that was sent a configuration and has not joined yet, or whose status is lost (design section 9, "Following").

Nothing is ever sent by it, so there is nothing to act.
"""

from __future__ import annotations

from .._decide.approved import has_converged
from .._decide.following import is_settled
from .._model.machine import cluster_of
from .._model.moments import seconds_of
from .._model.outcome import MachineRow
from .._model.plan import Plan, Refusal
from .._model.records import Record, text_at
from .followed import look_by_record
from .machine_effects import Effects
from .provisioning_reads import Surroundings
from .rounds import Round


async def look(around: Surroundings, name: str, effects: Effects) -> Round:
    """Look once, write what following decides. Raises TalosError `RecordNotFound` or `EndpointRefused`."""
    timing = around.timing
    seen = await look_by_record(around.ports, name, timing, effects, around.allow_loopback)
    life, machine = seen.life, seen.machine
    refusals = (Refusal(seen.view.target, life.reason, life.message, "", life.rule),) if life.wrong else ()
    joins = life.joined and not life.wrong and not has_converged(seen.view.machine)
    settled = life.wrong or is_settled(life, machine, False) and not joins
    row = MachineRow(name, cluster_of(machine), life.stage, life.joined and not life.wrong, life.reason, life.message)
    again = 0.0 if joins else timing.reread if life.wrong or has_converged(machine) else timing.follow
    return Round(name, cluster_of(machine), Plan(refusals=refusals), row, again, settled, life.silent and _overdue(around, machine),
                 held=bool(refusals), carry=seen)


def _overdue(around: Surroundings, machine: Record) -> bool:
    """Whether its silence is more than that of an install: it may be stuck, or it had joined."""
    began = seconds_of(text_at(machine.status, "configStoredAt"))
    return has_converged(machine) or began is None or around.ports.clock.now() - began >= around.timing.follow_stuck
