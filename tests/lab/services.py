# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The services of one boot: their states, health, history, and the events and resources they cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.lab.events import Events
from tests.lab.wire import message

RUNNING_MESSAGES = {
    "apid": "Process Exec(apid) started with PID 1204",
    "etcd": "Process Exec(etcd) started with PID 2311",
    "trustd": "Process Exec(trustd) started with PID 1519",
}
HEALTHY = "Health check successful"


@dataclass
class Service:
    """One service. `health` is unknown, healthy or unhealthy."""

    name: str
    state: str = "Initialized"
    health: str = "unknown"
    last_message: str = ""
    changed: float = 0.0
    history: list[tuple[str, str, float]] = field(default_factory=list)

    def health_message(self) -> Any:
        health = message("machine.ServiceHealth")(unknown=self.health == "unknown", healthy=self.health == "healthy", last_message=self.last_message)
        _stamp(health.last_change, self.changed)
        return health

    def info(self) -> Any:
        info = message("machine.ServiceInfo")(id=self.name, state=self.state)
        for text, state, when in self.history:
            event = info.events.events.add(msg=text, state=state)
            _stamp(event.ts, when)
        info.health.CopyFrom(self.health_message())
        return info


def _stamp(target: Any, seconds: float) -> None:
    target.seconds = int(seconds)
    target.nanos = int(seconds % 1 * 1e9)


class Services:
    """All services of a boot. `changed` is called after each change."""

    def __init__(self, events: Events, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self._events = events
        self._now = now
        self._changed = changed
        self.all: dict[str, Service] = {}

    def get(self, name: str) -> Service | None:
        return self.all.get(name)

    def running(self, name: str) -> bool:
        service = self.all.get(name)
        return service is not None and service.state == "Running"

    def healthy(self, name: str) -> bool:
        service = self.all.get(name)
        return service is not None and service.state == "Running" and service.health == "healthy"

    def set(self, name: str, state: str, text: str, health: str | None = None) -> None:
        """One step of a service. The events of one that leaves Running call its health unknown, the list calls it unhealthy."""
        now = self._now()
        service = self.all.get(name)
        if service is None:
            service = self.all[name] = Service(name, changed=now)
        service.state = state
        if health is not None and health != service.health:
            service.health = health
            service.changed = now
            service.last_message = "" if health in ("healthy", "unknown") else service.last_message
        service.history.append((text, state, now))
        shown = service.health_message()
        if state in ("Stopping", "Finished", "Waiting") and service.health == "unhealthy":
            shown = Service(name, changed=service.changed).health_message()
        self._events.service(name, state, text, shown)
        self._changed()

    def check(self, name: str, healthy: bool, text: str = "") -> None:
        """The result of a health check."""
        service = self.all.get(name)
        if service is None or service.state != "Running":
            return
        wanted = "healthy" if healthy else "unhealthy"
        if service.health != wanted:
            service.last_message = "" if healthy else text
            self.set(name, "Running", HEALTHY if healthy else f"Health check failed: {text}", wanted)

    def start(self, name: str, waiting: str = "", healthy: bool = True) -> None:
        """The usual way up, in one go."""
        self.begin(name, waiting)
        self.run(name)
        if healthy:
            self.check(name, True)

    def begin(self, name: str, waiting: str = "") -> None:
        self.set(name, "Starting", "Starting service", "unknown")
        if waiting:
            self.set(name, "Waiting", waiting)

    def prepare(self, name: str) -> None:
        self.set(name, "Preparing", "Running pre state", "unknown")

    def run(self, name: str) -> None:
        self.prepare(name)
        self.set(name, "Preparing", "Creating service runner")
        service = self.all[name]
        service.last_message = "Unknown"
        self.set(name, "Running", RUNNING_MESSAGES.get(name, "Service started as goroutine"), "unknown")

    def stop(self, name: str) -> None:
        service = self.all.get(name)
        if service is None or service.state in ("Finished", "Failed", "Skipped"):
            return
        if service.state == "Running":
            self.leave(name, "Stopping", f"Sending SIGTERM to Exec({name})" if name in RUNNING_MESSAGES else "Service stopping")
        elif service.state == "Waiting" and any(state == "Running" for unused, state, unused2 in service.history):
            self.leave(name, "Stopping", "Aborting restart sequence")
        self.set(name, "Finished", "Service finished successfully")

    def leave(self, name: str, state: str, text: str) -> None:
        """Out of Running, or out of the wait for a restart."""
        self.all[name].last_message = "service not running"
        self.set(name, state, text, "unhealthy")
