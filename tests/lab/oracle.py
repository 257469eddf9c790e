# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A validation oracle: a program made of Talos's own code that is asked what Talos would say of a configuration.

It is started once and speaks JSON lines: `{"version": "v1.13.9", "installed": false, "mode": "metal", "config": "<base64>"}`
in, `{"error": "<text>", "warnings": [...]}` out; an empty error accepts.
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from typing import Any


class Oracle:
    """The program at `path`, shared by all nodes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, version: str, raw: bytes, installed: bool, mode: str = "metal") -> tuple[str, list[str]]:
        """Error text (empty when valid) and warnings."""
        request = {"version": version, "installed": installed, "mode": mode, "config": base64.b64encode(raw).decode()}
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen([self._path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            process = self._process
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the oracle has no pipes")
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
        return str(answer.get("error") or ""), [str(text) for text in answer.get("warnings") or []]

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=5)
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None
