# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing down that a node stored a configuration (design section 9, step 10)."""

from __future__ import annotations

from collections.abc import Callable

from .._decide.approved import has_converged
from .._decide.conditions import Status, with_condition
from .._decide.no_answer import with_left_over_stored, with_stored
from .._model.records import Condition, Record
from .machine_effects import Effects


def write_stored(machine: Record, config: str, effects: Effects) -> Record:
    """The node accepted the bytes with this hash."""
    now = effects.now()
    return _write(machine, lambda status: with_stored(status, config, now), "The node accepted the configuration; it installs now.", effects)


def count_as_stored(machine: Record, effects: Effects) -> Record:
    """A left-over `sending` becomes stored: its answer was lost, and nothing is ever sent again for this wipe."""
    return _write(machine, with_left_over_stored, "No answer came to the send, and it counts as stored.", effects)


def _write(machine: Record, store: Callable[[Status], Status], message: str, effects: Effects) -> Record:
    now = effects.now()

    def change(status: Status) -> Status:
        status = store(status)
        for name in ("Provisioned", "Ready"):
            status = with_condition(status, Condition(name, "False", "ConfigStored", message, machine.generation), now)
        return status

    after = effects.status(machine, change)
    digest = str(after.status.get("storedConfigHash") or "")[:12]
    if has_converged(machine):
        effects.event(after, "Warning", "NodeReinstalled", f"Ichor re-installed this node: configuration {digest}. {message}")
    else:
        effects.event(after, "Normal", "ConfigApplied", f"Configuration {digest}: {message}")
    return after
