# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a store says of itself: its id, and whether its records are on their way to or from another one (design section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .errors import TalosError
from .ports import Store


@dataclass(frozen=True)
class StorePlace:
    """`id` is '' for a store that has none yet. The others name the other store for a person, and by its id."""

    id: str = ""
    moved_to: str = ""
    moved_to_id: str = ""
    filled_from: str = ""
    filled_from_id: str = ""

    @property
    def live(self) -> bool:
        """Whether runs may write to it."""
        return not self.moved_to and not self.filled_from

    def refuse(self, description: str) -> None:
        """Raises `StoreMoved` for a store that is not live; `description` names it."""
        if self.moved_to:
            raise TalosError("StoreMoved", f"The records of {description} were moved to {self.moved_to}.",
                             "Use that store; this one is kept only to look at.")
        if self.filled_from:
            raise TalosError("StoreMoved", f"The records of {self.filled_from} are being moved to {description}, and not all of them are there.",
                             "Run store_copy again with the same two stores; it goes on where it was.")


class MovableStore(Store, Protocol):
    """A store whose records can be moved. With `copying` it takes writes although it is not live: only who moves records sets that."""

    copying: bool

    def place(self) -> StorePlace: ...

    def set_place(self, place: StorePlace) -> StorePlace:
        """Write down what is said of it, at once and whole; gives it back with the id, which is made where there was none."""
