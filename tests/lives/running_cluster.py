# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that runs, in the lab, made and kept by module processes: what happens to its machines after they have converged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.control import Lab
from tests.lives.records import STORE, Folder, Records, chosen
from tests.nursery.client import Ended, Nursery
from tests.parts.build import build
from tests.scenarios.playing import machine, network_of

HEADS = ("5a1f0c3e", "6b2f1d4e", "7c3f2e5e", "8d4f3f6e", "9e5f4a7e")
QUICK = {"settle": 0.02, "follow": 1.0, "reread": 1.0, "unreachable_grace": 0.5, "call": 10.0, "maintenance_probe": 5.0, "lock_renewal": 1.0}
#: A run ends long before, on any machine.
LONGEST = 240.0


@dataclass
class Cluster:
    """Control planes cp-1 … and workers w-1 … of one store. `run` reconciles, as a schedule would."""

    lab: Lab
    nursery: Nursery
    folder: Path
    network: str
    planes: int = 3
    workers: int = 1
    #: Before the names of its nodes in the lab, where several clusters share one.
    prefix: str = ""
    names: dict[str, str] = field(default_factory=dict)
    #: Where its records are; None is the folder `ichor` in its own.
    kept_in: Records | None = None
    #: The cluster's endpoint, at which a test may have a real API server, and the bundle that this one was made from; '' for a new one.
    endpoint: str = "https://127.0.0.9:6443"
    bundle_file: str = ""

    @property
    def store(self) -> Path:
        return self.folder / "ichor"

    @property
    def records(self) -> Records:
        return self.kept_in or Folder(self.store)

    @property
    def options(self) -> dict[str, Any]:
        return {**self.records.options, "allow_loopback": True, "timing": QUICK}

    def module(self, module: str, /, *, check: bool = False, fails: bool = False, **arguments: Any) -> dict[str, Any]:
        ended: Ended = self.nursery.run(module, check=check, **{**self.options, **arguments})
        assert bool(ended.result.get("failed")) == fails and ended.result, f"{module}: {ended.output} {ended.errors}"
        return ended.result

    def create(self) -> Cluster:
        """From machines in maintenance mode to a running cluster."""
        hosts = [f"{self.prefix}{kind}-{number}" for kind, count in (("cp", self.planes), ("w", self.workers)) for number in range(1, count + 1)]
        for number, host in enumerate(hosts, 1):
            self.lab.add(name=host, description=machine(number, self.network, HEADS[number - 1]))
            self.names[host] = f"prod-{HEADS[number - 1]}"
        addresses = [f"{self.network}.{number}" for number in range(1, len(hosts) + 1)]
        self.plain("talos_cluster", name="prod", endpoint=self.endpoint, talos_version="v1.13.9", kubernetes_version="v1.35.0", bundle="prod",
                   control_planes=self.planes, discovery={"addresses": addresses})
        self.plain("talos_secrets", cluster="prod", **({"bundle_file": self.bundle_file} if self.bundle_file else {}))
        for host in hosts:
            self.lab.wait(node=host, stage="maintenance")
        self.module("talos_discover", cluster="prod")
        for host in hosts:
            self.module("talos_machine_approval", machine=self.names[host], role="controlplane" if "cp-" in host else "worker", hostname=host,
                        install={"disk": "/dev/sda"})
        self.run()
        self.module("talos_bootstrap", machine=self.names[hosts[0]])
        self.run()
        assert self.reasons() == {host: "Converged" for host in hosts}
        return self

    def plain(self, module: str, /, **arguments: Any) -> None:
        """A module that speaks to no node."""
        ended = self.nursery.run(module, **self.records.options, **arguments)
        assert not ended.result.get("failed") and ended.result, f"{module}: {ended.output} {ended.errors}"

    def run(self, *, check: bool = False, fails: bool = False, **more: Any) -> dict[str, Any]:
        """Until nothing more happens without a person; one look in check mode, or for `passes`."""
        ends = {} if check or "passes" in more else {"until": "settled"}
        quiet = {"discover": False, "drain": False, "max_runtime": LONGEST}
        return self.module("talos_controller", check=check, fails=fails, cluster="prod", **ends, **{**quiet, **more})

    def status(self, host: str) -> dict[str, Any]:
        return self.records.status("machines", self.names[host])

    def reason(self, host: str, condition: str = "Provisioned") -> str:
        return next((entry["reason"] for entry in self.status(host).get("conditions", []) if entry["type"] == condition), "")

    def reasons(self) -> dict[str, str]:
        """The reason of Ready, by host name."""
        return {host: self.reason(host, "Ready") for host in self.names}

    def wipe(self, host: str, what: str = "disk") -> None:
        """Behind everybody's back, and a restart into maintenance mode."""
        self.lab.wipe(node=host, what=what)
        self.restart(host)

    def restart(self, host: str) -> None:
        self.lab.power(node=host, state="cycle")
        self.lab.wait(node=host, stage="maintenance")

    def events(self, reason: str, host: str = "") -> list[dict[str, Any]]:
        return [event for event in self.records.events() if event["reason"] == reason and self.names.get(host, event["name"]) == event["name"]]

    def members(self) -> dict[str, bool]:
        """etcd's members by name: whether each is a voter that lives."""
        found = next((state["etcd"] for host in self.names if "cp-" in host and (state := self.lab.state(node=host)).get("etcd")), [])
        return {member["name"]: member["alive"] and not member["learner"] for member in found}

    def everything(self) -> dict[str, str]:
        """Every text of the store."""
        return self.records.everything()

    def end(self) -> None:
        for host in self.names:
            self.lab.remove(node=host)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def a_running_cluster(folder: Path, name: str, planes: int = 3, workers: int = 1, *, store: str = STORE, etcd: bool = False) -> Iterator[Cluster]:
    """One in the chosen store and in the address range of a test file of that name, with what it needs beside it."""
    with (Lab.start({"nodes": {}}, speed=20.0, etcd=str(build("etcd-3.6")) if etcd else None) as lab, Nursery() as nursery,
          chosen(folder / "ichor", store) as records):
        yield Cluster(lab, nursery, folder, network_of(name), planes, workers, kept_in=records).create()


def writes(lab: Lab, since: int, *, accepted: bool = True) -> dict[str, int]:
    """Calls that changed a node since a mark, by name."""
    return dict(lab.writes(since=since, accepted_only=accepted))


def steps(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The plan of a result, with the plans that later looks called for."""
    later = [step for plan in result.get("later_plans", []) for step in plan["plan"]]
    return [(step["action"], step["target"]) for step in (*result["plan"], *later)]
