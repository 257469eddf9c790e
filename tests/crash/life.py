# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first life of a control plane, and of a worker beside it, as module processes; and how to put a fresh node and a fresh store before
any step of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.crash.boundaries import Boundary, read_trace
from tests.lab.configs import ClusterSecrets
from tests.lab.control import Lab
from tests.lab.wire import message
from tests.lab.wireclient import WireClient, context
from tests.nursery.client import Ended, Nursery
from tests.scenarios.playing import wait_for

MACHINE, WORKER = "prod-5a1f0c3e", "prod-6b2e1d4f"
BOARD = {"uuid": "5a1f0c3e-51c8-4f0e-8d39-3cecef000001", "serial": "ACME-0001", "links": [{"name": "enp1s0", "mac": "3c:ec:ef:00:00:01"}],
         "disks": [{"name": "sda", "serial": "DISK0001", "wwid": "naa.0000000000000001"}]}
WORKER_BOARD = {"uuid": "6b2e1d4f-51c8-4f0e-8d39-3cecef000002", "serial": "ACME-0002", "links": [{"name": "enp1s0", "mac": "3c:ec:ef:00:00:02"}],
                "disks": [{"name": "sda", "serial": "DISK0002", "wwid": "naa.0000000000000002"}]}
QUICK = {"settle": 0.02, "follow": 0.05}
HOOK = "tests.crash.boundaries:install"
#: A restart may say this, and then that of a later one may not: another run's send is waited for (design section 9, step 10).
PATIENT = "SendingUnconfirmed"
LATER = 200.0
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: Statuses without a record, locks, markers, and the log of events, which is looked at by itself.
_ASIDE = (".state/set-aside/", ".state/leases/", ".state/lock", ".state/store.json", ".ichor-store", ".state/events.jsonl")
#: What counts the writes and edits, and what differs with the address.
_COUNTERS = frozenset({"revision", "specHash", "generation", "observedGeneration"})


@dataclass(frozen=True)
class Step:
    """One module run of the life. `state` is what the node has to be in before it, `judge` the step after which ends are compared."""

    name: str
    module: str
    arguments: Callable[[Place], dict[str, Any]]
    state: str = "maintenance"
    judge: str = ""


@dataclass
class Place:
    """One node and one store, at an address of their own. `beside`: addresses of nodes that the cluster has already."""

    node: str
    address: str
    folder: Path
    fingerprint: str = ""
    beside: tuple[str, ...] = ()

    @property
    def store(self) -> Path:
        return self.folder / "ichor"

    @property
    def talosconfig(self) -> str:
        return str(self.folder / "talosconfig")

    @property
    def nodes(self) -> dict[str, Any]:
        """Options of every module that speaks to nodes."""
        return {"store_path": str(self.store), "allow_loopback": True, "timing": QUICK}

    @property
    def secrets(self) -> dict[str, Any]:
        return {"talosconfig": self.talosconfig}


def _cluster(place: Place) -> dict[str, Any]:
    return {"name": "prod", "endpoint": "https://127.0.0.9:6443", "talos_version": "v1.13.9", "kubernetes_version": "v1.35.0", "control_planes": 1,
            "discovery": {"addresses": [*place.beside, place.address]}, "store_path": str(place.store)}


def _apply(machine: str) -> Callable[[Place], dict[str, Any]]:
    return lambda place: {"machine": machine, "config_file": str(place.folder / "config.yaml"), **place.nodes, **place.secrets}


STEPS = (
    Step("cluster", "talos_cluster", _cluster),
    Step("discover", "talos_discover", lambda place: {"cluster": "prod", **place.nodes}),
    Step("approve", "talos_machine_approval", lambda place: {
        "machine": MACHINE, "role": "controlplane", "hostname": "cp-1", "install": {"disk": "/dev/sda"}, **place.nodes}),
    Step("apply", "talos_maintenance_apply", _apply(MACHINE), judge="follow"),
    Step("follow", "talos_stage", lambda place: {"machine": MACHINE, "follow": True, **place.nodes, **place.secrets}, "booting"),
    Step("bootstrap", "talos_bootstrap", lambda place: {"machine": MACHINE, **place.nodes, **place.secrets}, "booting", judge="join"),
    Step("join", "talos_stage", lambda place: {"machine": MACHINE, "follow": True, "until": "running", **place.nodes, **place.secrets}, "ready"),
)
NAMES = tuple(step.name for step in STEPS)
#: A worker of the cluster whose control plane runs: the cluster's record is edited, not made.
WORKER_STEPS = (
    # The next write sweeps away what a killed writer left, and after the edit there is nothing more to write in this step.
    Step("cluster", "talos_cluster", _cluster, judge="discover"),
    Step("discover", "talos_discover", lambda place: {"cluster": "prod", **place.nodes}),
    Step("approve", "talos_machine_approval", lambda place: {
        "machine": WORKER, "role": "worker", "hostname": "w-1", "install": {"disk": "/dev/sda"}, **place.nodes}),
    Step("apply", "talos_maintenance_apply", _apply(WORKER), judge="join"),
    Step("join", "talos_stage", lambda place: {
        "machine": WORKER, "follow": True, "until": "running", **place.nodes, **place.secrets}, "ready"),
)
WORKER_NAMES = tuple(step.name for step in WORKER_STEPS)


@dataclass(frozen=True)
class Cast:
    """Whose life it is."""

    steps: tuple[Step, ...] = STEPS
    role: str = "controlplane"
    hostname: str = "cp-1"
    board: Mapping[str, Any] = field(default_factory=lambda: BOARD)


@dataclass
class Life:
    """The steps in a lab, undisturbed once, and the stores before and after each.

    `base` is the store that the first step finds, where there is one already, `beside` the addresses of that cluster's nodes.
    """

    lab: Lab
    nursery: Nursery
    folder: Path
    network: str
    cast: Cast = field(default_factory=Cast)
    secrets: ClusterSecrets = field(default_factory=lambda: ClusterSecrets(name="prod", endpoint="https://127.0.0.9:6443"))
    base: Path | None = None
    beside: tuple[str, ...] = ()
    traces: dict[str, list[Boundary]] = field(default_factory=dict)
    called: dict[str, list[str]] = field(default_factory=dict)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = self.secrets.config(self.cast.role, self.cast.hostname)
        self._tls = {True: context(self.secrets.client()), False: context()}
        self._number = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.cast.steps)

    def place(self) -> Place:
        """A fresh node in maintenance mode, and a folder without a store."""
        self._number += 1
        folder = self.folder / str(self._number)
        folder.mkdir()
        for name, text in (("talosconfig", self.secrets.talosconfig([])), ("config.yaml", self.config)):
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text, encoding="utf-8")
        place = Place(f"{self.cast.role}-{self._number}", f"{self.network}.{self._number // 200}.{1 + self._number % 200}", folder, beside=self.beside)
        self.lab.add(name=place.node, description={"address": place.address, "machine": dict(self.cast.board)})
        place.fingerprint = self.lab.wait(node=place.node, stage="maintenance")["fingerprint"]
        return place

    def leave(self, place: Place) -> None:
        """The node goes; two with the same keys would be one etcd."""
        self.lab.remove(node=place.node)
        shutil.rmtree(place.folder)

    def live(self, *, stay: bool = False) -> Place:
        """The whole life once: traces, what the nodes logged of each step, and the store before and after each. `stay`: the node goes on."""
        place = self.place()
        if self.base is not None:
            shutil.copytree(self.base, place.store)
        for step in self.cast.steps:
            self.wait(place, step)
            self._keep(place, f"before-{step.name}")
            mark = self.lab.mark()
            ended = self.run(place, step)
            if ended.status:
                raise AssertionError(f"{step.name}: {ended.output} {ended.errors}")
            self.traces[step.name] = read_trace(place.folder / "trace")
            self.called[step.name] = [entry["rpc"].lstrip("/") for entry in self.lab.log(since=mark, event="call")]
            self.ends[step.name] = end_of(place)
        if not stay:
            self.leave(place)
        return place

    def run(self, place: Place, step: Step, *, kill: Boundary | None = None, ahead: float = 0.0) -> Ended:
        """One process of a step's module, killed at a boundary when that is said."""
        self._start(place, step, ahead=ahead, kill=vars(kill) if kill else None)
        return self.nursery.finish()

    def interrupt(self, place: Place, step: Step, pause: Boundary, do: Callable[[], object]) -> Ended:
        """One process, and something that happens while it is at that boundary; nothing does when it never comes there."""
        pid = self._start(place, step, pause=vars(pause))
        if stopped(pid):
            try:
                do()
            finally:
                os.kill(pid, signal.SIGCONT)
        return self.nursery.finish()

    def _start(self, place: Place, step: Step, **told: object) -> int:
        trace = place.folder / "trace"
        trace.unlink(missing_ok=True)
        return self.nursery.start(step.module, hook=HOOK, told={"trace": str(trace), "store": str(place.store), **told}, **step.arguments(place))

    def before(self, step: Step) -> Place:
        """A fresh node and store in the state in which the undisturbed life began this step."""
        place = self.place()
        kept = self.folder / f"before-{step.name}"
        if (kept / "ichor").exists():
            shutil.copytree(kept / "ichor", place.store)
            known = json.loads((kept / "known.json").read_text(encoding="utf-8"))
            for path in place.store.rglob("*"):
                if path.is_file():
                    text = path.read_text(encoding="utf-8")
                    for old, new in zip(known, (str(place.store), place.fingerprint, place.address), strict=True):
                        text = text.replace(old, new)
                    path.write_text(text, encoding="utf-8")
        position = self.names.index(step.name)
        if position > self.names.index("apply"):
            self._tell(place, "ApplyConfiguration", False, message("machine.ApplyConfigurationRequest")(data=self.config.encode()).SerializeToString())
            self._wait_for_etcd(place)
        if "bootstrap" in self.names and position > self.names.index("bootstrap"):
            self._tell(place, "Bootstrap", True, b"")
        self.wait(place, step)
        return place

    def wait(self, place: Place, step: Step) -> None:
        """Until the node is as the step wants it, or further."""
        if step.state == "booting":
            self._wait_for_etcd(place)
        else:
            self.lab.wait(node=place.node, stage=step.state)

    def _wait_for_etcd(self, place: Place) -> None:
        """Until the node has installed itself and answers."""
        def there() -> bool:
            state = self.lab.state(node=place.node)
            return state["mode"] == "configured" and state["stage"] in ("booting", "running")
        wait_for(there, f"{place.node} to have installed itself")

    def _keep(self, place: Place, name: str) -> None:
        folder = self.folder / name
        folder.mkdir()
        if place.store.exists():
            shutil.copytree(place.store, folder / "ichor")
        (folder / "known.json").write_text(json.dumps([str(place.store), place.fingerprint, place.address]), encoding="utf-8")

    def _tell(self, place: Place, method: str, authenticated: bool, request: bytes) -> None:
        """One call by the lab's own client, again while the node is not ready for it."""
        def done() -> bool:
            with WireClient(place.address, 50000, self._tls[authenticated]) as client:
                return client.unary(f"/machine.MachineService/{method}", request).code == "OK"
        wait_for(done, f"{method} to be taken by {place.node}")

    def accepted(self, place: Place, method: str) -> int:
        """How often the node said yes to a writing call, by its own log."""
        return sum(entry["code"] == "OK" and not entry.get("dry_run") for entry in self.lab.log(node=place.node, event="done", kind="write")
                   if entry["rpc"].endswith(f"/{method}"))


def stopped(pid: int) -> bool:
    """Wait until a process has stopped itself or has ended; whether it stopped."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state in "TtZX":
            return state in "Tt"
        time.sleep(0.005)


def end_of(place: Place) -> dict[str, Any]:
    """What a store says, without times and counters, and with the address and the fingerprint made equal.

    A status that was written before its record, and set aside by the next run, says nothing.
    """
    found: dict[str, Any] = {}
    for path in sorted(place.store.rglob("*")):
        name = str(path.relative_to(place.store))
        if not path.is_file() or name.startswith(_ASIDE):
            continue
        text = path.read_text(encoding="utf-8").replace(place.fingerprint, "FINGERPRINT").replace(place.address, "ADDRESS")
        found[name] = _without_counters(yaml.safe_load(_TIME.sub("TIME", text))) if name.endswith((".json", ".yaml")) else text
    return found


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    """Where two ends differ, one line a place."""
    if isinstance(left, dict) and isinstance(right, dict):
        return [line for key in sorted(left.keys() | right.keys()) for line in differences(left.get(key), right.get(key), f"{path}/{key}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [line for number, (one, other) in enumerate(zip(left, right, strict=True)) for line in differences(one, other, f"{path}/{number}")]
    return [] if left == right else [f"{path}: {left!r} instead of {right!r}"]


def events_of(place: Place) -> list[str]:
    """What happened to whom."""
    path = place.store / ".state" / "events.jsonl"
    entries = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return [f"{entry['name']} {entry['reason']}" for entry in entries]


def _without_counters(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_counters(inner) for key, inner in value.items() if key not in _COUNTERS}
    return [_without_counters(inner) for inner in value] if isinstance(value, list) else value
