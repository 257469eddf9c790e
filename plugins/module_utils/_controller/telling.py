# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Live lines of a run: what changed, and at least one a minute while nothing does (design section 18)."""

from __future__ import annotations

from collections.abc import Iterable

from .._model.outcome import MachineRow
from .._model.ports import Ports
from .._operations.teller import AGAIN

#: So many machines are named in the line that says what is waited for.
_NAMED = 5


class Teller:
    """Tells each machine's stage and reason when they change."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._gist: dict[str, tuple[str, str]] = {}
        self._at = ports.clock.monotonic()

    def line(self, text: str) -> None:
        """One line now."""
        self._at = self._ports.clock.monotonic()
        self._ports.progress(text)

    def known(self, row: MachineRow) -> None:
        """The state from which changes are told."""
        self._gist[row.name] = (row.stage, row.reason)

    def row(self, row: MachineRow) -> None:
        """A line about the machine, where its stage or reason is another one than before."""
        if self._gist.get(row.name) != (row.stage, row.reason):
            self.known(row)
            self.line(f"{row.name}: {row.stage or 'unknown'}{f' ({row.reason})' if row.reason else ''}{f': {row.message}' if row.message else ''}")

    @property
    def due(self) -> float:
        """When the next line has to come."""
        return self._at + AGAIN

    def waiting(self, unsettled: Iterable[str], left: float) -> None:
        """What is waited for, where nothing was told for a while."""
        if self._ports.clock.monotonic() < self.due:
            return
        names = sorted(unsettled)
        named = ", ".join(f"{name} ({self._gist.get(name, ('', ''))[1] or 'no reason yet'})" for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        told = f"waiting for {named}{more}" if names else "nothing to do; looking again from time to time"
        self.line(f"{told}; {left:.0f} s left")
