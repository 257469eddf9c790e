# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which addresses are never dialled (design section 3, "The address to dial").

The rule is asked twice: with what a person or a record says, and by whoever dials with each address that a name
resolved to.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from .addresses import canonical_host, literal, plain_address
from .errors import TalosError
from .records import JsonMap, dig, list_at, text_at

#: Talos's own, where a cluster declares none.
DEFAULT_POD_RANGES = ("10.244.0.0/16",)
DEFAULT_SERVICE_RANGES = ("10.96.0.0/12",)


@dataclass(frozen=True)
class DialRules:
    """What one cluster adds to the addresses that nobody dials.

    `reserved` are hosts in canonical form (the cluster's endpoint, which is its VIP where it has one), `inside` the CIDRs
    of pods and services. `allow_loopback` is the option for a lab.
    """

    allow_loopback: bool = False
    reserved: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()

    def problem(self, host: str) -> str:
        """Why the host (a literal or a name) must not be dialled, as a clause, or ''. A name is only compared with
        `reserved` and `localhost`: whoever resolves it asks again with each address."""
        return _problem(self, host)

    def screen(self) -> Callable[[str], str]:
        """`problem` for very many hosts: plain IPv4 literals that nothing forbids are let through by arithmetic alone."""
        first = {0, 255, *range(224, 240)} | (set() if self.allow_loopback else {127})
        networks = [_network(cidr) for cidr in self.inside]
        masks = [(int(network.netmask), int(network.network_address)) for network in networks if network.version == 4]
        reserved = frozenset(self.reserved)

        def problem(host: str) -> str:
            parts = host.split(".")
            if len(parts) != 4 or not all(part.isdigit() for part in parts) or host in reserved:
                return self.problem(host)
            number = (int(parts[0]) << 24) + (int(parts[1]) << 16) + (int(parts[2]) << 8) + int(parts[3])
            if number >> 24 in first or any(number & mask == network for mask, network in masks):
                return self.problem(host)
            return ""

        return problem

    def check(self, host: str, said: str = "") -> None:
        """Raise TalosError `EndpointRefused` for such a host; `said` is the name that resolved to it."""
        why = self.problem(host)
        if why:
            shown = f"{said}, which resolves to {host}," if said and said != host else f"The address {host}"
            raise TalosError("EndpointRefused", f"{shown} is not dialled: {why}.",
                             "Give an address of the node itself in spec.endpoint.")


@functools.lru_cache(maxsize=16384)
def _problem(rules: DialRules, host: str) -> str:
    """`DialRules.problem`, remembered: a fleet's addresses are asked about again at every pass."""
    if canonical_host(host) in rules.reserved:
        return "it is the endpoint or the VIP of the cluster"
    address = literal(host)
    if address is None:
        return "" if rules.allow_loopback or canonical_host(host) != "localhost" else "it is this very host (loopback)"
    if isinstance(address, ipaddress.IPv6Address) and address.is_link_local and not address.scope_id:
        return "a link-local address needs its interface, as in fe80::1%eth0"
    address = plain_address(address)
    if address.is_loopback and not rules.allow_loopback:
        return "it is this very host (loopback)"
    if address.is_unspecified:
        return "it is the unspecified address"
    if address.is_multicast or str(address) == "255.255.255.255":
        return "it is a multicast or broadcast address"
    for cidr in rules.inside:
        network = _network(cidr)
        if address.version == network.version and address in network:
            return f"it is inside the pod or service range {cidr}"
    return ""


def endpoint_host(cluster: JsonMap) -> str:
    """The host in the `endpoint` of a TalosCluster's spec, in canonical form, or ''."""
    url = text_at(cluster, "endpoint")
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:
        return ""
    return canonical_host(host) if host else ""


def dial_rules(cluster: JsonMap | None, allow_loopback: bool = False) -> DialRules:
    """The rules for the spec of a TalosCluster; without one only what holds everywhere.

    The endpoint is refused because behind it there is now one control plane and now another. With a single control plane
    (`controlPlane.count` 1) it is that machine's own address, which has to be dialled.
    """
    if cluster is None:
        return DialRules(allow_loopback)
    host = "" if dig(cluster, "controlPlane", "count") == 1 else endpoint_host(cluster)
    inside = _ranges(cluster, "podSubnets", DEFAULT_POD_RANGES) + _ranges(cluster, "serviceSubnets", DEFAULT_SERVICE_RANGES)
    return DialRules(allow_loopback, (host,) if host else (), inside)


def _ranges(cluster: JsonMap, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    declared = tuple(text for text in list_at(cluster, "network", key) if isinstance(text, str) and _is_network(text))
    return declared or default


@functools.lru_cache(maxsize=256)
def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Raises ValueError for a text that is no CIDR."""
    return ipaddress.ip_network(text, strict=False)


def _is_network(text: str) -> bool:
    try:
        _network(text)
    except ValueError:
        return False
    return True
