# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who a machine is: SMBIOS UUID, serial and permanent MACs (design section 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


@dataclass(frozen=True)
class Identity:
    """`uuid` in canonical lower case or '', `serial` or '', `macs` sorted, lower case, colons."""

    uuid: str = ""
    serial: str = ""
    macs: tuple[str, ...] = ()


def canonical_uuid(text: str) -> str:
    """Lower-case 8-4-4-4-12, or '' when the text is no UUID (such a UUID counts as absent, section 5)."""
    text = text.strip().lower()
    return text if _UUID.match(text) else ""


def swapped_uuid(uuid: str) -> str:
    """The same UUID with the byte order of the first three fields turned round (how some boards differ by firmware)."""
    if not _UUID.match(uuid):
        return ""
    first, second, third, fourth, fifth = uuid.split("-")

    def turn(part: str) -> str:
        return "".join(reversed([part[i:i + 2] for i in range(0, len(part), 2)]))

    return "-".join((turn(first), turn(second), turn(third), fourth, fifth))


def canonical_mac(text: str) -> str:
    """`aa:bb:cc:dd:ee:ff` from any usual notation (colons, dashes, dots, none), or ''."""
    digits = re.sub(r"[:\-.\s]", "", text.strip().lower())
    if not re.fullmatch(r"[0-9a-f]{12}", digits):
        return ""
    return ":".join(digits[i:i + 2] for i in range(0, 12, 2))
