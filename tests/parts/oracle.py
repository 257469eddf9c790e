# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talos's own configuration packages as an oracle: one process a contract, one question a line."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any

from .build import build

#: The machinery that answers for a contract. The proxy serves these versions; the vectors come from v1.12.11, v1.13.9
#: and v1.14.0-rc.1 and win where the two differ (see docs).
MACHINERY = {"1.12": "v1.12.6", "1.13": "v1.13.9", "1.14": "v1.14.0-alpha.2"}


class Oracle:
    """`ask` sends one request (see tests/parts/talos/oracle) and gives the answer; not for several threads."""

    def __init__(self, contract: str) -> None:
        self.contract = contract
        self._process = subprocess.Popen([str(build(f"talos-oracle-{contract}"))], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, bufsize=1, encoding="utf-8")

    def ask(self, **request: Any) -> dict[str, Any]:
        """The oracle's answer: `output` or `error` with `stage`, and `warnings`."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the oracle has no pipes")
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the oracle of {self.contract} ended with {process.poll()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=10)
        if self._process.stdout:
            self._process.stdout.close()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
