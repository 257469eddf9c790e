# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A quick look at an IPv4 address before a scan dials it: most lie far from everything that any rule refuses.

What does not pass is not refused yet: it is then asked of the rules themselves (`DialRules.check`). A scan of a /16
would spend more time in those than on the network. A test compares both over random addresses and rules.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from .._model.dialling import DialRules

#: "This network", and from multicast upwards to the broadcast address.
_ALWAYS = ("0.0.0.0/8", "224.0.0.0/3")
_LOOPBACK = "127.0.0.0/8"


class Screen:
    """Ranges near which the rules have to be asked, as pairs of mask and network."""

    def __init__(self, rules: Iterable[DialRules]) -> None:
        near: set[str] = set(_ALWAYS)
        for rule in rules:
            near.update(rule.inside)
            near.update(rule.reserved)
            if not rule.allow_loopback:
                near.add(_LOOPBACK)
        self._near = tuple(pair for text in sorted(near) if (pair := _pair(text)) is not None)

    def passes(self, host: str) -> bool:
        """Whether the host is a plain IPv4 address that no rule can refuse."""
        try:
            number = int.from_bytes(socket.inet_pton(socket.AF_INET, host), "big")
        except (OSError, ValueError):
            return False
        for mask, network in self._near:
            if number & mask == network:
                return False
        return True


def _pair(text: str) -> tuple[int, int] | None:
    """Mask and network of an IPv4 range or address; None for a name or IPv6, which no IPv4 address is inside of."""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return None
    return int(network.netmask), int(network.network_address)
