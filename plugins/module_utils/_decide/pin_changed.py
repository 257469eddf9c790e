# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person has to know when a certificate is not the pinned one (design section 5, "The fingerprint")."""

from __future__ import annotations

from .._model.moments import moment
from .._model.observations import Certificate
from .._model.plan import Target
from .._model.records import Record, text_at


def pin_changed_message(machine: Record | None, target: Target, pin: str, found: Certificate) -> tuple[str, str]:
    """One sentence of what is wrong and one of what to do: old pin and when it was read, new pin and since when it is
    valid, that Talos rotates by itself, and the command that accepts it. Identity is equal where this is said."""
    read_at = text_at(machine.status, "maintenanceFingerprintAt") if machine else ""
    since = f" (read at {read_at})" if read_at else ""
    message = (f"The identity is equal, but the certificate is {found.fingerprint} (valid from {moment(found.not_before)}) "
               f"instead of the pinned {pin}{since}; Talos makes a new one by itself every 12 h, at every boot, address and clock change.")
    if machine is None:
        return message, f"Compare it with the node's console, and give fingerprint: {found.fingerprint}."
    return message, (f"Compare it with the node's console, and accept it: ansible localhost -m ichor.talos.talos_machine "
                     f"-a 'machine={target.name} trust=true fingerprint={found.fingerprint}'.")
