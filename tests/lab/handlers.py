# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The handlers of all RPCs that the lab answers, by path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

_TABLE: dict[tuple[str, str], Callable[[Any, Any], Awaitable[Any]]] = {}


def _fill() -> None:
    from tests.lab import apply, cosi, etcd_calls, machine_calls, other_calls, power_calls

    for module in (apply, cosi, etcd_calls, machine_calls, other_calls, power_calls):
        for service, names in module.HANDLERS.items():
            for name, handler in names.items():
                _TABLE[(service, name)] = handler


def find(service: str, name: str) -> Callable[[Any, Any], Awaitable[Any]] | None:
    if not _TABLE:
        _fill()
    return _TABLE.get((service, name))
