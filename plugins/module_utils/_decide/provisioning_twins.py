# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the machine that is to be provisioned is the machine of another record too (laws 3 and 4)."""

from __future__ import annotations

from .._model.observed import Present
from .provisioning_words import Provisioning
from .record_twin import answers_to, told_of, twin_of


def recorded_twin(seen: Provisioning) -> str:
    """Another decided record of the same machine, in words, or ''."""
    other = twin_of(seen.machine, seen.everybody) if seen.machine is not None else None
    return told_of(other) if other is not None else ""


def answering_twin(seen: Provisioning) -> str:
    """Another decided record that the node which answers fits as well, in words, or ''."""
    if seen.machine is None or not isinstance(seen.maintenance, Present):
        return ""
    other = answers_to(seen.maintenance.value.identity, seen.machine, seen.everybody)
    return told_of(other) if other is not None else ""


def at_same_address(seen: Provisioning) -> str:
    """Other machines that this task dials at the same address, in words, or ''."""
    return f"The task dials {', '.join(seen.same_address)} at the same address." if seen.same_address else ""


__all__ = ["answering_twin", "at_same_address", "recorded_twin"]
