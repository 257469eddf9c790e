# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One row of a table of gates before a send, and how such a table is walked (design sections 9 and 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._machineconfig.bring import BroughtConfig
from .._model.observations import NodeFacts
from .._model.observed import Present
from .._model.plan import Refusal
from .provisioning_words import Need, Provisioning, Refused, Verdict


@dataclass(frozen=True)
class Gate:
    """One row. `applies` is judged without the readings in `needs`, `when` with them; `verdict` gives what follows then."""

    id: str
    when: Callable[[Provisioning, float], bool]
    verdict: Callable[[Provisioning, float], Verdict]
    needs: tuple[str, ...] = ()
    applies: Callable[[Provisioning], bool] = lambda seen: True


def walk(gates: tuple[Gate, ...], seen: Provisioning, now: float) -> Verdict | None:
    """The first row that applies and lacks a reading asks for it, the first whose condition holds is the verdict; None past the last."""
    for gate in gates:
        if not gate.applies(seen):
            continue
        for reading in gate.needs:
            if getattr(seen, reading) is None:
                return Need(reading)
        if gate.when(seen, now):
            return gate.verdict(seen, now)
    return None


def refuse(seen: Provisioning, rule: str, reason: str, message: str, hint: str = "", unreachable: bool = False) -> Refused:
    return Refused(Refusal(seen.target, reason, message, hint, rule), unreachable)


def config_of(seen: Provisioning) -> BroughtConfig:
    """The configuration that is to be sent."""
    if not isinstance(seen.config, Present):
        raise ValueError("the configuration is judged by the first gate")
    return seen.config.value


def facts_of(seen: Provisioning) -> NodeFacts:
    """What the node says without authentication."""
    if not isinstance(seen.maintenance, Present):
        raise ValueError("the insecure reading is judged by an earlier gate")
    return seen.maintenance.value
