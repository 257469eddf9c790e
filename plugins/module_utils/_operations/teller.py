# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Live lines about one machine: when something changed, and now and then when nothing does (design section 18)."""

from __future__ import annotations

from .._model.ports import Ports

#: After so many seconds a person hears of a machine that stays as it is.
AGAIN = 55.0


class Teller:
    """Tells a line about a machine, but not the same one over and over."""

    def __init__(self, ports: Ports, name: str) -> None:
        self._ports, self._name = ports, name
        self._told, self._at = "", float("-inf")

    def __call__(self, line: str, gist: str = "") -> None:
        """`gist` is what counts as the same; the line itself where it is ''."""
        now, word = self._ports.clock.monotonic(), gist or line
        if word != self._told or now - self._at >= AGAIN:
            self._told, self._at = word, now
            self._ports.progress(f"{self._name}: {line}")
