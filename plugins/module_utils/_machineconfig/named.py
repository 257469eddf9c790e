# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a configuration names: the host, and the authority of its Talos API."""
from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from .._model.records import Json, dig
from .documents import Config


def host_name(config: Config) -> str:
    """The host name that it sets, '' where it sets none."""
    document = config.find("HostnameConfig")
    told = document.data.get("hostname") if document is not None else None
    network = _machine(config).get("network")
    return str(told or (network.get("hostname") if isinstance(network, dict) else None) or "")


def names_a_host(documents: Iterable[Json]) -> bool:
    """Whether a patch of these documents may set a host name."""
    return any(isinstance(document, dict) and (document.get("kind") == "HostnameConfig" or dig(document, "machine", "network", "hostname") is not None)
               for document in documents)


def machine_authority(config: Config) -> str:
    """PEM text of the CA certificate that signs the Talos API, '' where it has none that can be read."""
    pair = _machine(config).get("ca")
    text = pair.get("crt") if isinstance(pair, dict) else None
    try:
        return base64.b64decode(str(text or ""), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""


def _machine(config: Config) -> dict[str, object]:
    found = config.legacy.data.get("machine") if config.legacy is not None else None
    return found if isinstance(found, dict) else {}
