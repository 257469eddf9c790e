# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures: each a subject of ours and a named alternative, measured in one run (goals: docs/benchmarks.md)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from . import backups, fleets
from .inventories import inventories
from .measure import HERE, ROOT, Figure, environment, paired, run
from .nodes import addresses_of, calls, lab_of, module

NETWORK, CLOSED_PORT = "127.1.0.0/16", "50000"


def scan_closed() -> list[Figure]:
    """A /16 whose ports are closed, limits off, against a bare epoll loop."""
    ours, bare = paired(lambda: run("subjects/scan.py", NETWORK, CLOSED_PORT)["wall"],
                        lambda: run("baselines/epoll_connect.py", NETWORK, CLOSED_PORT)["wall"], rounds=3)
    return [Figure("scan of a /16, ports closed", ours, bare, 1.5)]


def facts() -> list[Figure]:
    """Facts of 200 nodes against handshakes by `ssl` and the same calls by `h2`, one node after the other."""
    addresses = addresses_of(200, 100)
    plan = json.dumps({"addresses": addresses, "port": 50000, "calls": calls()})
    with lab_of(addresses):
        ours, bare = paired(lambda: run("subjects/facts.py", stdin=plan)["cpu"], lambda: run("baselines/ssl_h2.py", stdin=plan)["cpu"], rounds=3)
    return [Figure("facts of 200 nodes, CPU", ours, bare, 2.0)]


def module_of_fifty() -> list[Figure]:
    """CPU of talos_discover over 50 machines against the start of a module, which finds the first, plus a bare loop over the others."""
    addresses = addresses_of(50, 110)
    plan = json.dumps({"addresses": addresses[1:], "port": 50000, "calls": calls()})

    def start() -> float:
        return module("talos_discover", addresses=addresses[:1], register=False, allow_loopback=True)[1]

    with lab_of(addresses):
        ours, bare = paired(lambda: module("talos_discover", addresses=addresses, register=False, allow_loopback=True)[1],
                            lambda: run("baselines/ssl_h2.py", stdin=plan)["cpu"] + start(), rounds=3)
    return [Figure("talos_discover over 50 machines, CPU", ours, bare, 1.5)]


def memory() -> list[Figure]:
    """Peak memory of the facts of 500 nodes, against the bound itself."""
    addresses = addresses_of(500, 120)
    plan = json.dumps({"addresses": addresses, "port": 50000, "calls": calls()})
    with lab_of(addresses):
        peak = run("subjects/facts.py", stdin=plan)["peak"]
    return [Figure("peak memory for 500 nodes", peak / 1e6, 300.0, 1.0, "MB")]


def packed(name: str, arguments: dict[str, object], folder: Path) -> Path:
    """The very file that Ansible writes for a module and its arguments."""
    kept = {**environment(), "ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_REMOTE_TMP": str(folder), "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
            "ANSIBLE_LIBRARY": str(HERE / "baselines"), "ANSIBLE_COLLECTIONS_PATH": collections()}
    command = [str(Path(sys.executable).with_name("ansible")), "localhost", "-m", name, "-a", json.dumps(arguments),
               "-e", f"ansible_python_interpreter={sys.executable}"]
    subprocess.run(command, env=kept, cwd=folder, capture_output=True, timeout=120, check=False)
    (found,) = folder.glob("*/AnsiballZ_*.py")
    return found


def collections() -> str:
    """The folder above `ansible_collections` from which the product is imported."""
    return next(path for path in sys.path if path and (Path(path) / "ansible_collections" / "ichor").exists())


def first_packet(program: Path, port: int) -> float:
    """Seconds from the start of a module's process to its first connection."""
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(60)
        came: list[float] = []

        def wait() -> None:
            connection, dummy = server.accept()
            came.append(time.perf_counter())
            connection.close()

        watcher = threading.Thread(target=wait)
        watcher.start()
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watcher.join(timeout=60)
        process.wait(timeout=60)
    return came[0] - began


def start_of_a_module() -> list[Figure]:
    """Up to the first packet, against an empty module with the same imports; both as the files that Ansible writes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    target = {"addresses": [f"127.0.0.1:{port}"]}
    with tempfile.TemporaryDirectory() as ours_folder, tempfile.TemporaryDirectory() as bare_folder:
        ours = packed("ichor.talos.talos_discover", {**target, "register": False, "allow_loopback": True}, Path(ours_folder))
        bare = packed("empty_module", dict(target), Path(bare_folder))
        pair = paired(lambda: first_packet(ours, port), lambda: first_packet(bare, port), rounds=7)
    return [Figure("start of a module up to its first packet", *pair, 1.3)]


def silent_network() -> list[Figure]:
    """A /24 with 4 nodes and 250 silent addresses in a network of its own, against the connect time-out. Needs root."""
    if os.geteuid() or not shutil.which("ip"):
        raise RuntimeError("the figure of the silent network needs root and iproute2")
    with SilentNetwork() as network:
        wall = min(float(run("subjects/scan.py", network.range, "50000", "limited", prefix=network.prefix)["wall"]) for unused in range(2))
    return [Figure("scan of a /24, 250 addresses silent", wall, 2.0, 1.3)]


class SilentNetwork:
    """Two network namespaces joined by a veth pair: four addresses answer, everything else is routed to nowhere."""

    range = "10.77.0.0/24"

    def __init__(self) -> None:
        self._names = (f"ichor-a-{os.getpid()}", f"ichor-b-{os.getpid()}")
        self.prefix = ("ip", "netns", "exec", self._names[0])
        self._lab: subprocess.Popen[str] | None = None
        self._world = Path(f"/tmp/ichor-silent-{os.getpid()}.json")

    def __enter__(self) -> SilentNetwork:
        first, second = self._names
        tag = str(os.getpid())
        commands = [
            f"ip netns add {first}", f"ip netns add {second}",
            f"ip link add va{tag} netns {first} type veth peer name vb{tag} netns {second}",
            f"ip -n {first} addr add 10.77.1.1/30 dev va{tag}", f"ip -n {first} link set va{tag} up", f"ip -n {first} link set lo up",
            f"ip -n {second} addr add 10.77.1.2/30 dev vb{tag}", f"ip -n {second} link set vb{tag} up", f"ip -n {second} link set lo up",
            f"ip -n {first} route add {self.range} via 10.77.1.2",
            *(f"ip -n {second} addr add 10.77.0.{number}/32 dev lo" for number in range(1, 5)),
            f"ip -n {second} route add blackhole {self.range}",
        ]
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True, timeout=20)
        self._world.write_text(json.dumps({"nodes": {f"n{number}": {"address": f"10.77.0.{number}"} for number in range(1, 5)}}))
        self._lab = subprocess.Popen(["ip", "netns", "exec", second, sys.executable, "-m", "tests.lab", "--world", str(self._world)],
                                     stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(environment()))
        if self._lab.stdout is None or "ready" not in self._lab.stdout.readline():
            raise RuntimeError("the lab did not start in its network")
        return self

    def __exit__(self, *unused: object) -> None:
        if self._lab is not None:
            self._lab.terminate()
            self._lab.wait(timeout=20)
            if self._lab.stdout:
                self._lab.stdout.close()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=20)
        self._world.unlink(missing_ok=True)


def rendering() -> list[Figure]:
    """One full render with three patches against one yaml.dump of the result with libyaml; 1,000 machines against ten times 100."""
    text = str(run("subjects/render.py")["text"])
    ours, bare = paired(lambda: float(run("subjects/render.py")["one"]), lambda: float(run("baselines/yaml_dump.py", stdin=text)["one"]), rounds=3)
    many = [run("subjects/render.py") for unused in range(3)]
    thousand, hundred = (min(float(one[name]) for one in many) for name in ("thousand", "hundred"))
    return [Figure("render with three patches, CPU", ours * 1000, bare * 1000, 4.0, "ms"),
            Figure("render of 1,000 machines, CPU", thousand, 10 * hundred, 1.1)]


FIGURES: dict[str, Callable[[], list[Figure]]] = {
    "scan": scan_closed, "silent": silent_network, "facts": facts, "fifty": module_of_fifty, "memory": memory, "start": start_of_a_module,
    "render": rendering, "inventory": inventories, **fleets.FIGURES, **backups.FIGURES,
}
