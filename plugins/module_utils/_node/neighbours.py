# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which addresses are neighbours on a link of this host: only those fill its neighbour table while they do not answer.

From the kernel's routing table, where there is one to read (Linux); elsewhere, and for IPv6, every address counts as a
neighbour, which makes a scan slower and nothing else.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

_TABLE = "/proc/net/route"
_UP = 1


@dataclass(frozen=True)
class Neighbours:
    """IPv4 routes, the longest first, as mask, network and whether they lead onto a link; None: not known."""

    routes: tuple[tuple[int, int, bool], ...] | None

    def has(self, host: str) -> bool:
        """Whether a literal address is on a link of this host."""
        if self.routes is None:
            return True
        try:
            number = int.from_bytes(socket.inet_pton(socket.AF_INET, host), "big")
        except (OSError, ValueError):
            return True
        for mask, network, direct in self.routes:
            if number & mask == network:
                return direct
        return False


def read_neighbours(table: str = _TABLE) -> Neighbours:
    """What the routing table says now."""
    try:
        lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        rows = [line.split() for line in lines]
        routes = [(_number(row[7]), _number(row[1]), row[2] == "00000000" and row[0] != "lo") for row in rows
                  if len(row) > 7 and int(row[3], 16) & _UP]
    except (OSError, ValueError):
        return Neighbours(None)
    return Neighbours(tuple(sorted(routes, key=lambda route: -route[0])))


def _number(text: str) -> int:
    """An address of the table: hexadecimal digits in the byte order of the host, which is little-endian wherever Linux runs us."""
    return socket.htonl(int(text, 16))
