# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory store with a cluster, its bundle and approved machines, and nodes in memory that run a configuration."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Endpoint, NodeFacts, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, CONFIG_PATCH, MACHINE, Json, Record
from ansible_collections.ichor.talos.plugins.module_utils._store.directory import DirectoryStore
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store
from tests.unit._operations import world as w

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


class Session:
    """A good authenticated read."""

    def __init__(self, endpoint: Endpoint, config: bytes, number: int, version: str) -> None:
        self.endpoint, self._config, self._number, self._version = endpoint, config, number, version

    async def facts(self) -> NodeFacts:
        return NodeFacts(self.endpoint, w.certificate("run"), w.identity(self._number), Present(StageReading("running", True)), talos_version=self._version)

    async def machine_config(self, persistent: bool = False) -> Present[bytes]:
        return Present(self._config)


@dataclass
class Nodes:
    """What runs where: (configuration, number of the board, Talos version) by address; others are silent. `open` counts sessions."""

    at: dict[str, tuple[bytes, int, str]] = field(default_factory=dict)
    open: int = 0
    most_open: int = 0

    @contextlib.asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[Session]:
        if endpoint.host not in self.at:
            raise TalosError("TimedOut", f"{endpoint} gives no answer.", "Look at it.")
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            yield Session(endpoint, *self.at[endpoint.host])
        finally:
            self.open -= 1

    @property
    def written(self) -> bool:
        return False

    def end_writes(self) -> None:
        return None

    async def close(self) -> None:
        return None


@dataclass
class World:
    """The store on disk and the nodes."""

    folder: Path
    clock: w.JumpingClock = field(default_factory=w.JumpingClock)
    nodes: Nodes = field(default_factory=Nodes)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock.time = 1_830_000_000.0  # the CAs of the bundle in the vectors are valid then
        self.store: DirectoryStore = open_store(str(self.folder / "ichor"), clock=self.clock, create=True)
        self.cluster = self.store.create(Record(CLUSTER, "prod", {
            "talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.9.9.9:6443", "secretsRef": {"name": "prod"},
            "controlPlane": {"count": 3}}))

    def put_bundle(self) -> Path:
        path = self.folder / "ichor" / "secrets" / "prod.yaml"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(VECTORS / "secrets.yaml", path)
        path.chmod(0o600)
        return path

    def machine(self, name: str, number: int, role: str = "worker", *, joined: bool = True, **spec: Json) -> Record:
        record = w.machine_record(name, number, role, install={"disk": "/dev/sda"}, **spec)
        made = self.store.create(replace(record, uid="", resource_version="", status_version="", status={}))
        if not joined:
            return made
        return self.store.patch_status(made.ref, made.uid, lambda status: {**status, "configStoredAt": "2026-01-01T00:00:00Z", "appliedConfigHash": "a"})

    def patch(self, name: str, documents: list[Json], **spec: Json) -> Record:
        return self.store.create(Record(CONFIG_PATCH, name, {"clusterRef": "prod", "layer": "cluster", "documents": documents, **spec}))

    def ports(self, check: bool = False) -> Ports:
        return Ports(self.nodes, self.store, self.clock, self.lines.append, Actor("ann", "login"), check, "run-1",  # type: ignore[arg-type]
                     lambda cluster, bundle: Credentials("ca", "certificate", "key", "test"))

    def machines(self) -> tuple[Record, ...]:
        return self.store.list(MACHINE).records
