# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subject: a day of the controller over so many converged machines in memory, without a socket, in simulated time.

Each machine is looked at every two hours. Every hour one in a hundred is disturbed: most fall silent for a quarter of an hour, some are changed by
hand, some lose their disk. Prints the CPU seconds of one look, the looks, and how the machines are at the end.
"""

from __future__ import annotations

import asyncio
import json
import random
import selectors
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._controller.request import Request
from ansible_collections.ichor.talos.plugins.module_utils._controller.run import run
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, EtcdMember
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Listing
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations.record_reads import MachineView
from ansible_collections.ichor.talos.plugins.module_utils._operations.rendering import Renderer
from ansible_collections.ichor.talos.tests.unit._operations import world as w
from tests.unit._controller.fleet import JOINED, Fleet, Store

DAY, HOUR, SILENT = 24 * 3600.0, 3600.0, 900.0
#: Sixty times the defaults, in their proportion, so that a day has no more looks than can be waited for.
REREAD, FOLLOW = 60 * 120.0, 60 * 15.0


class Skipping(selectors.DefaultSelector):
    """Instead of waiting it moves the time of its loop."""

    time = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits for something that never comes")
        self.time += max(0.0, timeout)
        return super().select(0)


class Clock:
    """The time of the loop is the time of the world."""

    def __init__(self) -> None:
        self.selector = Skipping()

    def now(self) -> float:
        return w.START + self.selector.time

    def monotonic(self) -> float:
        return self.selector.time

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Loop(asyncio.SelectorEventLoop):
    """Runs in the time of its selector."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.selector)
        self._selector_time = clock

    def time(self) -> float:
        return self._selector_time.monotonic()


class SortedStore(Store):
    """The machines are put in by name, so a listing needs no sorting; the bundle is read once."""

    def list(self, kind: str) -> Listing:
        return Listing(tuple(record for ref, record in self.records.items() if ref.kind == kind))


class Day(Fleet):
    """Machines by number, and what befalls them. Looks are counted at the connections."""

    def __init__(self, count: int) -> None:
        super().__init__(bootstrapped=True)
        self.clock = Clock()  # type: ignore[assignment]
        known = self.store.records
        self.store = SortedStore(self)
        self.store.records = known
        self.renderer = Renderer(self.store)  # type: ignore[arg-type]
        self.looks = 0
        self.ran: list[w.Node] = []
        for number in range(count):
            self.ran.append(self._runs(f"m-{number:05}", number))

    def write(self, what: str) -> None:
        self.looks += what.startswith("authenticated ")

    def _runs(self, name: str, number: int) -> w.Node:
        """A machine that joined and runs what the records say."""
        address = Endpoint(f"10.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}")
        identity = Identity(f"4c4c4544-0044-4a10-8035-b4c04f{number:06x}", f"SER-{number}",
                            (f"00:1c:42:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}",))
        role = "worker" if number else "controlplane"
        record = w.machine_record(name, 1, role, status=JOINED, endpoint=str(address), install={"disk": "/dev/sda"}, identity={
            "uuid": identity.uuid, "serial": identity.serial, "macs": list(identity.macs)})
        view = MachineView(record, self.cluster(), ())
        rendered = self.renderer.machine(view, keep=False)
        if not isinstance(rendered, Present):
            raise RuntimeError(str(rendered))
        hashes = {"storedConfigHash": rendered.value.sha256, "appliedConfigHash": rendered.value.sha256, "observedInputsHash": rendered.value.inputs_hash}
        self.store.put(replace(record, status={**record.status, **hashes}))
        node = w.Node(name, identity, "running", stage="running", ready=True, etcd="" if number else "Running", config=rendered.value.text.encode())
        if not number:
            node.leader, node.members = "x", (EtcdMember(name, name, (f"https://{address.host}:2380",)),)
        self.nodes[address] = node
        return node

    async def befalls(self, chance: random.Random) -> None:
        """What happens to one in a hundred each hour, at some moment of it."""
        loop = asyncio.get_running_loop()
        while True:
            for node in chance.sample(self.ran[1:], max(1, len(self.ran) // 100)):
                loop.call_later(chance.uniform(0.0, HOUR), self._disturb, node, chance.random())
            await asyncio.sleep(HOUR)

    def _disturb(self, node: w.Node, what: float) -> None:
        if node.mode != "running":
            return
        if what < 0.8:
            node.mode = "closed"
            asyncio.get_running_loop().call_later(SILENT, self._back, node)
        elif what < 0.9:
            node.config += b"---\napiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\n"
        else:
            node.mode, node.certificate, node.config = "maintenance", w.certificate(f"{node.name} anew"), b""

    def _back(self, node: w.Node) -> None:
        node.mode, node.stage, node.ready = "running", "running", True

    async def installs(self) -> None:
        """Whoever took a configuration runs it some minutes later; one that was changed without a reboot runs on."""
        seen = 0
        while True:
            await asyncio.sleep(30.0)
            for name in self.accepted[seen:]:
                node = self.ran[int(name.removeprefix("m-"))]
                asyncio.get_running_loop().call_later(180.0 if node.certificate.fingerprint.endswith("anew") else 1.0, self._back, node)
            seen = len(self.accepted)


async def live(day: Day, request: Request, ports: Ports) -> Outcome:
    chance = random.Random(1)
    beside = [asyncio.ensure_future(day.befalls(chance)), asyncio.ensure_future(day.installs())]
    outcome = await run(request, ports, w.OpenGate())
    for task in beside:
        task.cancel()
    return outcome


def one_day(count: int) -> dict[str, Any]:
    day = Day(count)
    request = Request(discover=False, max_runtime=DAY, timing=replace(Timing(), reread=REREAD, follow=FOLLOW))
    began = time.process_time()
    with asyncio.Runner(loop_factory=lambda: Loop(day.clock)) as runner:  # type: ignore[arg-type]
        outcome = runner.run(live(day, request, day.ports()))
    cpu = time.process_time() - began
    return {"look": cpu / day.looks, "looks": day.looks, "accepted": len(day.accepted), "reasons": Counter(row.reason for row in outcome.machines)}


def main() -> None:
    one_day(2)  # what is imported and compiled once is no part of a look
    print(json.dumps(one_day(int(sys.argv[1]))))


main()
