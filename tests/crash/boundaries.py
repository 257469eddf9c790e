# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step boundaries of a module process: before and after every call to a node, every request that changes something in Kubernetes and every write to
a store, and inside each write.

`install` is called in the process before the module begins. It wraps the choke points of the calls and requests and the functions that
write files, writes one line a boundary to a trace, and kills the process at the boundary that it is told. Beside that it
watches every change of a file below the store by Python's audit events: one that no wrapped function makes is a stray, so
that a write which goes round the boundaries cannot stay unseen.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BEFORE, INSIDE, AFTER = "before", "inside", "after"
#: Functions of the store's file room that change something. The others only read, or are made of these.
WRITERS = ("write_atomically", "append_line", "remove", "move", "make_folder")
CALL, REQUEST, WRITE, STRAY = "call", "request", "write", "stray"


@dataclass(frozen=True, order=True)
class Boundary:
    """One boundary: what happens there, at which side of it, and the how-manieth time in this process."""

    kind: str
    what: str
    side: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.side} {self.kind} {self.what} #{self.occurrence}"


def read_trace(path: Path) -> list[Boundary]:
    """The boundaries that a process came to, in order."""
    return [Boundary(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


class Tracer:
    """Traces one process, which dies at `kill`, and stops at `pause` until it is told to go on (SIGCONT)."""

    def __init__(self, path: str, store: str, kill: Boundary | None, pause: Boundary | None = None) -> None:
        self._trace = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._store = os.path.realpath(store)
        self._ends = {kill: signal.SIGKILL, pause: signal.SIGSTOP}
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._writing: list[str] = []

    def at(self, kind: str, what: str, side: str) -> None:
        """The process is at a boundary."""
        self._seen[kind, what, side] += 1
        here = Boundary(kind, what, side, self._seen[kind, what, side])
        os.write(self._trace, (json.dumps(asdict(here)) + "\n").encode())
        if here in self._ends:
            os.kill(os.getpid(), self._ends[here])

    def calls(self, caller: Any) -> None:
        """Wrap the one function that sends something to a node."""
        send = caller.send

        @functools.wraps(send)
        async def traced(this: Any, call: Any, request: Any, **options: Any) -> Any:
            what = f"{call.service}/{call.method}"
            self.at(CALL, what, BEFORE)
            try:
                return await send(this, call, request, **options)
            finally:
                self.at(CALL, what, AFTER)

        caller.send = traced

    def requests(self, api: Any) -> None:
        """Wrap the one function that asks an API server; reading it changes nothing."""
        once = api._once

        @functools.wraps(once)
        def traced(this: Any, method: str, path: str, *arguments: Any) -> Any:
            if method == "GET" or path.endswith("/selfsubjectreviews"):
                return once(this, method, path, *arguments)
            what = f"{method} {path.partition('/namespaces/')[2].partition('/')[2] or path}"
            self.at(REQUEST, what, BEFORE)
            try:
                return once(this, method, path, *arguments)
            finally:
                self.at(REQUEST, what, AFTER)

        api._once = traced

    def writes(self, files: Any) -> None:
        """Wrap the functions that write files."""
        for name in WRITERS:
            setattr(files, name, self._traced(name, getattr(files, name)))

    def _traced(self, name: str, write: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(write)
        def traced(path: Path, *arguments: Any) -> Any:
            changes = os.path.lexists(path) if name in ("remove", "move") else not (name == "make_folder" and path.is_dir())
            if not changes:
                return write(path, *arguments)
            what = f"{name} {os.path.relpath(os.path.realpath(path), self._store)}"
            self.at(WRITE, what, BEFORE)
            self._writing.append(what)
            try:
                result = write(path, *arguments)
            finally:
                self._writing.pop()
            self.at(WRITE, what, AFTER)
            return result
        return traced

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """A change of a file: the rename of an atomic write is a boundary inside it, and what nobody announced is a stray."""
        if event == "open":
            path, flags = arguments[0], arguments[2]
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
                return
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod"):
            path = arguments[0]
        else:
            return
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        changed = os.path.realpath(os.fsdecode(path))
        if not changed.startswith(self._store + os.sep) or changed == os.path.join(self._store, ".state", "lock"):
            return
        if self._writing:
            if event == "os.rename" and self._writing[-1].startswith("write_atomically"):
                self.at(WRITE, self._writing[-1], INSIDE)
        elif not (event == "os.remove" and changed.endswith(".ichor-tmp")):  # the sweep of what a killed writer left
            self.at(STRAY, f"{event} {os.path.relpath(changed, self._store)}", BEFORE)


def install(told: dict[str, Any]) -> None:
    """Trace this process. `told` has `trace`, `store`, `ahead` (seconds that its clock is ahead), `kill` and `pause`."""
    from ansible_collections.ichor.talos.plugins.module_utils._ansible.clock import SystemClock
    from ansible_collections.ichor.talos.plugins.module_utils._kube.api import Api
    from ansible_collections.ichor.talos.plugins.module_utils._node.caller import Caller
    from ansible_collections.ichor.talos.plugins.module_utils._store import files

    kill, pause = (Boundary(**told[name]) if told.get(name) else None for name in ("kill", "pause"))
    tracer = Tracer(told["trace"], told["store"], kill, pause)
    tracer.calls(Caller)
    tracer.requests(Api)
    tracer.writes(files)
    now, ahead = SystemClock.now, float(told.get("ahead", 0.0))
    SystemClock.now = lambda clock: now(clock) + ahead  # type: ignore[method-assign]
    sys.addaudithook(tracer.audit)
