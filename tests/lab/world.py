# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All nodes of one process: the network between them, etcd clusters, discovery, timings, and the log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TextIO

import yaml

from tests.lab.calllog import CallLog
from tests.lab.certificates import Authority, certificate_pem
from tests.lab.clock import Clock
from tests.lab.connection import SILENCE_SECONDS
from tests.lab.etcd import Cluster
from tests.lab.etcd_real import EtcdPrograms
from tests.lab.machineconfig import Config
from tests.lab.node import Node
from tests.lab.oracle import Oracle

DEFAULT_VERSION = "v1.13.9"
DEFAULT_PORT = 50000


@dataclass
class Timings:
    """Lab seconds of everything that a node waits for; the defaults are those of the recorded nodes."""

    boot: float = 0.25
    apid: float = 0.2
    install: float = 3.0
    stop: float = 1.0
    reboot: float = 1.5
    power_on: float = 1.0
    failure: float = 3.0
    node_status: float = 0.3
    cri: float = 0.55
    kubelet: float = 1.0
    trustd: float = 0.5
    etcd_start: float = 0.03
    etcd_restart: float = 5.0
    learner_named: float = 0.2
    join_retry: float = 3.0
    promotion_first: float = 16.0
    promotion: float = 15.0
    health_first: float = 5.0
    health: float = 20.0
    member_resource: float = 180.0  # how long a leave waits for a healthy etcd


class World:
    """The lab's world. `speed` divides every wait; client deadlines stay real."""

    def __init__(
        self, speed: float = 1.0, log: TextIO | None = None, timings: Mapping[str, float] | None = None, oracle: str | None = None,
        etcd: EtcdPrograms | None = None,
    ) -> None:
        self.clock = Clock(speed)
        self.log = CallLog(self.clock.now, log)
        known = {item.name for item in fields(Timings)}
        unknown = set(timings or {}) - known
        if unknown:
            raise ValueError(f"unknown timings: {', '.join(sorted(unknown))}")
        self.timings = Timings(**dict(timings or {}))
        self.nodes: dict[str, Node] = {}
        self.silence_seconds = SILENCE_SECONDS
        self.oracle = Oracle(oracle) if oracle else None
        self.etcd = etcd  # None: emulated
        self._members: dict[int, str] = {}
        self._cut: set[frozenset[str]] = set()

    def add(self, name: str, description: Mapping[str, Any]) -> Node:
        """A node from its description: `address`, `port`, `version`, `machine`, `power`, and what Node takes beside them."""
        if name in self.nodes:
            raise ValueError(f"node {name} exists")
        given = dict(description)
        address = str(given.pop("address"))
        power = given.pop("power", "on")
        node = Node(
            self, name, address, int(given.pop("port", DEFAULT_PORT)), str(given.pop("version", DEFAULT_VERSION)), dict(given.pop("machine", {})), **given
        )
        self.nodes[name] = node
        if power == "on":
            node.power_on()
        return node

    async def remove(self, name: str) -> None:
        node = self.nodes.pop(name)
        await node.power_off()
        node.storage.wipe_all()

    async def close(self) -> None:
        for node in list(self.nodes.values()):
            await node.power_off()
        if self.oracle is not None:
            self.oracle.close()

    def at(self, address: str) -> Node | None:
        """The node that answers at an address inside the lab's network, powered and listening."""
        for node in self.nodes.values():
            if address in node.addresses and node.boot is not None and node.boot.endpoint is not None and node.boot.endpoint.listening:
                return node
        return None

    def cut(self, first: str, second: str, apart: bool) -> None:
        """Separates two nodes, or joins them again."""
        pair = frozenset((first, second))
        if apart:
            self._cut.add(pair)
        else:
            self._cut.discard(pair)

    def reachable(self, first: str, second: str) -> bool:
        return frozenset((first, second)) not in self._cut

    def configured(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.boot is not None and node.boot.configured and node.boot.bootable]

    def members(self, config: Config) -> list[dict[str, Any]]:
        """What the discovery service knows of a cluster."""
        found = []
        for node in self.configured() if config.discovers else ():
            boot = node.boot
            if boot is None or boot.active is None or boot.active.cluster_id != config.cluster_id:
                continue
            found.append({
                "nodeId": boot.identity_id, "addresses": list(node.addresses), "hostname": boot.hostname,
                "machineType": "controlplane" if boot.active.control_plane else "worker", "operatingSystem": f"Talos ({node.version})",
            })
        return sorted(found, key=lambda member: str(member["hostname"]))

    def membership_changed(self) -> None:
        for node in self.configured():
            if node.boot is not None and node.boot.active is not None and node.boot.active.discovers:
                node.boot.refresh()

    def trustd(self, authority: Authority, asker: Node) -> Authority | None:
        """The signing CA, when a control plane of the same CA runs trustd, can be reached, and knows the asker's token."""
        wanted = certificate_pem(authority.certificate)
        token = asker.boot.active.token if asker.boot is not None and asker.boot.active is not None else ""
        for node in self.configured():
            boot = node.boot
            if boot is None or boot.authority is None or boot.authority.key is None or not self.reachable(node.name, asker.name):
                continue
            if boot.active is None or boot.active.token != token:
                continue
            if boot.services.running("trustd") and certificate_pem(boot.authority.certificate) == wanted:
                return boot.authority
        return None

    def etcd_started(self, node: Node) -> None:
        if node.storage.etcd is not None:
            self._members[node.storage.etcd.member] = node.name
            self.observe()

    def observe(self) -> None:
        """After a change of an etcd cluster, which every member shows."""
        for node in self.nodes.values():
            if node.storage.etcd is not None:
                node.observe()

    def member_alive(self, member: int) -> bool:
        node = self.nodes.get(self._members.get(member, ""))
        if node is None or node.boot is None or node.storage.etcd is None:
            return False
        return node.boot.etcd.running and node.storage.etcd.member == member

    def etcd_cluster(self, config: Config, asker: Node) -> Cluster | None:
        """The etcd cluster of a configuration, as seen from a node: its own, else that of any control plane it reaches."""
        own = asker.storage.etcd
        if own is not None and asker.boot is not None and asker.boot.etcd.running and own.member in own.cluster.members:
            return own.cluster
        for node in self.configured():
            data, boot = node.storage.etcd, node.boot
            if data is None or boot is None or not boot.etcd.running or boot.active is None or data.member not in data.cluster.members:
                continue
            if boot.active.etcd_ca == config.etcd_ca and self.reachable(node.name, asker.name) and not data.cluster.members[data.member].learner:
                return data.cluster
        return None


def load_world(path: str, world: World) -> None:
    """Adds the nodes of a world file: `nodes` is a mapping of names, or a list of entries with `name`; `defaults` hold for all.

    An entry with `count` stands for that many nodes: `name` and `address` are templates with `{n}`, counted from 1.
    """
    with open(path, encoding="utf-8") as source:
        data = json.load(source) if Path(path).suffix == ".json" else yaml.safe_load(source)
    defaults = dict(data.get("defaults") or {})
    entries = data.get("nodes") or {}
    listed = [dict(entry or {}, name=name) for name, entry in entries.items()] if isinstance(entries, dict) else [dict(entry) for entry in entries]
    for entry in listed:
        count = entry.pop("count", None)
        name = str(entry.pop("name"))
        for number in range(1, (count or 1) + 1):
            description = {**defaults, **entry}
            if count is not None:
                description["address"] = str(description["address"]).format(n=number, high=number // 250, low=number % 250 + 1)
            world.add(name.format(n=number) if count is not None else name, description)


async def settled(world: World, seconds: float = 30.0) -> None:
    """Waits until every powered node listens."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        if all(node.mode != "closed" for node in world.nodes.values() if node.powered and node.boots <= 1):
            return
        await asyncio.sleep(0.01)
