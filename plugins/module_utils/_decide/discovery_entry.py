# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a machine that discovery found (design sections 3 and 6)."""

from __future__ import annotations

import hashlib

from .._model.addresses import TALOS_PORT
from .._model.identity import Identity
from .._model.observations import Endpoint, NodeFacts
from .._model.records import MACHINE, Condition, Json, Record
from .conditions import Status, with_condition
from .hardware_status import discovered_status
from .weak_identity import Weakness


def endpoint_text(endpoint: Endpoint) -> str:
    """The endpoint as a record spells it: without Talos's own port."""
    return endpoint.host if endpoint.port == TALOS_PORT else str(endpoint)


def weak_name(endpoint: Endpoint, identity: Identity) -> str:
    """`weak-` and a hash of address, MACs and serial: the next pass finds the same entry (section 3)."""
    text = "\n".join((str(endpoint), ",".join(identity.macs), identity.serial))
    return f"weak-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def pending_record(name: str, cluster: str, endpoint: Endpoint, facts: NodeFacts, identity: Identity,
                   weak: tuple[Weakness, ...], now: float) -> Record:
    """A pending machine with its first status.

    A weak one gets no `spec.identity`: a person sets it. What it showed stands in the condition `WeakIdentity`.
    """
    known: dict[str, Json] = {}
    if identity.uuid:
        known["uuid"] = identity.uuid
    if identity.serial:
        known["serial"] = identity.serial
    if identity.macs:
        known["macs"] = list(identity.macs)
    spec: dict[str, Json] = {"clusterRef": cluster, "endpoint": endpoint_text(endpoint), "approvalState": "pending"}
    if not weak:
        spec["identity"] = known
    status: Status = dict(discovered_status(facts, now))
    ready = Condition("Ready", "False", "PendingApproval", "A person approves or rejects this machine.", 1)
    status = with_condition(status, ready, now)
    if weak:
        shown = (f"address {endpoint}, UUID {facts.identity.uuid or 'none'}, serial {facts.identity.serial or 'none'}, "
                 f"MACs {', '.join(facts.identity.macs) or 'none'}")
        message = f"The identity does not single out one machine: {'; '.join(entry.message for entry in weak)}. It shows {shown}."
        status = with_condition(status, Condition("WeakIdentity", "True", "WeakIdentity", message, 1), now)
    return Record(MACHINE, name, spec=spec, status=_json(status))


def _json(status: Status) -> dict[str, Json]:
    """The same mapping with the type that a record has: everything put into it above is plain data."""
    plain: dict[str, Json] = {}
    for key, value in status.items():
        if value is None or isinstance(value, (bool, int, float, str, list, dict)):
            plain[key] = value
    return plain
