# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a torture does to controllers of a running cluster, in a process beside its rounds: more kills than the tests make of them, and two at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.torture.tally import Tally

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/lives/test_killed_controllers.py", "tests/lives/test_two_controllers.py")
#: A kill and the run that finishes it, in seconds of a busy machine.
_SECONDS = 20.0
_LEAST = 4


class Running:
    """The process starts with the block; `join` waits for it; it does not outlive the block."""

    def __init__(self, seconds: float) -> None:
        self._kills = max(_LEAST, round(seconds / 2 / _SECONDS))
        variables = {**os.environ, "ICHOR_TEST_KILLS": str(self._kills),
                     "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))}
        self._process = subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], cwd=ROOT, env=variables,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def join(self, tally: Tally) -> None:
        """Adds what was tried and what broke."""
        told, dummy = self._process.communicate()
        tally.tried["kills of controllers of a running cluster"] = 2 * self._kills
        if self._process.returncode:
            tally.broke.append(f"{' '.join(TESTS)} with ICHOR_TEST_KILLS={self._kills}:\n{told[-4000:]}")

    def __enter__(self) -> Running:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
