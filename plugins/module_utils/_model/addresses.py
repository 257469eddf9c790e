# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses as people write them: one host, `host:port`, IPv6, CIDR, `a-b`, comma lists, host names (design section 6).

Nothing here asks a name server: a host name stays a name, and whoever dials checks the address that it resolves to.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable
from typing import Union

from .errors import TalosError
from .endpoint import Endpoint

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

TALOS_PORT = 50000

#: The most addresses that one discovery takes: two /16 and a little. A /0 or an IPv6 /64 is a slip of the pen.
MAX_ADDRESSES = 140_000

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z", re.IGNORECASE)
_NUMERIC_NAME = re.compile(r"[0-9.]+\Z")


def _invalid(text: str, why: str) -> TalosError:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return TalosError("InvalidAddress", f"{shown!r} is no address: {why}.",
                      "Write a host name, an IP address, host:port, [IPv6]:port, a CIDR, or first-last.")


@functools.lru_cache(maxsize=16384)
def literal(text: str) -> Address | None:
    """The IP address that the text spells (brackets allowed, a zone kept), or None for a host name.

    Remembered, since the addresses of a fleet are looked at again at every pass.
    """
    try:
        return ipaddress.ip_address(text.strip().strip("[]"))
    except ValueError:
        return None


def plain_address(address: Address) -> Address:
    """The address that a packet really goes to: IPv4 written as `::ffff:a.b.c.d` is that IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def canonical_host(text: str) -> str:
    """One spelling a host: the literal in its shortest form, a name in lower case without a final dot."""
    address = literal(text)
    return str(plain_address(address)) if address is not None else text.strip().lower().rstrip(".")


def parse_endpoint(text: str, port: int = TALOS_PORT) -> Endpoint:
    """One host with an optional port. Raises TalosError `InvalidAddress`."""
    written = text.strip()
    if "://" in written or "/" in written:
        raise _invalid(written, "a URL or a path is not wanted here")
    host, said = _split_port(written)
    if said:
        if not said.isascii() or not said.isdigit() or not 0 < int(said) < 65536:
            raise _invalid(written, f"the port {said!r} is not between 1 and 65535")
        port = int(said)
    if literal(host) is None:
        _check_name(written, host)
    return Endpoint(canonical_host(host), port)


def _split_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or ":" not in host or literal(host) is None:
            raise _invalid(text, "square brackets hold one IPv6 address")
        if rest == ":":
            raise _invalid(text, "the port is missing")
        return host, rest[1:]
    if text.count(":") == 1:
        host, dummy, port = text.partition(":")
        if not port:
            raise _invalid(text, "the port is missing")
        return host, port
    return text, ""


def _check_name(text: str, name: str) -> None:
    if ":" in name:
        raise _invalid(text, "this is no IPv6 address")
    if _NUMERIC_NAME.match(name):
        raise _invalid(text, "this is no IPv4 address")
    labels = name.rstrip(".").split(".")
    if not name or len(name) > 253 or not all(_LABEL.match(label) for label in labels):
        raise _invalid(text, "this is neither an IP address nor a host name")


def expand(texts: Iterable[str], port: int = TALOS_PORT, limit: int = MAX_ADDRESSES) -> tuple[Endpoint, ...]:
    """Every endpoint that the texts name, in the order written, each once.

    A text may hold several, parted by commas or white space. Of a CIDR the host addresses are taken (not the network's
    own and not the broadcast address). Raises TalosError `InvalidAddress`, or `RangeTooLarge` before anything is
    expanded when all together would be more than `limit`.
    """
    pieces = [piece for text in texts for piece in re.split(r"[\s,]+", text) if piece]
    ranges = [_range_of(piece) for piece in pieces]
    sizes = [1 if bounds is None else bounds[1] - bounds[0] + 1 for bounds in ranges]
    if sum(sizes) > limit:
        widest = pieces[sizes.index(max(sizes))]
        raise TalosError("RangeTooLarge", f"{widest} makes {sum(sizes)} addresses, more than the {limit} that one discovery probes.",
                         "Name the ranges that the machines are in.")
    found: dict[Endpoint, None] = {}
    for piece, bounds in zip(pieces, ranges):
        if bounds is None:
            found[parse_endpoint(piece, port)] = None
            continue
        first, last, version = bounds
        for number in range(first, last + 1):
            found[Endpoint(_spell(number, version), port)] = None
    return tuple(found)


def _spell(number: int, version: int) -> str:
    if version == 4:
        return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return str(ipaddress.IPv6Address(number))


def _range_of(piece: str) -> tuple[int, int, int] | None:
    """First and last address as numbers with the IP version, or None where the text is one host."""
    if "/" in piece and "://" not in piece:
        try:
            network = ipaddress.ip_network(piece, strict=False)
        except ValueError as exc:
            raise _invalid(piece, "this is no CIDR") from exc
        first, last = int(network.network_address), int(network.broadcast_address)
        if network.num_addresses > 2:
            first, last = first + 1, last - 1 if network.version == 4 else last
        return first, last, network.version
    left, dash, right = piece.partition("-")
    start = literal(left) if dash else None
    if start is None:
        return None
    end = literal(right)
    if end is None and start.version == 4 and re.fullmatch(r"[0-9]{1,3}", right):
        end = literal(left.rpartition(".")[0] + "." + str(int(right)))
    if end is None or end.version != start.version:
        raise _invalid(piece, "a range is two addresses of one kind with a dash between them")
    if int(end) < int(start):
        raise _invalid(piece, "the range ends before it begins")
    return int(start), int(end), start.version
