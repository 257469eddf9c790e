# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What this run has found out about machines that run: a node with the same bytes as at the last look is not compared again."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._decide.comparison import Compared
from .._model.outcome import Difference

#: SHA-256 of the render, of what the node runs, of what it keeps ('' for the same), and its Talos version.
Key = tuple[str, str, str, str]


@dataclass
class ComparedMemory:
    """One entry a machine, so that it does not grow with time."""

    _known: dict[str, tuple[Key, Compared, tuple[Difference, ...]]] = field(default_factory=dict, repr=False)
    _with_reboot: dict[str, str] = field(default_factory=dict)
    _evidence: dict[str, float] = field(default_factory=dict)
    _resets: dict[str, float] = field(default_factory=dict)

    def known(self, machine: str, key: Key) -> tuple[Compared, tuple[Difference, ...]] | None:
        """What came of comparing exactly these."""
        found = self._known.get(machine)
        return (found[1], found[2]) if found is not None and found[0] == key else None

    def remember(self, machine: str, key: Key, compared: Compared, shown: tuple[Difference, ...]) -> None:
        self._known[machine] = (key, compared, shown)

    def evidence_is_due(self, cluster: str, now: float, every: float) -> bool:
        """Whether the evidence of the cluster's disrupted machine is looked for now: by one look in `every` seconds, however many wait."""
        last = self._evidence.get(cluster)
        if last is not None and now - last < every:
            return False
        self._evidence[cluster] = now
        return True

    def only_with_reboot(self, machine: str, sha256: str) -> None:
        """The node said that it takes these bytes only with a reboot."""
        self._with_reboot[machine] = sha256

    def takes_only_with_reboot(self, machine: str, sha256: str) -> bool:
        return self._with_reboot.get(machine) == sha256

    def reset_seen(self, cluster: str, at: float) -> None:
        """A machine of the cluster was reset by this product then, in seconds since the epoch."""
        self._resets[cluster] = at

    def last_reset(self, cluster: str) -> float | None:
        """The last reset that this run knows of; it is remembered when its record is gone."""
        return self._resets.get(cluster)
