# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the node that answers is the machine of the record (design section 9, step 5)."""

from __future__ import annotations

from .._model.hardware import meaningful
from .._model.identity import Identity
from .._model.machine import identity_of
from .._model.records import MACHINE, JsonMap, Record


def recorded_identity(spec: JsonMap) -> Identity:
    """`spec.identity` of a TalosMachine's spec, in canonical spelling."""
    return identity_of(Record(MACHINE, "", spec=spec))


def difference(expected: Identity, found: Identity) -> str:
    """What differs, in words, or '' where it is the same machine.

    Compared is what was recorded: the UUID whenever there is one (a node that reports none differs), serial and the set of
    MACs likewise; placeholders count as absent on both sides. A record of nothing matches nobody.
    """
    wanted, have = meaningful(expected), meaningful(found)
    if wanted == Identity():
        return "nothing is recorded to know the machine by"
    if wanted.uuid and wanted.uuid != have.uuid:
        return f"UUID {have.uuid or 'not reported'} instead of {wanted.uuid}"
    if wanted.serial and wanted.serial != have.serial:
        return f"serial {have.serial or 'not reported'} instead of {wanted.serial}"
    if wanted.macs and set(wanted.macs) != set(have.macs):
        return f"MAC addresses {', '.join(have.macs) or 'not reported'} instead of {', '.join(wanted.macs)}"
    return ""


def other_machine(expected: Identity, found: Identity) -> str:
    """The same of a node that answered with authentication: its UUID tells, so that a machine keeps its record when a network card is
    replaced (section 10). Where no UUID is recorded, everything that is."""
    wanted = meaningful(expected)
    return difference(Identity(wanted.uuid) if wanted.uuid else expected, found)
