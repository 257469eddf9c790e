# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that moved: where the Kubernetes Node of its name says that it is (design section 10)."""

from __future__ import annotations

from .._model.approval import was_sent
from .._model.identity import canonical_uuid
from .._model.machine import dial_endpoint, identity_of
from .._model.observations import Endpoint, NodePlace
from .._model.observed import Observed, Present
from .._model.records import Record, text_at
from .approved import is_approved


def is_looked_for(machine: Record) -> bool:
    """Whether its Node is looked for at all: a machine that was sent nothing has none."""
    return is_approved(machine) and was_sent(machine)


def names_of(machine: Record) -> tuple[str, ...]:
    """The names that the machine's Node may have: the one of the spec, and the one that was seen; () where it is not looked for."""
    if not is_looked_for(machine):
        return ()
    return tuple(dict.fromkeys(name for name in (text_at(machine.spec, "hostname"), text_at(machine.status, "nodeName")) if name))


def may_be_dialled(machine: Record, place: Observed[NodePlace]) -> bool:
    """Whether the machine is dialled where its Node is: only for the host name that the spec gives it."""
    hostname = text_at(machine.spec, "hostname")
    return isinstance(place, Present) and bool(hostname) and place.value.name == hostname


def told_at(machine: Record, place: Observed[NodePlace]) -> tuple[Endpoint, ...]:
    """Where Kubernetes has the machine, in order; () where it tells nothing new, or tells of another machine.

    A Node is not trusted: its address counts only once the machine's own UUID was read there, with authentication.
    """
    if not isinstance(place, Present):
        return ()
    uuid, told = identity_of(machine).uuid, canonical_uuid(place.value.system_uuid)
    if uuid and told and uuid != told:
        return ()
    dialled = dial_endpoint(machine)
    found = (Endpoint(address, dialled.port) for address in dict.fromkeys(place.value.addresses))
    return tuple(endpoint for endpoint in found if endpoint.host != dialled.host)
