# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told about a name that is no record, or a machine that cannot be used: names are exact, nothing is guessed at (design section 20)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .._model.plan import Refusal, Target
from .._model.records import Broken, Record


def nearest(name: str, others: Iterable[str]) -> str:
    """The question whether a name is the mistyped one of another, '' where none is near."""
    near = difflib.get_close_matches(name, sorted(others), 1)
    return f"Did you mean {near[0]}?" if near else ""


def missing_record(name: str, machine: Record | None, broken: Broken | None, others: Iterable[Record]) -> Refusal | None:
    """The refusal of a name that is no record, or a record that cannot be read; None where it is there."""
    target = Target(name=name)
    if broken is not None:
        return Refusal(target, "RecordBroken", f"Machine {name} cannot be read ({broken.where}): {broken.sentence}", "Mend the file.", "4/record-broken")
    if machine is not None:
        return None
    hint = nearest(name, (other.name for other in others)) or "Check the name; talos_machine_info lists the machines."
    return Refusal(target, "RecordNotFound", f"There is no machine {name}.", hint, "7/record-missing")
