# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that moved: where the Kubernetes Node of its name says that it is (design section 10)."""

from __future__ import annotations

from .._model.identity import canonical_uuid
from .._model.machine import dial_endpoint, identity_of
from .._model.observations import Endpoint, NodePlace
from .._model.observed import Observed, Present
from .._model.records import Record, text_at
from .approved import is_approved, sent


def asks_kubernetes(machine: Record) -> bool:
    """Whether a machine that cannot be read is looked for: it was sent a configuration, and has a name to be found by."""
    return is_approved(machine) and sent(machine) and bool(text_at(machine.spec, "hostname"))


def moved_to(machine: Record, place: Observed[NodePlace]) -> tuple[Endpoint, ...]:
    """Where the machine may be read with authentication, in order; () where Kubernetes tells nothing new, or tells of another machine.

    A Node is not trusted: its address counts only once the machine's own UUID was read there.
    """
    if not isinstance(place, Present):
        return ()
    uuid, told = identity_of(machine).uuid, canonical_uuid(place.value.system_uuid)
    if uuid and told and uuid != told:
        return ()
    dialled = dial_endpoint(machine)
    found = (Endpoint(address, dialled.port) for address in dict.fromkeys(place.value.addresses))
    return tuple(endpoint for endpoint in found if endpoint.host != dialled.host)
