# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be done to a world while it runs. Each `do_` method is a command of the control socket."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import fields
from datetime import timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.lab import by_hand, certificates, flapping
from tests.lab import hardware as described
from tests.lab.faults import KINDS, Fault
from tests.lab.node import Node
from tests.lab.storage import EXTRA_VOLUMES, Storage
from tests.lab.tls import Identity
from tests.lab.world import World, settled

STATES = ("listening", "maintenance", "configured", "closed", "off")


class Commands:
    """The commands of one world."""

    def __init__(self, world: World, stopped: asyncio.Event) -> None:
        self.world = world
        self._stopped = stopped
        self._flapping = flapping.Flapping()

    async def close(self) -> None:
        await self._flapping.close()

    def _node(self, node: str) -> Node:
        found = self.world.nodes.get(node)
        if found is None:
            raise ValueError(f"no node {node!r}")
        return found

    async def do_ping(self) -> str:
        return "pong"

    async def do_stop(self) -> None:
        self._stopped.set()

    async def do_add(self, name: str, description: dict[str, Any], wait: bool = True) -> dict[str, Any]:
        node = self.world.add(name, description)
        if wait and node.powered:
            await self.do_wait(name, "listening")
        return node.state()

    async def do_remove(self, node: str) -> None:
        await self.world.remove(node)

    async def do_nodes(self) -> list[dict[str, Any]]:
        if self.world.etcd is not None:
            await asyncio.gather(*(node.boot.etcd.look() for node in self.world.nodes.values() if node.boot is not None))
        return [node.state() for node in self.world.nodes.values()]

    async def do_state(self, node: str) -> dict[str, Any]:
        found = self._node(node)
        if found.boot is not None:
            await found.boot.etcd.look()
        return found.state()

    async def do_trace(self, node: str) -> list[Any]:
        """What a client could see of a node, change by change, with lab seconds."""
        return list(self._node(node).trace)

    async def do_clock_now(self) -> float:
        """Now, in the lab seconds of `trace`."""
        return asyncio.get_running_loop().time() * self.world.clock.speed

    async def do_settled(self, seconds: float = 30.0) -> None:
        await settled(self.world, seconds)

    async def do_speed(self, speed: float) -> None:
        if speed <= 0:
            raise ValueError("speed must be greater than zero")
        self.world.clock.speed = speed

    async def do_silence(self, seconds: float) -> None:
        """How long a silent connection is kept; holds for listeners that are opened from now on, and for those that are open."""
        self.world.silence_seconds = seconds
        for node in self.world.nodes.values():
            if node.boot is not None and node.boot.endpoint is not None:
                node.boot.endpoint.silence_seconds = seconds

    async def do_timings(self, **values: float) -> dict[str, float]:
        known = {item.name for item in fields(self.world.timings)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"unknown timing {name!r}")
            setattr(self.world.timings, name, float(value))
        return {name: getattr(self.world.timings, name) for name in sorted(known)}

    async def do_wait(self, node: str, stage: str, seconds: float = 30.0) -> dict[str, Any]:
        """Waits for a stage (`running`), a mode (`maintenance`, `configured`, `closed`, `listening`), `ready` or `off`."""
        found = self._node(node)
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            state = found.state()
            if stage == "ready":
                hit = state["stage"] == "running" and state["ready"]
            elif stage in STATES:
                hit = state["listening"] if stage == "listening" else (not state["powered"] if stage == "off" else state["mode"] == stage)
            else:
                hit = state["stage"] == stage
            if hit:
                return state
            await asyncio.sleep(0.01)
        raise TimeoutError(f"{node} is {found.state()['stage']} ({found.mode}), not {stage}, after {seconds} s")

    async def do_power(self, node: str, state: str) -> None:
        """`on`, `off` (a cut) or `cycle`."""
        found = self._node(node)
        if state == "on":
            found.power_on()
        elif state == "off":
            await found.power_off()
        elif state == "cycle":
            await found.power_cycle()
        else:
            raise ValueError("state is on, off or cycle")

    async def do_flap(self, node: str, what: str = "route", away: float = 10.0, there: float = 10.0, stop: bool = False) -> None:
        """The node is gone and back in turns, in lab seconds, until `stop`: its `power`, or only the `route` to it."""
        if stop:
            await self._flapping.stop(self._node(node))
        else:
            self._flapping.start(self._node(node), what, away, there)

    async def do_route(self, node: str, there: bool) -> None:
        """The way to a node is lost, or found again; the node and its etcd go on, and other nodes reach it."""
        (flapping.find if there else flapping.lose)(self._node(node))

    async def do_wipe(self, node: str, what: str = "disk", reboot: bool = True, leave: str | None = None) -> None:
        """`disk` or a partition's label, behind the node's back; a running machine is power-cycled unless `reboot` is false.

        The partition is gone, or with `leave` still there: with nothing in it (`empty`), or with what cannot be read (`luks`).
        """
        found = self._node(node)
        if what not in ("disk", "STATE", "EPHEMERAL", "META", *EXTRA_VOLUMES):
            raise ValueError(f"what is disk, STATE, EPHEMERAL, META, {', '.join(EXTRA_VOLUMES)}")
        was = found.powered
        if was and reboot:
            await found.power_off()
        if what == "disk":
            found.storage.wipe_all()
            found.storage = Storage()
        else:
            found.storage.wipe(what, leave)
        found.note("wiped-behind-its-back", wipe=what)
        if was and reboot:
            found.power_on()

    async def do_hide_state(self, node: str) -> None:
        """The next boot does not find the STATE partition; the one after it does."""
        self._node(node).storage.state_hidden = True

    async def do_move(self, node: str, address: str, port: int | None = None) -> dict[str, Any]:
        """Another address; a running node gets a new leaf with it, as after a new DHCP lease."""
        found = self._node(node)
        await self._at(found, address, port or found.port, _silenced(found))
        return found.state()

    async def _at(self, found: Node, address: str, port: int, listened: bool) -> None:
        found.address, found.port = address, port
        found.note("moved", address=address)
        boot = found.boot
        # A node that goes down, to install or to reboot, has closed its port, and opens it again when it is up.
        if boot is not None and listened and boot.leaf is not None:
            boot.reissue("address")
            boot.endpoint = found.new_endpoint(lambda: boot._identity)
            await boot.endpoint.open()
            boot.refresh()

    async def do_swap(self, first: str, second: str) -> None:
        """Two nodes exchange their addresses."""
        one, two = self._node(first), self._node(second)
        mine, theirs = (one.address, one.port), (two.address, two.port)
        listened = [_silenced(node) for node in (one, two)]
        await self._at(one, *theirs, listened[0])
        await self._at(two, *mine, listened[1])

    async def do_twin(self, node: str, name: str, address: str, **description: Any) -> dict[str, Any]:
        """Another machine with the same hardware identity and a certificate of its own."""
        found = self._node(node)
        machine = {"uuid": found.hardware.uuid, "serial": found.hardware.serial, **description.pop("machine", {})}
        return await self.do_add(name, {"address": address, "port": found.port, "version": found.version, "machine": machine, **description})

    async def do_hardware(self, node: str, **values: Any) -> None:
        """Changes of the machine description; seen at the next boot, except for disks and links, which are seen at once."""
        found = self._node(node)
        for key, value in values.items():
            if not hasattr(found.hardware, key):
                raise ValueError(f"hardware has no {key!r}")
            setattr(found.hardware, key, _whole(found.name, key, value))
        if found.boot is not None:
            from tests.lab import publish

            publish.hardware(found.boot)
            names = {disk["dev_path"].removeprefix("/dev/") for disk in found.hardware.disks}
            found.boot.resources.keep_only("Disks.block.talos.dev", names)
            found.boot.refresh()

    async def do_cut(self, first: str, second: str, apart: bool = True) -> None:
        self.world.cut(first, second, apart)

    async def do_edit(
        self, node: str, patch: dict[str, Any] | None = None, kind: str = "v1alpha1", text: str | None = None, mode: str = "auto",
    ) -> str:
        """As a person with talosctl: merges `patch` into a document (null takes a key away), or applies `text`; gives Talos's answer."""
        found = self._node(node)
        return by_hand.write(found, text, mode) if text is not None else by_hand.edit(found, patch or {}, kind, mode)

    async def do_upgrade_k8s(self, to: str, nodes: list[str]) -> dict[str, str]:
        """As `talosctl upgrade-k8s`: the image tags in the configurations of these nodes, one after the other."""
        return {name: by_hand.upgrade_kubernetes(self._node(name), to) for name in nodes}

    async def do_reissue(self, node: str) -> dict[str, Any]:
        found = self._node(node)
        if found.boot is not None:
            found.boot.reissue("control")
        return found.state()

    async def do_clock(self, node: str, offset: float, reissue: bool = True) -> None:
        """The node's clock is `offset` seconds ahead; the change issues a new leaf, as a renewal that is due does."""
        found = self._node(node)
        found.clock_offset = offset
        found.note("clock", offset=offset)
        if found.boot is not None and reissue:
            found.boot.reissue("clock")

    async def do_certificate(self, node: str, kind: str) -> dict[str, Any]:
        """A wrong leaf until the next issue: expired, not-yet-valid, rsa, foreign (another CA), self-named."""
        found = self._node(node)
        boot = found.boot
        if boot is None or boot.leaf is None or boot._identity is None:
            raise ValueError(f"{node} does not listen")
        now = found.now()
        configured = boot._identity.client_authorities is not None
        authority = boot.authority if configured and boot.authority is not None and boot.authority.key is not None else certificates.new_authority(now)
        name = boot.hostname if configured else certificates.MAINTENANCE_NAME
        key = None
        lifetime = certificates.DAY
        if kind == "expired":
            now -= 2 * 86400
        elif kind == "not-yet-valid":
            now += 2 * 86400
        elif kind == "rsa":
            key = rsa.generate_private_key(65537, 2048)
        elif kind == "foreign":
            authority = certificates.new_authority(now, "talos")
        elif kind == "self-named":
            name, lifetime = "localhost", timedelta(days=3650)
        else:
            raise ValueError("kind is expired, not-yet-valid, rsa, foreign or self-named")
        leaf = certificates.issue_server(authority, now, name, [], ["127.0.0.1", *found.addresses], lifetime, key)
        boot.replace_identity(Identity(leaf, boot._identity.client_authorities))
        found.note("certificate", fault=kind, fingerprint=leaf.fingerprint)
        return found.state()

    async def do_maintenance_name(self, node: str) -> None:
        """A configured node that shows the name of the maintenance service."""
        found = self._node(node)
        boot = found.boot
        if boot is not None and boot._identity is not None and boot.authority is not None and boot.authority.key is not None:
            leaf = certificates.issue_server(boot.authority, found.now(), certificates.MAINTENANCE_NAME, [], ["127.0.0.1", *found.addresses])
            boot.replace_identity(Identity(leaf, boot._identity.client_authorities))

    async def do_fault(self, node: str, kind: str, rpc: str = "*", times: int | None = None, value: Any = None) -> None:
        self._node(node).faults.add(Fault(kind, rpc, times, value))

    async def do_clear(self, node: str, kind: str | None = None) -> None:
        self._node(node).faults.clear(kind)

    async def do_faults(self) -> list[str]:
        return list(KINDS)

    async def do_struck(self, node: str) -> list[str]:
        return list(self._node(node).faults.struck)

    async def do_hold(self, node: str, phase: str, held: bool = True) -> None:
        """Stops a sequence (or an apply) at `apply`, `install`, `kubelet`, `reset`, `leaveEtcd`, `wipe`, `stop` or `failure` until released."""
        self._node(node).set_hold(phase, held)

    async def do_etcd(self, node: str, running: bool | None = None, frozen: bool | None = None) -> dict[str, Any] | None:
        """Stops or starts the etcd of a node behind its back, or freezes its real process; tells of the real process, if there is one."""
        found = self._node(node)
        if found.boot is None:
            return None
        if frozen is not None:
            found.boot.etcd.freeze(frozen)
        if running is not None:
            if running:
                found.boot.etcd.start()
            else:
                await found.boot.etcd.stop()
                found.boot.refresh()
        return found.boot.etcd.process()

    async def do_log(self, since: int = 0, **wanted: Any) -> list[dict[str, Any]]:
        return self.world.log.select(since, **wanted)

    async def do_writes(self, since: int = 0, accepted_only: bool = False) -> dict[str, int]:
        return self.world.log.writes(since, accepted_only)

    async def do_mark(self) -> int:
        """The number of the next entry."""
        return len(self.world.log.entries)

    async def do_config(self, node: str, which: str = "stored") -> str | None:
        """The configuration of a node as text: `stored` (on STATE), `active` or `persistent`."""
        found = self._node(node)
        if which == "stored":
            return found.storage.config.decode("utf-8", "replace") if found.storage.config is not None else None
        config = getattr(found.boot, which) if found.boot is not None else None
        return config.raw.decode("utf-8", "replace") if config is not None else None


def _silenced(found: Node) -> bool:
    """Close the port of a node, and say whether it was open."""
    endpoint = found.boot.endpoint if found.boot is not None else None
    listened = endpoint is not None and endpoint.listening
    if endpoint is not None:
        endpoint.kill()
    return listened


def _whole(node: str, key: str, value: Any) -> Any:
    """Disks and links in the short form of a world file, or whole ones as they are."""
    if key == "disks":
        return [item if "dev_path" in item else described.disk(item, index, _seed(node)) for index, item in enumerate(value)]
    if key == "links":
        return [item if "hardwareAddr" in item else described.link(item, index, _seed(node)) for index, item in enumerate(value)]
    return value


def _seed(node: str) -> str:
    return hashlib.sha256(node.encode()).hexdigest()
