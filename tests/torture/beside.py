# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a torture tries in processes of its own, beside its rounds: configurations, which need no lab and so much computing that every processor has one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.torture.tally import Tally

ROOT = Path(__file__).resolve().parents[2]


class Beside:
    """`counts`: how many of each kind. The processes start with the block; `join` waits for them; what runs at its end is killed."""

    def __init__(self, seed: str, counts: Mapping[str, int]) -> None:
        workers = os.cpu_count() or 1
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))}
        self._processes = [
            subprocess.Popen([sys.executable, "-m", "tests.torture.configurations", kind, f"{seed}/{kind}", str(first), str(count), str(workers)],
                             cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
            for kind, count in counts.items() for first in range(min(workers, count))]

    def join(self, tally: Tally) -> None:
        """Adds what was tried and what broke."""
        for process in self._processes:
            told, dummy = process.communicate()
            if process.returncode:
                tally.broke.append(f"{process.args!r} ended with {process.returncode}")
                continue
            found = json.loads(told)
            tally.broke.extend(found["broke"])
            for kind, count in found["tried"].items():
                tally.tried[kind] = tally.tried.get(kind, 0) + count

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
