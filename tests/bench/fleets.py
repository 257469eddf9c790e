# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of fleets that run: one comparison of all of them, a pass of the controller where nothing changed, one where some hang, and a day of
many machines in simulated time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import DialRules
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._node.issue import credentials_from_bundle
from ansible_collections.ichor.talos.plugins.module_utils._node.nodes import TalosNodes
from tests.lab.control import Lab

from .measure import Figure, paired, run
from .nodes import MODULES, addresses_of, calls_of_a_pass

#: The deadline of a call, and the one of a probe of a machine that fell silent, in seconds (design section 19).
CALL, PROBE = 20.0, 5.0


@dataclass(frozen=True)
class Fleet:
    """Nodes that run, and the store that knows them."""

    lab: Lab
    store: str
    addresses: list[str]
    #: Certificate and key of an administrator, and the CA of the nodes, as files.
    client: str
    authority: str

    def plan(self) -> str:
        """What the bare loop is told: the handshakes and calls of one pass."""
        return json.dumps({"addresses": self.addresses, "port": 50000, "calls": calls_of_a_pass(), "client": self.client, "authority": self.authority})

    def look(self, module: str = "talos_controller", **options: object) -> dict[str, Any]:
        """One run of a module over all of it, in a process of its own."""
        asked = {"store_path": self.store, "allow_loopback": True, **options}
        return run("subjects/fleet_module.py", MODULES + module, stdin=json.dumps(asked))

    def tree(self) -> str:
        """Hash of what the store holds."""
        found = hashlib.sha256()
        for path in sorted(Path(self.store).rglob("*")):
            if path.is_file():
                found.update(f"{path} {path.stat().st_mtime_ns}".encode() + path.read_bytes())
        return found.hexdigest()


@contextlib.contextmanager
def fleet(count: int, third: int) -> Iterator[Fleet]:
    """One control plane and workers, all running what their records say."""
    addresses = addresses_of(count, third)
    machines = [{"name": f"m{number}", "address": address, "uuid": f"5a1f0c3e-51c8-4f0e-8d39-3cecef{number:06x}", "serial": f"ACME-{number:04}",
                 "mac": f"3c:ec:ef:00:{number // 256:02x}:{number % 256:02x}"} for number, address in enumerate(addresses)]
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/ichor"
        texts = run("subjects/fleet.py", stdin=json.dumps({"store": store, "machines": machines}))["texts"]
        nodes = {machine["name"]: {"address": machine["address"], "installed": text, "machine": {
            "uuid": machine["uuid"], "serial": machine["serial"], "links": [{"name": "enp1s0", "mac": machine["mac"]}], "disks": [{"name": "sda"}]}}
            for machine, text in zip(machines, texts, strict=True)}
        credentials = credentials_from_bundle(Path(f"{store}/secrets/prod.yaml").read_text(encoding="utf-8"), now=time.time())
        client, authority = Path(folder) / "client.pem", Path(folder) / "ca.pem"
        client.touch(mode=0o600)
        client.write_text(credentials.certificate + credentials.key, encoding="ascii")
        authority.write_text(credentials.ca, encoding="ascii")

        async def bootstrap() -> None:
            reached = TalosNodes(rules=(DialRules(allow_loopback=True),))
            async with reached.authenticated(Endpoint(addresses[0], 50000), credentials) as session:
                await session.bootstrap()
            await reached.close()

        with Lab.start({"nodes": nodes}, speed=20.0, seconds=900.0) as lab:
            lab.wait(node="m0", stage="configured", seconds=900)
            lab.wait(node="m0", stage="booting", seconds=900)
            asyncio.run(bootstrap())
            for machine in machines:
                lab.wait(node=machine["name"], stage="ready", seconds=900)
            yield Fleet(lab, store, addresses, str(client), str(authority))


def converged(told: dict[str, Any], count: int) -> None:
    """The figure is none where somebody did not converge."""
    if told["reasons"] != {"Converged": count}:
        raise RuntimeError(f"{told['reasons']} of {count}: {told['msg']}")


def comparing(count: int = 500) -> list[Figure]:
    """Peak memory of talos_config_info over 500 running machines in one call, against the bound itself."""
    with fleet(count, 130) as found:
        told = found.look("talos_config_info", cluster="prod", timing={"call": 600})
    converged(told, count)
    return [Figure(f"talos_config_info over {count} machines, peak", told["peak"] / 1e6, 300.0, 1.0, "MB")]


def passing(count: int = 1000) -> list[Figure]:
    """A pass over 1,000 converged machines where nothing changed: CPU of the module's process against the bare handshakes and calls, writes, memory."""
    with fleet(count, 140) as found:
        converged(found.look(passes=1, timing={"call": 600}), count)
        before = found.tree()
        told: list[dict[str, Any]] = []

        def ours() -> float:
            told.append(found.look(passes=1, timing={"call": 600}))
            return float(told[-1]["process_cpu"])

        pair = paired(ours, lambda: float(run("baselines/ssl_h2.py", stdin=found.plan())["cpu"]), rounds=3)
        converged(told[-1], count)
        written = float(found.tree() != before)
    return [Figure(f"a pass over {count} converged machines, CPU", *pair, 2.0),
            Figure("the same, peak memory", max(one["peak"] for one in told) / 1e6, 400.0, 1.0, "MB"),
            Figure("the same, store changed (1 is yes)", written, 1.0, 0.0, "")]


def hanging(count: int = 500) -> list[Figure]:
    """A pass over 500 machines of which 10 % hang, in the handshake or in a call, against a pass in which none does and one deadline."""
    with fleet(count, 150) as found:
        found.look(passes=1)
        free = float(found.look(passes=1)["process_wall"])
        for number in range(0, count // 10):
            found.lab.fault(node=f"m{10 * number + 5}", kind="handshake-hang" if number % 2 else "call-hang")
        told = found.look(passes=1)
    if told["reasons"].get("Converged") != count - count // 10:
        raise RuntimeError(f"{told['reasons']}: {told['msg']}")
    return [Figure(f"a pass over {count} machines, 10 % hang", float(told["process_wall"]), free + CALL + PROBE, 1.1)]


def days() -> list[Figure]:
    """A day of 10,000 machines with 1 % faults an hour, in simulated time: CPU of one look at one machine against a day of 100."""
    def one(count: int) -> float:
        return float(run("subjects/simulated_day.py", str(count))["look"]) * 1000

    many = one(10_000)
    few = min(one(100) for unused in range(3))
    return [Figure("look at one of 10,000 machines, of 100", many, few, 1.3, "ms")]


FIGURES: dict[str, Callable[[], list[Figure]]] = {"compare": comparing, "pass": passing, "hang": hanging, "day": days}
