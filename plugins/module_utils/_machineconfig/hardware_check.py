# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the links and disks that a configuration names are on the node (design section 8). The install disk is checked where it is picked."""
from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from . import cel
from .documents import Config

_PHYSICAL = ("LinkConfig", "DHCPv4Config", "DHCPv6Config", "EthernetConfig")
_MADE = ("BondConfig", "BridgeConfig", "DummyLinkConfig", "VLANConfig", "VRFConfig", "VethConfig", "WireguardConfig", "LinkAliasConfig")
#: What makes the link of a legacy entry.
_MAKES = ("bond", "bridge", "dummy", "wireguard")
_MAC = re.compile(re.escape(cel.permanent_mac("")).replace('""', '"([0-9a-f:]+)"') + r"\Z")


def missing_links(config: Config, names: Collection[str], macs: Collection[str]) -> list[str]:
    """One sentence for each link that is not there. names: links of the node; macs: their permanent addresses with colons.

    A name that the configuration itself makes (a bond, a VLAN, an alias) is there. An expression that is not one of this
    product's own is left to Talos.
    """
    if not names and not macs:
        return []
    interfaces = _interfaces(config)
    made = {document.name for document in config.documents if document.kind.name in _MADE}
    made |= {str(one.get("interface") or "") for one in interfaces if any(one.get(key) for key in _MAKES)}
    patterns = {name.split("%", 1)[0] for name in made if "%" in name}
    lowered = {mac.lower() for mac in macs}
    found = []
    for document in config.documents:
        kind, name = document.kind.name, document.name
        if kind == "LinkAliasConfig":
            alias = _MAC.match(str((document.data.get("selector") or {}).get("match") or ""))
            if alias and alias.group(1) not in lowered:
                found.append(f"no link of the node has the permanent MAC {alias.group(1)}, which {document.id} names")
        elif kind in _PHYSICAL and not _known(name, names, made, patterns):
            found.append(f"the node has no link {name}, which {document.id} names")
        elif kind == "VLANConfig" and document.data.get("parent") and not _known(document.data["parent"], names, made, patterns):
            found.append(f"the node has no link {document.data['parent']}, the parent of {document.id}")
        elif kind in ("BondConfig", "BridgeConfig"):
            found.extend(f"the node has no link {link}, a member of {document.id}" for link in document.data.get("links") or []
                         if not _known(link, names, made, patterns))
    for number, entry in enumerate(interfaces):
        at, name = f"v1alpha1: machine.network.interfaces.{number}", str(entry.get("interface") or "")
        address = str((entry.get("deviceSelector") or {}).get("permanentAddr") or "")
        if name and not entry.get("ignore") and not _known(name.partition(".")[0], names, made, patterns) and name not in names:
            found.append(f"the node has no link {name}, which {at} names")
        if address and not set(address) & set("*?[") and address.lower() not in lowered:
            found.append(f"no link of the node has the permanent MAC {address}, which {at} names")
        for kind in ("bond", "bridge"):
            found.extend(f"the node has no link {link}, a member of {at}" for link in (entry.get(kind) or {}).get("interfaces") or []
                         if not _known(link, names, made, patterns))
    return found


def missing_disks(config: Config, paths: Collection[str]) -> list[str]:
    """One sentence for each disk of `machine.disks` that is not there. paths: device paths of the node. A path of links (/dev/disk) is left to Talos."""
    machine = config.legacy.data.get("machine") if config.legacy is not None else None
    devices = [str(one.get("device") or "") for one in (machine or {}).get("disks") or []]
    return [f"the node has no disk {device}, which v1alpha1: machine.disks.{number} names" for number, device in enumerate(devices)
            if paths and device and device not in paths and not device.startswith("/dev/disk/")]


def _interfaces(config: Config) -> list[Mapping[str, Any]]:
    machine = config.legacy.data.get("machine") if config.legacy is not None else None
    return list(((machine or {}).get("network") or {}).get("interfaces") or [])


def _known(name: str, names: Collection[str], made: Collection[str], patterns: Collection[str]) -> bool:
    return name == "lo" or name in names or name in made or any(name.startswith(pattern) and name[len(pattern):].isdigit() for pattern in patterns)
