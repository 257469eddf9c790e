# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One look at a machine by its record, and what is written down after it (design section 9, "Following").

`talos_stage` and the controller follow with this; it imports nothing of configurations, so that `talos_stage` starts without them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._decide.following import Following, Life, with_life, with_reading
from .._decide.stage import CONVERGED, FOLLOWED, asks_insecurely, kind_of, life_of
from .._model.credentials import Credentials
from .._model.errors import TalosError
from .._model.machine import cluster_of, identity_of
from .._model.observations import Endpoint
from .._model.observed import Observed, Present
from .._model.ports import Ports
from .._model.records import Record
from .._model.timing import Timing
from .life_reads import look, static_endpoints
from .machine_effects import Effects
from .record_reads import MachineView, address_of, credentials_for, need_store, read_machine
from .stored import count_as_stored
from .whereabouts import told_while_followed


@dataclass(frozen=True)
class Followed:
    """A look: `view` is what the store held before it, `machine` the record after what was written."""

    view: MachineView
    life: Life
    machine: Record
    endpoint: Endpoint
    credentials: Observed[Credentials]


async def look_by_record(ports: Ports, name: str, timing: Timing, effects: Effects, allow_loopback: bool) -> Followed:
    """Look at the machine where it is dialled, at its static addresses and where its Kubernetes Node is, and write what following decides.

    Raises TalosError `RecordNotFound` or `EndpointRefused`.
    """
    view = read_machine(need_store(ports), name)
    machine, cluster = view.machine, cluster_of(view.machine)
    address = address_of(view, allow_loopback)
    if not isinstance(address, Present):
        raise TalosError("EndpointRefused", getattr(address, "message", ""), "Edit spec.endpoint with talos_machine.")
    credentials = credentials_for(ports, cluster, view.cluster)
    following = await look(ports, address.value, credentials, identity_of(machine), timing, machine=machine, cluster=view.cluster,
                           insecurely=asks_insecurely(machine), static=static_endpoints(machine, address.value.port),
                           told=lambda: told_while_followed(ports, machine, view.cluster))
    life = life_of(following, ports.clock.now())
    return Followed(view, life, _written(view, following, life, ports.clock.now(), effects), address.value, credentials)


def _written(view: MachineView, following: Following, life: Life, now: float, effects: Effects) -> Record:
    machine = view.machine
    if life.unread:
        return machine
    kind = kind_of(machine, isinstance(following.answer, Present) and not life.wrong)
    if kind == CONVERGED:
        return effects.status(machine, lambda status: with_reading(status, life))
    if kind != FOLLOWED:
        return machine
    if machine.status.get("sending") and not life.wrong and isinstance(following.answer, Present):
        machine = count_as_stored(machine, effects)
    machine = effects.status(machine, lambda status: with_life(status, life, machine, now))
    if life.joined:
        effects.event(machine, "Normal", "NodeJoined", life.message)
    return machine
