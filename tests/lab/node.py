# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One machine: hardware, disks, power, and the boot that is under way."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.lab import status
from tests.lab.boot import Boot
from tests.lab.calllog import roles_text
from tests.lab.connection import MAX_MESSAGE, Call
from tests.lab.director import Director
from tests.lab.endpoint import Endpoint
from tests.lab.etcd import description
from tests.lab.faults import Faults
from tests.lab.hardware import Hardware, describe
from tests.lab.machineconfig import Config
from tests.lab.sequences import ResetRequest
from tests.lab.storage import Storage

if TYPE_CHECKING:
    from tests.lab.tls import Identity
    from tests.lab.world import World

MAINTENANCE_12_MAX = 4194304


class Node:
    """A machine of the world. `address` is what it listens on; `version` like `v1.13.9`."""

    def __init__(self, world: World, name: str, address: str, port: int, version: str, machine: dict[str, Any], **options: Any) -> None:
        self.world = world
        self.name = name
        self.address = address
        self.port = port
        self.version = version
        self.minor = int(version.removeprefix("v").split(".")[1])
        self.hardware: Hardware = describe(name, machine)
        self.storage = Storage()
        self.faults = Faults()
        self.boot: Boot | None = None
        self.powered = False
        self.boots = 0
        self.clock_offset = 0.0
        self.extra_addresses: list[str] = list(options.pop("addresses", []))
        self.dhcp_hostname = str(options.pop("dhcp_hostname", ""))
        self.boot_medium = bool(options.pop("boot_medium", True))  # ISO or PXE beside the disk
        self.partitions = set(options.pop("volumes", []))  # volumes that the node keeps apart from EPHEMERAL
        if (installed := options.pop("installed", "")):
            self.storage.preinstall(str(installed).encode(), self.hardware.disks[0]["dev_path"].removeprefix("/dev/"), self.partitions)
        self.etcd_image = "registry.example.org/etcd:v3.6.12" if self.minor < 14 else "registry.example.org/etcd:3.7.1"
        if options:
            raise ValueError(f"node {name}: unknown keys {', '.join(sorted(options))}")
        self.director = Director(self)
        self.folder = quote(name, safe="")  # of its disks, where something of them is real
        self._life: asyncio.Task[None] | None = None
        self._holds: dict[str, asyncio.Event] = {}
        self.trace: list[tuple[float, dict[str, Any]]] = []

    def now(self) -> float:
        return self.world.clock.now() + self.clock_offset

    def note(self, what: str, **fields: Any) -> None:
        self.world.log.add("node", self.name, what=what, **fields)

    @property
    def addresses(self) -> list[str]:
        return [self.address, *self.extra_addresses]

    def prefix(self, address: str) -> str:
        parsed = ipaddress.ip_address(address)
        return f"{address}/{64 if parsed.version == 6 else (8 if parsed.is_loopback else 24)}"

    def power_on(self) -> None:
        if not self.powered:
            self.powered = True
            self._life = asyncio.get_running_loop().create_task(self._live())
            self._life.add_done_callback(self._life_ended)

    def _life_ended(self, life: asyncio.Task[None]) -> None:
        if not life.cancelled() and life.exception() is not None:
            self.note("lab-error", error=repr(life.exception()))

    async def power_off(self) -> None:
        """A power cut."""
        self.powered = False
        life, self._life = self._life, None
        if self.boot is not None and self.boot.endpoint is not None:
            self.boot.endpoint.kill()
        self.observe()
        if life is not None:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
        self.boot = None
        self.note("power", state="off")

    async def power_cycle(self) -> None:
        await self.power_off()
        self.power_on()

    async def _live(self) -> None:
        self.note("power", state="on")
        await self.world.clock.sleep(self.world.timings.power_on if self.boots else 0.0)
        while self.storage.installed or self.boot_medium:
            self.boots += 1
            boot = self.boot = Boot(self)
            self.note("boot", boot=self.boots)
            try:
                outcome = await boot.run()
            finally:
                await boot.end()
            self.world.membership_changed()
            if outcome == "off":
                break
            await self.world.clock.sleep(self.world.timings.reboot)
        self.boot = None
        self.powered = False
        self.note("power", state="off")

    def load_stored(self, boot: Boot) -> None:
        """The configuration of the STATE partition becomes active and persistent."""
        storage = self.storage
        if storage.state and not storage.state_hidden and storage.config is not None:
            boot.active = boot.persistent = boot.parse(storage.config)
        storage.state_hidden = False

    def needs_install(self, boot: Boot) -> bool:
        return not self.storage.installed

    def install(self, boot: Boot) -> str | None:
        """Writes Talos to the disk that the configuration chooses; an error text when there is none."""
        config = boot.active
        assert config is not None
        disk = self.choose_disk(config)
        if disk is None:
            return "sequence failed: error running phase 2 in install sequence: task 1/1: failed, no disk found"
        self.storage.system_disk = disk
        self.storage.meta.setdefault(0x11, b"dual-boot")
        if boot.persistent is not None:
            self.storage.format_missing()
            self.storage.extra |= self.partitions
            self.storage.identity = boot.identity_id
            self.storage.config = boot.persistent.raw
        self.note("installed", disk=disk)
        return None

    def choose_disk(self, config: Config) -> str | None:
        """The kernel name of the disk; selectors are understood in their commonest forms."""
        from tests.lab.selectors import matching

        install, unattended = config.install, config.unattended
        if unattended is not None:
            found = matching(self.hardware.disks, ((unattended.get("provisioning") or {}).get("diskSelector") or {}).get("match"))
            return found[0] if found else None
        if install is None:
            return None
        if install.get("disk"):
            disk = self.hardware.disk(str(install["disk"]))
            return disk["dev_path"].removeprefix("/dev/") if disk is not None else None
        found = matching(self.hardware.disks, install.get("diskSelector"))
        return found[0] if found else None

    def provision(self, boot: Boot) -> None:
        """Formats what is missing on the system disk and stores the configuration there."""
        if boot.persistent is None:
            return
        boot.system_disk = self.storage.system_disk
        fresh = not self.storage.state
        self.storage.format_missing()
        self.storage.extra |= self.partitions
        if fresh:
            self.storage.identity = boot.identity_id
        self.storage.config = boot.persistent.raw
        boot.refresh()

    def wipe_for(self, request: ResetRequest) -> None:
        if request.system and not request.labels:
            self.storage.wipe_all()
        for label in request.labels:
            self.storage.wipe(label)
        self.storage.wiped_disks.extend(request.user_disks)
        self.note("wiped", labels=list(request.labels), system=request.system, disks=list(request.user_disks))

    def observe(self) -> None:
        """Appends to the trace when something that a client can see has changed. Times are lab seconds."""
        seen = self._visible()
        if not self.trace or self.trace[-1][1] != seen:
            self.trace.append((asyncio.get_running_loop().time() * self.world.clock.speed, seen))

    def _visible(self) -> dict[str, Any]:
        boot = self.boot
        last = dict(self.trace[-1][1]) if self.trace else {}
        endpoint = boot.endpoint if boot is not None else None
        if boot is None or endpoint is None or not endpoint.listening or boot.leaf is None:
            return {**last, "tcp": "connection refused", "tls": None, "leaf": None}
        certificate = boot.leaf.certificate
        names = f"subject={certificate.subject.rfc4514_string()} issuer={certificate.issuer.rfc4514_string()}"
        seen: dict[str, Any] = {
            "tcp": "accepted", "tls": "no client certificate asked" if boot.in_maintenance else "wants client certificate",
            "leaf": f"{boot.leaf.fingerprint} {names}", "stage": boot.stage, "ready": boot.ready,
            "unmet": [f"{item['name']}: {item['reason']}" for item in boot.unmet],
        }
        for name in ("etcd", "trustd"):
            service = boot.services.get(name)
            seen[name] = f"{service.state}/{service.health}" if service is not None else "absent"
        seen["unattended-install"] = boot.install_phase or "NOT_FOUND"
        cluster = self.storage.etcd.cluster if self.storage.etcd is not None and boot.etcd.running else None
        if cluster is not None and cluster.quorum():
            seen["etcd-members"] = sorted((member.name or "<unstarted>") + ("(learner)" if member.learner else "") for member in cluster.members.values())
        else:
            seen["etcd-members"] = last.get("etcd-members")
        return seen

    async def hold(self, phase: str) -> None:
        event = self._holds.get(phase)
        if event is not None:
            await event.wait()

    def set_hold(self, phase: str, held: bool) -> None:
        if held:
            self._holds.setdefault(phase, asyncio.Event())
        elif phase in self._holds:
            self._holds.pop(phase).set()

    def new_endpoint(self, identity: Any) -> Endpoint:
        boot = self.boot
        assert boot is not None

        def current() -> Identity:
            found: Identity = identity()
            return found

        maximum = MAINTENANCE_12_MAX if self.minor == 12 and not boot.configured else MAX_MESSAGE
        return Endpoint(
            self.name, self.address, self.port, self.world.log, self.faults, current, self.now, self.director.serve, self.finished, maximum,
            self.world.silence_seconds,
        )

    def finished(self, call: Call, code: int, text: str) -> None:
        self.world.log.add(
            "done", self.name, peer=call.peer, rpc=call.path, code=status.NAMES[code], text=text or None, credentials=roles_text(sorted(call.roles)),
            messages=call.sent or None, **call.log_fields,
        )

    def state(self) -> dict[str, Any]:
        boot, storage = self.boot, self.storage
        leaf = boot.leaf if boot is not None and boot.endpoint is not None and boot.endpoint.listening else None
        return {
            "name": self.name, "address": self.address, "port": self.port, "version": self.version, "powered": self.powered, "boots": self.boots,
            "uuid": self.hardware.uuid, "serial": self.hardware.serial, "stage": boot.stage if boot is not None else "off",
            "ready": boot.ready if boot is not None else False, "unmet": boot.unmet if boot is not None else [],
            "listening": leaf is not None, "mode": self.mode, "fingerprint": leaf.fingerprint if leaf is not None else None,
            "boot_id": boot.id if boot is not None else None, "hostname": boot.hostname if boot is not None else "",
            "machine_type": boot.active.machine_type if boot is not None and boot.active is not None else "unknown",
            "installed": storage.installed, "system_disk": storage.system_disk, "partitions": [label for label, unused in storage.partitions()],
            "has_config": storage.config is not None, "etcd": description(storage.etcd.cluster if storage.etcd is not None else None),
            "wiped_disks": list(storage.wiped_disks), "faults": [fault.kind for fault in self.faults.active],
        }

    @property
    def mode(self) -> str:
        boot = self.boot
        if boot is None or boot.endpoint is None or not boot.endpoint.listening:
            return "closed"
        return "maintenance" if boot.in_maintenance else "configured"
