# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The port `Nodes` of a module that speaks to no node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NoReturn

from .._model.credentials import Credentials
from .._model.endpoint import Endpoint, Probe
from .._model.ports import Session


class NoNodes:
    """Every use is a fault of ours, and ends as InternalError."""

    def scan(self, targets: Sequence[Endpoint], *, rate: float, unresolved: int, timeout: float) -> AsyncIterator[Probe]:
        _fault()

    async def probe(self, endpoint: Endpoint, timeout: float) -> Probe:
        _fault()

    def maintenance(self, endpoint: Endpoint, pin: str = "") -> AbstractAsyncContextManager[Session]:
        _fault()

    def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AbstractAsyncContextManager[Session]:
        _fault()

    @property
    def written(self) -> bool:
        """Nothing was."""
        return False

    def end_writes(self) -> None:
        """There are none."""

    async def close(self) -> None:
        """Nothing is open."""


def _fault() -> NoReturn:
    raise RuntimeError("this module was built without access to nodes")
