# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The client of a lab process: starts it, drives it, reads its log. Synchronous; imports only the standard library."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class LabError(Exception):
    """A command that the lab refused, with its text."""


class Lab:
    """A connection to a lab's control socket. Every command is a method: `lab.wait(node="cp1", stage="running")`."""

    def __init__(self, path: str, process: subprocess.Popen[str] | None = None, folder: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.path = path
        self.process = process
        self._folder = folder
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._file = self._socket.makefile("rwb")

    @classmethod
    def start(
        cls, world: dict[str, Any] | str | None = None, speed: float = 1.0, log: str | None = None, timings: dict[str, float] | None = None,
        python: str = sys.executable, oracle: str | None = None, seconds: float = 60.0, etcd: str | None = None, etcd_restore: str | None = None,
        before: tuple[str, ...] = (),
    ) -> Lab:
        """Starts a lab process of its own and waits for its ready line. `world` is a description or the path of one;
        `before` a command that starts the lab in its turn.

        `etcd` is the path of a program: the control planes have real members then.
        """
        folder = tempfile.TemporaryDirectory(prefix="ichor-lab-")
        path = os.path.join(folder.name, "control")
        command = [*before, python, "-m", "tests.lab", "--control", path, "--speed", str(speed)]
        if isinstance(world, dict):
            file = os.path.join(folder.name, "world.json")
            Path(file).write_text(json.dumps(world), encoding="utf-8")
            command += ["--world", file]
        elif world is not None:
            command += ["--world", world]
        if log is not None:
            command += ["--log", log]
        if oracle is not None:
            command += ["--oracle", oracle]
        if etcd is not None:
            command += ["--etcd", etcd, "--disks", os.path.join(folder.name, "disks")]
        if etcd_restore is not None:
            command += ["--etcd-restore", etcd_restore]
        for name, value in (timings or {}).items():
            command += ["--timing", f"{name}={value}"]
        errors = open(os.path.join(folder.name, "stderr"), "w+", encoding="utf-8")
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
        finally:
            killer.cancel()
        errors.seek(0)
        text = errors.read()
        errors.close()
        if not line:
            process.wait()
            folder.cleanup()
            raise LabError(f"the lab did not start: {text.strip()[-2000:]}")
        return cls(path, process, folder)

    def call(self, do: str, **fields: Any) -> Any:
        """One command."""
        with self._lock:
            self._file.write((json.dumps({"do": do, **fields}) + "\n").encode())
            self._file.flush()
            line = self._file.readline()
        if not line:
            raise LabError("the lab is gone")
        answer = json.loads(line)
        if not answer["ok"]:
            raise LabError(answer["error"])
        return answer["result"]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda **fields: self.call(name, **fields)

    def close(self) -> None:
        """Ends the connection, and the process when it was started here."""
        if self.process is not None and self.process.poll() is None:
            try:
                self.call("stop")
            except (LabError, OSError):
                self.process.terminate()
        self._file.close()
        self._socket.close()
        if self.process is not None:
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()
