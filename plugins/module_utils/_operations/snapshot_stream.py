# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot on its way: its hash is told while it passes, and no more of it than a piece is in memory (design section 17)."""

from __future__ import annotations

import hashlib

from .._model.backups import PAGE, TRAILER
from .._model.errors import TalosError


class Passing:
    """What passed of a snapshot. The last 32 bytes are the SHA-256 of all before, and the rest is whole pages."""

    def __init__(self) -> None:
        self.size = 0
        self._body, self._whole = hashlib.sha256(), hashlib.sha256()
        self._tail = b""

    def take(self, piece: bytes) -> None:
        self.size += len(piece)
        self._whole.update(piece)
        held = self._tail + piece
        self._body.update(held[:-TRAILER])
        self._tail = held[-TRAILER:]

    @property
    def sha256(self) -> str:
        """Hash of everything, hex."""
        return self._whole.hexdigest()

    def problem(self) -> str:
        """Why this is no whole snapshot, as a clause, or ''."""
        if self.size <= TRAILER:
            return f"it has {self.size} bytes"
        if self.size % PAGE != TRAILER:
            return "it was cut off, or has no hash at its end"
        if self._body.digest() != self._tail:
            return "its content is not that of the hash at its end"
        return ""

    def check(self, what: str) -> None:
        """Raises TalosError `SnapshotInvalid`."""
        if self.problem():
            raise TalosError("SnapshotInvalid", f"{what} is no whole snapshot of etcd: {self.problem()}.", "Take another one; nothing is kept of this one.")


def shown_size(size: int) -> str:
    """A size for a person."""
    return f"{size / 1_000_000:.1f} MB" if size >= 1_000_000 else f"{size / 1000:.1f} kB"
