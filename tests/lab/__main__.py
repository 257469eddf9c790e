# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m tests.lab --world FILE [--control SOCKET] [--log FILE] [--speed N] [--oracle PATH] [--etcd PATH]`.

Prints one line of JSON when every node listens, then runs until it is stopped by a signal or over the control socket.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.lab.control_server import ControlServer
from tests.lab.etcd_real import EtcdPrograms
from tests.lab.world import World, load_world, settled


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="Emulated Talos nodes.")
    parser.add_argument("--world", help="YAML or JSON file that describes the nodes")
    parser.add_argument("--control", help="path of the Unix socket to be controlled over")
    parser.add_argument("--log", help="file for the log of calls, JSON lines")
    parser.add_argument("--speed", type=float, default=1.0, help="how many times faster than the clock the nodes' waits pass")
    parser.add_argument("--oracle", help="program of Talos's own code that validates configurations")
    parser.add_argument("--etcd", help="program of etcd: control planes have real members instead of emulated ones")
    parser.add_argument("--etcd-restore", help="program that restores a snapshot for a real etcd")
    parser.add_argument("--disks", help="folder for what is real on the nodes' disks; a temporary one without it")
    parser.add_argument("--timing", action="append", default=[], metavar="NAME=SECONDS", help="one of the timings of the world")
    return parser.parse_args()


async def main(options: argparse.Namespace, stack: ExitStack) -> None:
    out = stack.enter_context(open(options.log, "a", encoding="utf-8")) if options.log else None
    timings = {name: float(value) for name, unused, value in (item.partition("=") for item in options.timing)}
    etcd = None
    if options.etcd:
        disks = options.disks or stack.enter_context(tempfile.TemporaryDirectory(prefix="ichor-lab-disks-"))
        etcd = EtcdPrograms(options.etcd, options.etcd_restore, Path(disks))
    world = World(options.speed, out, timings, options.oracle, etcd)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if options.world:
        load_world(options.world, world)
    control = ControlServer(world, stopped)
    if options.control:
        await control.open(options.control)
    waiting = [asyncio.ensure_future(settled(world)), asyncio.ensure_future(stopped.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    print(json.dumps({"ready": True, "nodes": len(world.nodes), "control": options.control}), flush=True)
    await stopped.wait()
    await control.close()
    await world.close()


if __name__ == "__main__":
    with ExitStack() as resources:
        asyncio.run(main(arguments(), resources))
    sys.exit(0)
