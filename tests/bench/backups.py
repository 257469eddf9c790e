# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of backups: the memory that a snapshot of a real etcd takes on its way to a folder or to a real S3 server, and back."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.control import Lab
from tests.lab.etcd_client import EtcdClient
from tests.lives.running_cluster import Cluster
from tests.nursery.client import Nursery
from tests.parts.build import build
from tests.unit._operations.saved_cluster import KEYS, s3_server

from .measure import Figure, run
from .nodes import MODULES

NETWORK, S3_PORT = "127.0.160", 7499
#: Values of a megabyte each: 200 of them make a database of as many.
PIECE, PIECES = 1_000_000, 200
BOUND = 100.0


def _client(lab: Lab) -> EtcdClient:
    return EtcdClient.of_admin(f"{NETWORK}.1", Path(lab.etcd(node="cp-1")["pki"]))


async def _fill(client: EtcdClient) -> None:
    for number in range(PIECES):
        body = {"key": base64.b64encode(b"%04d" % number).decode(), "value": base64.b64encode(os.urandom(PIECE)).decode()}
        await client.call("kv/put", body, seconds=60)


async def _counted(client: EtcdClient) -> int:
    every = base64.b64encode(b"\0").decode()
    return int((await client.call("kv/range", {"key": every, "range_end": every, "count_only": True}, seconds=60))["count"])


def _peak(cluster: Cluster, module: str, place: dict[str, str], **more: str) -> float:
    """Megabytes of the largest size of a module's process; it is none where nothing was done."""
    asked = {**cluster.options, "cluster": "prod", **place, **more}
    told: dict[str, Any] = run("subjects/fleet_module.py", MODULES + module, stdin=json.dumps(asked))
    if not told["changed"]:
        raise RuntimeError(f"{module}: {told['msg']}")
    return float(told["peak"]) / 1e6


def saving() -> list[Figure]:
    """Peak memory of a backup of 200 MB to a folder and to S3, and of the restore from there, against the bound itself."""
    with (Lab.start({"nodes": {}}, speed=20.0, etcd=str(build("etcd-3.6")), etcd_restore=str(build("etcd-restore-3.6"))) as lab, Nursery() as nursery,
          tempfile.TemporaryDirectory() as folder, s3_server(Path(folder), S3_PORT) as bucket):
        cluster = Cluster(lab, nursery, Path(folder), NETWORK, planes=1, workers=0).create()
        asyncio.run(_fill(_client(lab)))
        before = asyncio.run(_counted(_client(lab)))
        remote = {"s3_endpoint": bucket.endpoint, "s3_bucket": bucket.bucket, "s3_access_key": KEYS.access, "s3_secret_key": KEYS.secret}
        files = _peak(cluster, "etcd_backup", {"path": f"{folder}/backups"})
        objects = _peak(cluster, "etcd_backup", remote)
        cluster.wipe("cp-1")
        back = _peak(cluster, "etcd_restore", remote, machine=cluster.names["cp-1"], confirm="prod")
        if (after := asyncio.run(_counted(_client(lab)))) != before:
            raise RuntimeError(f"{after} keys of {before} came back")
    return [Figure("backup of 200 MB to a folder, peak memory", files, BOUND, 1.0, "MB"),
            Figure("backup of 200 MB to S3, peak memory", objects, BOUND, 1.0, "MB"),
            Figure("restore of 200 MB from S3, peak memory", back, BOUND, 1.0, "MB")]


FIGURES: dict[str, Callable[[], list[Figure]]] = {"backup": saving}
