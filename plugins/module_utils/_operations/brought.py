# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person brings to a send: the configuration's bytes and the identity of a node without a record."""

from __future__ import annotations

from collections.abc import Iterable

from .._machineconfig.bring import BroughtConfig, bring
from .._model.errors import TalosError
from .._model.identity import Identity, canonical_mac, canonical_uuid
from .._model.observed import Observed, Present, Unknown


def bring_config(data: bytes, source: str) -> Observed[BroughtConfig]:
    """The configuration, or why it cannot be used, with the line where that stands."""
    try:
        return Present(bring(data, source=source), source)
    except TalosError as error:
        return Unknown(error.reason, error.message, error.hint)


def identity_option(uuid: str, serial: str, macs: Iterable[str]) -> Identity:
    """The identity that the options name. Raises TalosError `InvalidInput` for a UUID or a MAC that is none."""
    canonical = canonical_uuid(uuid)
    if not canonical:
        raise TalosError("InvalidInput", f"{uuid!r} is no UUID.", "Give the SMBIOS UUID that talos_discover shows.")
    found = []
    for mac in macs:
        if not canonical_mac(mac):
            raise TalosError("InvalidInput", f"{mac!r} is no MAC address.", "Write it like 52:54:00:12:34:56.")
        found.append(canonical_mac(mac))
    return Identity(canonical, serial.strip(), tuple(sorted(found)))
