# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts another resolver into a module process: one that hangs, or that answers what it is told, the next answer each time."""

from __future__ import annotations

import socket
import threading
from typing import Any


def install(told: list[list[str]]) -> None:
    """`told` is the answers in turn; after the last one it hangs."""
    answers, real = iter(told), socket.getaddrinfo

    def answer(host: str, port: int, *arguments: Any, **options: Any) -> list[Any]:
        if options.get("flags", 0) & socket.AI_NUMERICHOST:
            return list(real(host, port, *arguments, **options))
        for addresses in answers:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]
        threading.Event().wait()
        return []

    socket.getaddrinfo = answer  # type: ignore[assignment]
