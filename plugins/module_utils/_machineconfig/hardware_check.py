# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the links that a configuration names are on the node (design section 8). Disks are checked where they are picked."""
from __future__ import annotations

import re
from collections.abc import Collection

from . import cel
from .documents import Config

_PHYSICAL = ("LinkConfig", "DHCPv4Config", "DHCPv6Config", "EthernetConfig")
_MADE = ("BondConfig", "BridgeConfig", "DummyLinkConfig", "VLANConfig", "VRFConfig", "VethConfig", "WireguardConfig", "LinkAliasConfig")
_MAC = re.compile(re.escape(cel.permanent_mac("")).replace('""', '"([0-9a-f:]+)"') + r"\Z")


def missing_links(config: Config, names: Collection[str], macs: Collection[str]) -> list[str]:
    """One sentence for each link that is not there. names: links of the node; macs: their permanent addresses with colons.

    A name that the configuration itself makes (a bond, a VLAN, an alias) is there. An expression that is not one of this
    product's own is left to Talos.
    """
    if not names and not macs:
        return []
    made = {document.name for document in config.documents if document.kind.name in _MADE}
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
    return found


def _known(name: str, names: Collection[str], made: Collection[str], patterns: Collection[str]) -> bool:
    return name in names or name in made or any(name.startswith(pattern) and name[len(pattern):].isdigit() for pattern in patterns)
