# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module processes for tests that need hundreds of them: forked from one that has everything imported, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Generous, since the machine may be busy; nothing waits for it when all goes well.
SECONDS = 120.0


@dataclass(frozen=True)
class Ended:
    """How a module process ended: its exit status (negative: the signal that killed it), its result, and what it printed."""

    status: int
    late: bool
    output: str
    errors: str
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def killed(self) -> bool:
        return self.status < 0


class Nursery:
    """One server, one module at a time. Use several for runs beside each other."""

    def __init__(self, **environment: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ichor-nursery-")
        self._number = 0
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ICHOR_") or name.startswith("ICHOR_TEST_")}
        self._process = subprocess.Popen([sys.executable, "-m", "tests.nursery"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env={**clean, "HOME": self._folder.name, **environment})
        self._answer()

    def start(self, module: str, *, check: bool = False, seconds: float = SECONDS, hook: str = "", told: object = None, **arguments: object) -> int:
        """Begin a module; its pid. `finish` has to follow."""
        self._number += 1
        folder = Path(self._folder.name) / str(self._number)
        folder.mkdir()
        order: dict[str, object] = {"module": module, "arguments": {"_ansible_check_mode": check, **arguments}, "folder": str(folder), "seconds": seconds}
        if hook:
            order |= {"hook": hook, "told": told}
        if self._process.stdin is None:
            raise RuntimeError("the nursery has no input")
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._answer()["pid"])

    def finish(self) -> Ended:
        """Wait for the module that was begun."""
        told = self._answer()
        folder = Path(self._folder.name) / str(self._number)
        output, errors = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr"))
        try:
            result = json.loads(output)
        except ValueError:
            result = {}
        return Ended(told["status"], told["late"], output, errors, result)

    def run(self, module: str, **options: Any) -> Ended:
        """One module from its start to its end."""
        self.start(module, **options)
        return self.finish()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the nursery ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait(timeout=SECONDS)
        self._folder.cleanup()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
