# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a store of backups is inside the very cluster that it is for (design section 17): literal forms only, nothing is resolved."""

from __future__ import annotations

import ipaddress

from .._model.addresses import literal, plain_address
from .._model.backups import Destination
from .._model.dialling import dial_rules
from .._model.records import JsonMap

_NAMES = (".svc", ".svc.cluster.local")


def inside_cluster(destination: Destination, cluster: JsonMap | None) -> str:
    """Why, as a clause, or ''. The ranges are those of the cluster's spec, Talos's own where it declares none."""
    host = destination.host.rstrip(".").lower()
    if not destination.s3 or not host:
        return ""
    if host.endswith(_NAMES):
        return f"{host} is a service of a cluster"
    address = literal(host)
    if address is None:
        return ""
    address = plain_address(address)
    for cidr in dial_rules(cluster or {}).inside:
        network = ipaddress.ip_network(cidr, strict=False)
        if address.version == network.version and address in network:
            return f"{host} is inside the pod or service range {cidr}"
    return ""
