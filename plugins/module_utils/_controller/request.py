# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of the controller is asked for (design section 18)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._model.timing import Timing


@dataclass(frozen=True)
class Request:
    """`clusters`, `machines` and `select` narrow what is acted on; without all three it is every machine of the store.

    `passes`: so many looks at each machine, 0 for no limit. `until_settled`: end when nothing more happens without a person.
    `max_runtime`: seconds after which the run ends in any case. `bounded`: a saved plan says which steps may be done, each once.
    `drain`: a Node is drained before its machine is rebooted.
    `leader`: work only while this run holds the lock of the leader of that name. `alive_file`: touched while the run is well.
    """

    clusters: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    select: str = ""
    passes: int = 0
    until_settled: bool = False
    max_runtime: float = 600.0
    allow_reboot: bool = True
    drain: bool = True
    discard_etcd: str = ""
    leader: str = ""
    alive_file: str = ""
    bounded: bool = False
    discover: bool = True
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False
