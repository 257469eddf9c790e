# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds processes that a test run started and left behind, by a mark in their environment."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "ICHOR_TEST_RUN"


def of(mark: str) -> list[str]:
    """One line, pid and command, for each process other than this one that carries the mark; empty where /proc is missing."""
    wanted = f"{VARIABLE}={mark}".encode()
    left = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) == os.getpid() or wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        left.append(f"{folder.name} {command}")
    return left
