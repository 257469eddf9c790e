# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a TalosMachine record says, read in one place (design sections 3, 5 and 7)."""

from __future__ import annotations

from collections.abc import Container

from .errors import TalosError
from .identity import Identity, canonical_mac, canonical_uuid
from .endpoint import Endpoint
from .records import Record, list_at, text_at
from .addresses import parse_endpoint


def cluster_of(machine: Record) -> str:
    """The cluster that `spec.clusterRef` names, or ''."""
    return text_at(machine.spec, "clusterRef")


def strong_name(cluster: str, uuid: str, taken: Container[str]) -> str:
    """The record's name of a machine that its UUID singles out: the beginning of that, longer on a clash (section 3)."""
    for length in (8, 13, 18, 23):
        name = f"{cluster}-{uuid[:length]}"
        if name not in taken:
            return name
    return f"{cluster}-{uuid}"


def identity_of(machine: Record) -> Identity:
    """`spec.identity` in canonical form."""
    macs = {canonical_mac(mac) for mac in list_at(machine.spec, "identity", "macs") if isinstance(mac, str)} - {""}
    return Identity(canonical_uuid(text_at(machine.spec, "identity", "uuid")),
                    text_at(machine.spec, "identity", "serial").strip(), tuple(sorted(macs)))


def pin_of(machine: Record) -> str:
    """The certificate that counts: what a person accepted, else what was read in maintenance mode (section 5)."""
    return text_at(machine.spec, "acceptedFingerprint") or text_at(machine.status, "maintenanceFingerprint")


def spec_endpoint(machine: Record) -> Endpoint:
    """`spec.endpoint`. Raises TalosError `InvalidAddress`."""
    text = text_at(machine.spec, "endpoint")
    if not text:
        raise TalosError("InvalidAddress", f"Machine {machine.name} has no spec.endpoint.", "Set its endpoint with talos_machine.")
    return parse_endpoint(text)


def dial_endpoint(machine: Record) -> Endpoint:
    """Where the machine is dialled: the observed address while it was recorded against this very `spec.endpoint`.

    Raises TalosError `InvalidAddress`.
    """
    observed = text_at(machine.status, "observedEndpoint")
    if observed and text_at(machine.status, "observedEndpointFor") == text_at(machine.spec, "endpoint"):
        return parse_endpoint(observed)
    return spec_endpoint(machine)


def known_endpoints(machine: Record) -> tuple[Endpoint, ...]:
    """The address to dial and the one in the spec; () where the record names none that can be read."""
    try:
        return tuple(dict.fromkeys((dial_endpoint(machine), spec_endpoint(machine))))
    except TalosError:
        return ()
