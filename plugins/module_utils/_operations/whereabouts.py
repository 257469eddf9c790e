# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking the cluster's Kubernetes where a machine is now (design section 10)."""

from __future__ import annotations

from .._decide.approved import is_bootstrapped
from .._decide.moved_node import is_looked_for, may_be_dialled, names_of, told_at
from .._model.endpoint import Endpoint
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.observations import NodePlace
from .._model.observed import Absent, Observed
from .._model.ports import Ports
from .._model.records import Record
from .in_thread import in_thread
from .life_reads import unknown


async def place_of_machine(ports: Ports, machine: Record) -> Observed[NodePlace]:
    """The machine's Node; Absent where none is there or none is asked for. What cannot be read is Unknown."""
    ask = ports.whereabouts
    if ask is None or not is_looked_for(machine):
        return Absent("not asked")
    port = ask
    try:
        return await in_thread(lambda: port(cluster_of(machine), names_of(machine), identity_of(machine).uuid))
    except TalosError as error:
        return unknown(error)


async def told_while_followed(ports: Ports, machine: Record, cluster: Record | None) -> tuple[Endpoint, ...]:
    """Where a machine that has not joined yet may be dialled with authentication, since its Node says that it is there: a lease may change
    during the install. A cluster before its bootstrap has no Nodes."""
    if not is_bootstrapped(cluster):
        return ()
    place = await place_of_machine(ports, machine)
    return told_at(machine, place) if may_be_dialled(machine, place) else ()
