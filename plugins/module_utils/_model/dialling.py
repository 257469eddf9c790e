# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one cluster adds to the addresses that are never dialled (design section 3, "The address to dial")."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from .addresses import AddressRules
from .errors import TalosError
from .records import JsonMap, dig, text_at
from .targets import canonical_host, literal

#: Talos's own, where a cluster declares none.
DEFAULT_POD_RANGES = ("10.244.0.0/16",)
DEFAULT_SERVICE_RANGES = ("10.96.0.0/12",)

_POD_KEYS = ("podSubnets", "podRanges")
_SERVICE_KEYS = ("serviceSubnets", "serviceRanges")


def endpoint_host(cluster: JsonMap) -> str:
    """The host in a TalosCluster's `spec.endpoint`, in canonical form, or ''."""
    url = text_at(cluster, "endpoint")
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:
        return ""
    return canonical_host(host) if host else ""


def rules_of(cluster: JsonMap | None, allow_loopback: bool = False) -> AddressRules:
    """The rules for the spec of a TalosCluster; without one only what holds everywhere."""
    if cluster is None:
        return AddressRules(allow_loopback)
    host = endpoint_host(cluster)
    shared = ((host, "the endpoint or VIP of the cluster"),) if host else ()
    pods = tuple((text, "the pod range") for text in _ranges(cluster, _POD_KEYS, DEFAULT_POD_RANGES))
    services = tuple((text, "the service range") for text in _ranges(cluster, _SERVICE_KEYS, DEFAULT_SERVICE_RANGES))
    return AddressRules(allow_loopback, shared, pods + services)


def _ranges(cluster: JsonMap, keys: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    for key in keys:
        found = dig(cluster, "network", key)
        if isinstance(found, list) and found:
            return tuple(text for text in found if isinstance(text, str))
    return default


def refused_host(host: str, rules: AddressRules) -> str:
    """Why a host must not be dialled, as the end of a sentence, or ''. Of a name only the name itself is judged."""
    address = literal(host)
    if address is None:
        if canonical_host(host) == "localhost" and not rules.allow_loopback:
            return "which is this very host"
        return next((f"which is {what}" for name, what in rules.shared if canonical_host(name) == canonical_host(host)), "")
    if isinstance(address, ipaddress.IPv6Address) and address.is_link_local and not address.scope_id:
        return "which is link-local and needs its interface, as in fe80::1%eth0"
    return rules.refusal(host)


def check_host(host: str, rules: AddressRules) -> None:
    """Raise TalosError `EndpointRefused` for a host that must not be dialled."""
    why = refused_host(host, rules)
    if why:
        raise TalosError("EndpointRefused", f"{host}, {why}, is not dialled.",
                         "Give an address of the node itself in spec.endpoint.")
