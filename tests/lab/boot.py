# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One boot of a machine: what lives in memory between power on and the next reboot.

The main task walks through initialize, maintenance, install and boot; sequences that are asked for over the API (see
`sequences`) take over. `run` returns `reboot` or `off`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tests.lab import certificates, publish, sequences, specs
from tests.lab.definitions import definitions
from tests.lab.endpoint import GRACE_SECONDS, Endpoint
from tests.lab.etcd_emulated import EmulatedEtcd
from tests.lab.etcd_real import RealEtcd
from tests.lab.etcd_service import EtcdService
from tests.lab.events import Events
from tests.lab.machineconfig import Config, ConfigError, load
from tests.lab.resources import Resources
from tests.lab.services import Services
from tests.lab.storage import new_identity
from tests.lab.tls import Identity

if TYPE_CHECKING:
    from tests.lab.node import Node

WAIT_CONTAINERD = 'Waiting for service "containerd" to be "up"'
REISSUE_SECONDS = 12 * 3600.0


class Boot:
    """The state of one boot. Attributes are read by the RPC handlers."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.clock = node.world.clock
        self.id = str(uuid.uuid4())
        self.stage = "unknown"
        self.ready = True
        self.unmet: list[dict[str, str]] = []
        self.active: Config | None = None
        self.persistent: Config | None = None
        self.identity_id = node.storage.identity or new_identity()
        self.events = Events()
        self.resources = Resources(definitions(node.minor), node.now)
        self.services = Services(self.events, node.now, self.refresh_status)
        self.etcd: EtcdService = RealEtcd(self, node.world.etcd) if node.world.etcd is not None else EmulatedEtcd(self)
        self.node_known = False
        self.install_phase: str | None = None
        self.system_disk = node.storage.system_disk  # as this boot knows it; what an install has just written comes with the next
        self.tried_from: Config | None = None
        self.try_timer: asyncio.Task[None] | None = None
        self.apply_lock = asyncio.Lock()
        self.reboot_pending = False
        self.sequence = "initialize"
        self.bootable = False  # the boot sequence has started
        self.authority: certificates.Authority | None = None
        self.endpoint: Endpoint | None = None
        self._maintenance_authority = certificates.new_authority(node.now(), lifetime=certificates.DAY)
        self._identity: Identity | None = None
        self._complete = asyncio.Event()
        self._moved = asyncio.Event()
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sequence_task: asyncio.Task[Any] | None = None
        self._refreshing = False
        self._opening = False

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.node.note("lab-error", error=repr(task.exception()))

    async def run(self) -> str:
        """Until the machine reboots or goes off."""
        self._sequence_task = self.spawn(self._main())
        self.spawn(self._reissue_timer())
        try:
            return await self._over
        finally:
            await self.end()

    async def end(self) -> None:
        """Nothing of this boot is left: no task, no socket."""
        self.etcd.running = False
        for task in list(self._tasks):
            task.cancel()
        if self.endpoint is not None:
            self.endpoint.kill()
            self.node.observe()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.etcd.end()

    def over(self, outcome: str) -> None:
        if not self._over.done():
            self._over.set_result(outcome)

    def take_over(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        """A new sequence ends the running one."""
        self.sequence = name
        if self._sequence_task is not None:
            self._sequence_task.cancel()
        self._sequence_task = self.spawn(work)

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Waits until a change of this boot makes the condition true."""
        while not wanted():
            self._moved.clear()
            await self._moved.wait()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def _main(self) -> None:
        timings = self.node.world.timings
        events = self.events
        events.sequence("initialize", True)
        events.phases([("systemRequirements", "enforceKSPPRequirements")])
        events.phase("earlyServices", True)
        publish.hardware(self)
        self.refresh()
        self.set_stage("booting")
        for name in ("machined", "udevd", "auditd", "syslogd", "containerd"):
            self.services.start(name)
        self.services.begin("apid", WAIT_CONTAINERD)
        await self.sleep(timings.boot)
        events.phase("earlyServices", False)
        self.node.load_stored(self)
        if self.active is None or not self.active.complete:
            await self._maintenance()
            if self.node.minor == 12:
                await self._close_maintenance()
            else:
                self.spawn(self._switch_listener())
        else:
            self.bootable = True
            self._adopt_config()
            self.spawn(self.open_configured())
        events.task("loadConfig", False)
        events.phase("config", False)
        events.sequence("initialize", False)
        self.bootable = True
        await sequences.install_and_boot(self)

    async def _maintenance(self) -> None:
        events = self.events
        events.phase("config", True)
        events.task("loadConfig", True)
        events.task("runningMaintenance", True)
        self.set_stage("maintenance")
        self.services.run("apid")
        await self._open(self._maintenance_identity())
        self.spawn(self._apid_health())
        while self.active is None or not self.active.complete:
            self._complete.clear()
            await self._complete.wait()
        events.task("runningMaintenance", False)
        self.bootable = True
        self.stage = "booting"
        self._adopt_config()

    def _adopt_config(self) -> None:
        """What follows at once from a complete configuration."""
        assert self.active is not None
        self.authority = self.active.authority()
        self.refresh()
        self.node.world.membership_changed()

    def configure(self, active: Config | None, persistent: Config | None) -> None:
        """New active and persistent configurations, as the apply decided."""
        was = self.active
        old_host = self.hostname
        self.active = active
        self.persistent = persistent
        if self.node.storage.state and persistent is not None:
            self.node.storage.config = persistent.raw
        in_maintenance = was is None or not was.complete
        if in_maintenance:
            self._complete.set()
            if self.hostname != old_host and (active is None or not active.complete):
                self.reissue("host name")
        elif active is not None:
            self.authority = active.authority()
            self.reissue("configuration")
            self.node.world.membership_changed()
        self.refresh()

    @property
    def in_maintenance(self) -> bool:
        """Whether the API answers as in maintenance mode."""
        return self.endpoint is not None and self._identity is not None and self._identity.client_authorities is None

    @property
    def listening(self) -> bool:
        return self.endpoint is not None and self.endpoint.listening

    @property
    def configured(self) -> bool:
        return self.active is not None and self.active.complete

    def _maintenance_identity(self) -> Identity:
        names = [self.hostname] if self.hostname else []
        leaf = certificates.issue_server(
            self._maintenance_authority, self.node.now(), certificates.MAINTENANCE_NAME, names, ["127.0.0.1", *self.node.addresses, "::1"]
        )
        return Identity(leaf, None, tls12=self.node.minor == 12)

    def _configured_identity(self) -> Identity | None:
        """The leaf of a configured node; a worker gets it from a control plane's trustd, so None while there is none."""
        config = self.active
        if config is None or self.authority is None:
            return None
        authority = self.authority
        if authority.key is None:
            signer = self.node.world.trustd(authority, self.node)
            if signer is None:
                return None
            authority = signer
        addresses = dict.fromkeys(["127.0.0.1", *self.node.addresses])
        names = dict.fromkeys([self.hostname])
        for name in config.cert_sans:
            (addresses if _is_address(name) else names)[name] = None
        leaf = certificates.issue_server(authority, self.node.now(), self.hostname, list(names), list(addresses))
        return Identity(leaf, [self.authority.certificate, *config.accepted()], tls12=self.node.minor == 12)

    async def _open(self, identity: Identity) -> None:
        self._identity = identity
        self.endpoint = self.node.new_endpoint(lambda: self._identity)
        await self.endpoint.open()
        self.resources.drop("APIServiceConfigs.runtime.talos.dev", "apid")
        self.refresh()
        self.node.note("listening", mode="maintenance" if identity.client_authorities is None else "configured", fingerprint=identity.leaf.fingerprint)

    async def _close_maintenance(self) -> None:
        """1.12: the maintenance service ends, and nothing listens until the node has booted with its configuration."""
        if self.endpoint is not None:
            old, self.endpoint = self.endpoint, None
            await old.stop(self.clock.real(5.0))

    async def _switch_listener(self) -> None:
        """apid restarts with the cluster's CA; an open stream holds that up for the whole grace time."""
        if self.endpoint is not None:
            self.endpoint.close_listener()
            self.node.observe()
            await self.endpoint.stop(self.clock.real(GRACE_SECONDS))
        await self.open_configured()

    async def open_configured(self) -> None:
        if self._opening or (self.node.minor == 12 and self.node.needs_install(self)):
            return
        self._opening = True
        identity = self._configured_identity()
        while identity is None:
            await self.sleep(0.25)
            identity = self._configured_identity()
        if not self.services.running("apid"):
            self.services.run("apid")
        await self._open(identity)
        await self._apid_health()

    async def _apid_health(self) -> None:
        await self.node.hold("apid")
        await self.sleep(self.node.world.timings.apid)
        self.services.check("apid", True)

    def reissue(self, why: str) -> None:
        """A new leaf with a new key; open connections go on with the old one."""
        if self._identity is None or self.endpoint is None:
            return
        fresh = self._maintenance_identity() if self._identity.client_authorities is None else self._configured_identity()
        if fresh is not None:
            self._identity = fresh
            self.node.note("reissued", why=why, fingerprint=fresh.leaf.fingerprint)
            self.node.observe()

    @property
    def leaf(self) -> certificates.Leaf | None:
        return self._identity.leaf if self._identity is not None else None

    def replace_identity(self, identity: Identity) -> None:
        """Another certificate than the node's own, for faults."""
        self._identity = identity

    async def _reissue_timer(self) -> None:
        while True:
            await self.sleep(REISSUE_SECONDS)
            self.reissue("timer")

    async def stop_listening(self) -> None:
        """The orderly end of apid in a reboot."""
        self.events.end()
        if self.endpoint is not None:
            self.endpoint.close_listener()
            self.node.observe()
            await self.endpoint.stop(self.clock.real(1.0))

    @property
    def hostname(self) -> str:
        name = self.active.hostname if self.active is not None else ""
        if name or self.active is None or not self.active.complete:
            return name or self.node.dhcp_hostname
        return self.node.dhcp_hostname or "talos-" + self.identity_id[:3].lower() + "-" + self.identity_id[3:6].lower()

    def set_stage(self, stage: str) -> None:
        if stage != self.stage:
            self.stage = stage
            self.node.note("stage", stage=stage)
        self.refresh()

    def refresh(self) -> None:
        """Brings every derived resource up to date and tells of a changed status."""
        if not self._refreshing:
            self._refreshing = True
            try:
                publish.dynamic(self)
            finally:
                self._refreshing = False
        self.refresh_status()

    def refresh_status(self) -> None:
        """The cheap part, after each step of a service."""
        publish.services(self)
        self.unmet = publish.unmet_conditions(self)
        self.ready = not self.unmet
        before = self.resources.get("runtime", "MachineStatuses.runtime.talos.dev", "machine")
        spec = {"stage": self.stage, "status": {"ready": self.ready, "unmetConditions": self.unmet}}
        if before is None or before.spec != spec:
            self.resources.put("MachineStatuses.runtime.talos.dev", "machine", spec, owner="runtime.MachineStatusController")
            self.events.machine_status(specs.STAGES[self.stage], self.ready, self.unmet)
        self._moved.set()
        self.node.observe()

    def parse(self, raw: bytes) -> Config | None:
        try:
            return load(raw, self.node.minor)
        except ConfigError:
            return None


def _is_address(text: str) -> bool:
    return text.replace(".", "").isdigit() or ":" in text
