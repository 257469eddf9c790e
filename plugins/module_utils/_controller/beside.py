# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subjects of the controller that are no machines: discoveries, backups and orders to reclaim."""

from __future__ import annotations

from .._operations.machine_effects import Effects
from .._operations.provisioning_reads import Surroundings
from .._operations.rounds import Round
from . import backing_up, discovering, reclaiming


def is_beside(name: str) -> bool:
    return discovering.is_discovery(name) or is_lasting(name)


def is_lasting(name: str) -> bool:
    """Whether it is the subject of a record of its own: what is done for it is seen through, and it is looked at again afterwards."""
    return backing_up.is_backup(name) or reclaiming.is_order(name)


async def look(around: Surroundings, name: str, effects: Effects) -> Round:
    """One look. Raises TalosError."""
    if backing_up.is_backup(name):
        return await backing_up.look(around, name)
    if reclaiming.is_order(name):
        return await reclaiming.look(around, name)
    return await discovering.look(around, name, effects)


async def act(around: Surroundings, name: str, cluster: str, granted: frozenset[str], effects: Effects) -> tuple[str, ...]:
    """Carry out those steps that are still called for; gives their ids. Raises TalosError."""
    if backing_up.is_backup(name):
        return await backing_up.act(around, name, granted)
    if reclaiming.is_order(name):
        return await reclaiming.act(around, name, granted)
    return await discovering.act(around, cluster, granted, effects)
