# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that the tests leave behind is found by the mark in its environment, and no other process is."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

from tests.workshop import leftovers


def test_a_marked_process_is_found_until_it_ends() -> None:
    mark = uuid.uuid4().hex
    assert leftovers.of(mark) == []
    environment = {**os.environ, leftovers.VARIABLE: mark}
    with subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        assert [line.split()[0] for line in leftovers.of(mark)] == [str(process.pid)]
        process.communicate(b"\n")
    assert leftovers.of(mark) == []
