# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a torture has tried, and what broke."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts by kind, and one entry a thing that broke: with the seed of its round it is tried again."""

    tried: dict[str, int] = field(default_factory=dict)
    broke: list[str] = field(default_factory=list)

    def round(self, kind: str, seed: str, do: Callable[[random.Random], int]) -> None:
        """One round of one kind with a chance of its own; `do` gives back how many things it tried."""
        try:
            count = do(random.Random(seed))
        except Exception as error:
            count = 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.broke.append(f"{kind}, seed {seed}: {type(error).__name__} at {where.filename.rpartition('/')[2]}:{where.lineno}: {error}")
        self.tried[kind] = self.tried.get(kind, 0) + count

    def lines(self) -> list[str]:
        """For people: what was tried, then what broke."""
        return [", ".join(f"{count} {kind}" for kind, count in self.tried.items()) + f"; {len(self.broke)} broke", *self.broke]
