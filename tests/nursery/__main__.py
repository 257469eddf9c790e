# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server: a line of JSON on standard input is an order for one module process; two lines come back, its pid and its end.

An order has `module`, `arguments`, `folder` (for what the process prints), `seconds` (after which it is killed), and
optionally `hook` ("package.module:function", called with `told` in the process before the module begins).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from ansible.module_utils import basic

PLUGINS = "ansible_collections.ichor.talos.plugins"


def preload() -> None:
    """Import every module and what modules import late, so that a fork has nothing left to import.

    What is imported is no matter of the garbage collector's from then on: each fork would walk and copy all of it.
    """
    for name in ("modules", "module_utils"):
        [folder] = importlib.import_module(f"{PLUGINS}.{name}").__path__
        for path in sorted(Path(folder).rglob("*.py")):
            importlib.import_module(".".join((PLUGINS, name, *path.relative_to(folder).with_suffix("").parts)))
    gc.collect()
    gc.freeze()


def serve() -> dict[str, Any] | None:
    """Fork for each order; gives back the order in the child, None at the end of the input."""
    while line := sys.stdin.readline():
        order: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if not pid:
            return order
        answer(pid=pid)
        signal.signal(signal.SIGALRM, lambda number, frame, pid=pid: os.kill(pid, signal.SIGKILL))  # type: ignore[misc]
        signal.setitimer(signal.ITIMER_REAL, order["seconds"])
        dummy, status = os.waitpid(pid, 0)
        left, dummy2 = signal.setitimer(signal.ITIMER_REAL, 0)
        answer(status=os.waitstatus_to_exitcode(status), late=left == 0)
    return None


def answer(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def become(order: dict[str, Any]) -> None:
    """Be that module's process."""
    folder = Path(order["folder"])
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, folder / "stdout", os.O_WRONLY | os.O_CREAT),
                                (2, folder / "stderr", os.O_WRONLY | os.O_CREAT)):
        descriptor = os.open(name, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments = {"_ansible_remote_tmp": str(folder), "_ansible_keep_remote_files": False, **order["arguments"]}
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    if "hook" in order:
        module, dummy, function = order["hook"].partition(":")
        getattr(importlib.import_module(module), function)(order["told"])
    importlib.import_module(f"{PLUGINS}.modules.{order['module']}").main()


preload()
answer(ready=True)
this_order = serve()
if this_order is not None:
    become(this_order)
