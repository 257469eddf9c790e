# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster with a real etcd in the lab, a real S3 server, and backups and restores of it by the operations themselves."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination, Keys
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Gate
from ansible_collections.ichor.talos.plugins.module_utils._operations import etcd_backup, etcd_restore
from tests.lab.etcd_client import EtcdClient, EtcdUnreachable
from tests.parts.build import build
from tests.unit._operations.converging_lab import LabCluster

KEYS = Keys("user", "a-secret-of-the-store")
EVERYTHING = base64.b64encode(b"\0").decode()


def agreed(plan: object) -> object:
    """The gate of a person who agrees."""
    return plan


@contextlib.contextmanager
def s3_server(folder: Path, port: int, bucket: str = "etcd") -> Iterator[Destination]:
    """A real server over a folder, with one bucket."""
    (folder / "s3" / bucket).mkdir(parents=True)
    command = [str(build("versitygw-1.8")), "--access", KEYS.access, "--secret", KEYS.secret, "--port", f"127.0.0.1:{port}", "posix", str(folder / "s3")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                asyncio.run(_connects(port))
                break
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        yield Destination(endpoint=f"http://127.0.0.1:{port}", bucket=bucket, prefix="prod/nightly")
    finally:
        process.terminate()
        process.wait()


async def _connects(port: int) -> None:
    dummy, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


class SavedCluster(LabCluster):
    """Its calls are those of a person who wants them done."""

    async def one(self, name: str = "cp1") -> None:
        """A single control plane with a real etcd."""
        self.change_cluster(controlPlane={"count": 1})
        await self.provision(name, 1, "controlplane", first=True)
        end = time.monotonic() + 60
        while True:  # a first control plane is ready before its etcd listens (Talos fact)
            try:
                await self.put(name, b"begun", b"")
                return
            except (EtcdUnreachable, FileNotFoundError):
                assert time.monotonic() < end
                await asyncio.sleep(0.05)

    def client(self, name: str) -> EtcdClient:
        return EtcdClient.of_admin(self.places[name].endpoint.host, Path(self.lab.etcd(node=self.places[name].node)["pki"]))

    async def put(self, name: str, key: bytes, value: bytes) -> None:
        await self.client(name).call("kv/put", {"key": base64.b64encode(key).decode(), "value": base64.b64encode(value).decode()})

    async def keys(self, name: str) -> tuple[str, dict[str, str]]:
        """The revision, and everything that is stored."""
        answer = await self.client(name).call("kv/range", {"key": EVERYTHING, "range_end": EVERYTHING}, seconds=60)
        return answer["header"]["revision"], {item["key"]: item.get("value", "") for item in answer.get("kvs", ())}

    async def back_up(self, place: Destination, *, gate: Gate = agreed, check: bool = False, **more: object) -> Outcome:  # type: ignore[assignment]
        ports = replace(self.ports(check), holder="run-1")
        try:
            request = etcd_backup.Request("prod", destination=place, keys=KEYS, allow_loopback=True, **more)  # type: ignore[arg-type]
            return await etcd_backup.run(request, ports, gate)
        finally:
            await ports.nodes.close()

    async def restore(self, place: Destination, machine: str = "cp1", *, confirm: str = "prod", check: bool = False, **more: object) -> Outcome:
        ports = self.ports(check)
        request = etcd_restore.Request("prod", machine, source=place, keys=KEYS, confirm=confirm, allow_loopback=True, **more)  # type: ignore[arg-type]
        try:
            return await etcd_restore.run(request, ports, lambda plan: replace(plan, steps=()) if check else plan)
        finally:
            await ports.nodes.close()

    def wipe(self, name: str) -> None:
        """Its disk is empty, and it boots into maintenance mode."""
        place = self.places[name]
        self.lab.wipe(node=place.node)
        self.lab.power(node=place.node, state="cycle")
        self.lab.wait(node=place.node, stage="maintenance")
