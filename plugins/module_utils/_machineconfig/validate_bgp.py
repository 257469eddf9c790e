# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of BGPInstanceConfig. Words are Talos's."""
from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from .go_net import masked
from .verdict import Report, quote

Data = Mapping[str, Any]


def _bgp(data: Data, version: str, report: Report) -> None:
    report.need(data.get("name"), "name", "name must be specified")
    report.need(data.get("localASN"), "localASN", "localASN must be specified")
    if ":" in (data.get("routerID") or ""):
        report.error("routerID", "routerID must be an IPv4 address")
    if not data.get("neighbors"):
        report.warn("neighbors", "BGPInstanceConfig has no neighbors configured")
    seen: set[str] = set()
    for index, neighbor in enumerate(data.get("neighbors") or []):
        path = f"neighbors.{index}"
        address, link = neighbor.get("address") or "", neighbor.get("link") or ""
        both = bool(address) == bool(link)
        if both:
            report.error(path, f"neighbor[{index}]: exactly one of address or link must be set")
        _behavior(index, neighbor, data.get("vrf") or "", path, report)
        if both:
            continue
        if (address or link) in seen:
            report.error(path, f"neighbor[{index}]: duplicate neighbor {quote(address or link)}")
        seen.add(address or link)
    _imports(data.get("name") or "", data.get("importRoutes") or [], report)


def _behavior(index: int, neighbor: Data, vrf: str, path: str, report: Report) -> None:
    if (neighbor.get("holdTime") or 0) < 0:
        report.error(f"{path}.holdTime", f"neighbor[{index}]: holdTime must not be negative")
    bfd = neighbor.get("bfd")
    if bfd is None:
        return
    if vrf:
        report.error(f"{path}.bfd", f"neighbor[{index}]: bfd is not supported for VRF-bound BGP instances")
    for key in ("transmitInterval", "receiveInterval"):
        if (bfd.get(key) or 0) < 0:
            report.error(f"{path}.bfd.{key}", f"neighbor[{index}]: bfd.{key} must not be negative")


def _imports(name: str, routes: list[Data], report: Report) -> None:
    sources: set[str] = set()
    selectors: list[tuple[int, str]] = []
    for index, route in enumerate(routes):
        path, shown = f"importRoutes.{index}", f"importRoutes[{index}]"
        source = route.get("bgpInstance") or ""
        if not source:
            report.error(path, f"{shown}: bgpInstance must be specified")
        elif source == name:
            report.error(path, f"{shown}: cannot import from the same BGP instance {quote(name)}")
        _import_prefixes(shown, path, route.get("prefixes") or [], report)
        if source:
            if source in sources:
                report.error(path, f"{shown}: duplicate source BGP instance {quote(source)}")
            sources.add(source)
        for prefix in route.get("prefixes") or []:
            if not prefix or not masked(prefix):
                continue
            for other_index, other in selectors:
                if other_index != index and _overlap(other, prefix):
                    report.error(path, f"{shown}: prefix {prefix} overlaps importRoutes[{other_index}] prefix {other}")
            selectors.append((index, prefix))


def _import_prefixes(shown: str, path: str, prefixes: list[str], report: Report) -> None:
    if not prefixes:
        report.error(path, f"{shown}: at least one prefix must be specified")
    for index, prefix in enumerate(prefixes):
        if not prefix:
            report.error(path, f"{shown}.prefixes[{index}]: invalid prefix")
            continue
        if not masked(prefix):
            report.error(path, f"{shown}.prefixes[{index}]: prefix {prefix} must be masked")
        for position, other in enumerate(prefixes[:index]):
            if other and _overlap(other, prefix):
                report.error(path, f"{shown}.prefixes[{index}]: prefix {prefix} overlaps prefixes[{position}] {other}")


def _overlap(one: str, other: str) -> bool:
    left, right = ipaddress.ip_interface(one), ipaddress.ip_interface(other)
    return left.version == right.version and (right.ip in left.network or left.ip in right.network)


CHECKS: dict[str, Callable[[Data, str, Report], None]] = {"BGPInstanceConfig": _bgp}
