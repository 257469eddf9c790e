# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only control plane loses its disk and comes back through a restore whose process is killed with SIGKILL at boundaries of what it does. The next
run finishes it: the keys and the revision of the snapshot, one accepted configuration, one begun etcd (design sections 12 and 17)."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import CALL, Boundary, read_trace
from tests.lab.control import Lab
from tests.lab.etcd_client import EtcdClient
from tests.lives.records import chosen
from tests.lives.running_cluster import QUICK, Cluster, writes
from tests.nursery.client import Ended, Nursery
from tests.parts.build import build
from tests.scenarios.playing import network_of

NETWORK = network_of(__name__)
#: How many of the boundaries are killed at, two of them at least: the first and the last.
KILLS = int(os.environ.get("ICHOR_TEST_KILLS", "4"))
SEND, RECOVER, BOOTSTRAP = "ApplyConfiguration", "EtcdRecover", "Bootstrap"
#: A send that was cut short counts as under way for 15 s, and a lock whose holder was killed as held for 4 s: the next run waits for that.
SHORT = {**QUICK, "apply": 10.0, "sending_fresh": 10.0, "lock_duration": 4.0}
EVERYTHING = base64.b64encode(b"\0").decode()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("restore")
    with (Lab.start({"nodes": {}}, speed=20.0, etcd=str(build("etcd-3.6")), etcd_restore=str(build("etcd-restore-3.6"))) as lab, Nursery() as nursery,
          chosen(folder / "ichor") as records):
        yield Cluster(lab, nursery, folder, NETWORK, planes=1, workers=0, kept_in=records).create()


def asked(cluster: Cluster, path: str, body: dict[str, str]) -> dict[str, Any]:
    """An answer of the etcd of the control plane itself."""
    client = EtcdClient.of_admin(f"{NETWORK}.1", Path(cluster.lab.etcd(node="cp-1")["pki"]))
    return dict(asyncio.run(client.call(path, body, seconds=60)))


def stored(cluster: Cluster) -> tuple[str, dict[str, str]]:
    """The revision, and every key with its value."""
    answer = asked(cluster, "kv/range", {"key": EVERYTHING, "range_end": EVERYTHING})
    return answer["header"]["revision"], {item["key"]: item.get("value", "") for item in answer.get("kvs", ())}


def restore(cluster: Cluster, place: Path, trace: Path, kill: Boundary | None = None) -> Ended:
    trace.unlink(missing_ok=True)
    told = {"trace": str(trace), "store": str(cluster.store), "kill": vars(kill) if kill else None}
    return cluster.nursery.run("etcd_restore", hook="tests.crash.boundaries:install", told=told, cluster="prod", machine=cluster.names["cp-1"],
                               path=str(place), confirm="prod", **{**cluster.options, "timing": SHORT})


def some_of(found: list[Boundary]) -> list[Boundary]:
    """Some of the sides of the calls that change the node, evenly spread. How often it is read in between is another number each time."""
    changing = [one for one in found if one.kind == CALL and one.what.endswith((f"/{SEND}", f"/{RECOVER}", f"/{BOOTSTRAP}"))]
    kills, last = min(KILLS, len(changing)), len(changing) - 1
    return [changing[last * number // (kills - 1)] for number in range(kills)]


def test_a_restore_that_is_killed_is_finished_by_the_next(cluster: Cluster, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    for number in range(20):
        asked(cluster, "kv/put", {"key": base64.b64encode(b"key-%d" % number).decode(), "value": base64.b64encode(b"value-%d" % number).decode()})
    backups = tmp_path / "backups"
    cluster.module("etcd_backup", cluster="prod", path=str(backups))
    before = stored(cluster)
    asked(cluster, "kv/put", {"key": base64.b64encode(b"later").decode(), "value": ""})

    cluster.wipe("cp-1")
    whole = restore(cluster, backups, tmp_path / "trace")
    assert whole.status == 0 and whole.result["changed"] and stored(cluster) == before, whole.output
    boundaries = read_trace(tmp_path / "trace")
    cluster.run()
    killed = 0
    for boundary in some_of(boundaries):
        cluster.wipe("cp-1")
        mark = cluster.lab.mark()
        first = restore(cluster, backups, tmp_path / "trace", boundary)
        assert first.killed, f"{boundary}: {first.output} {first.errors}"
        killed += 1
        last = restore(cluster, backups, tmp_path / "trace")
        assert last.status == 0 and not last.result.get("failed"), f"killed {boundary}: {last.output} {last.errors}"
        assert stored(cluster) == before, f"killed {boundary}"
        accepted = writes(cluster.lab, mark)
        assert (accepted.get(SEND), accepted.get(BOOTSTRAP)) == (1, 1), f"killed {boundary}: {accepted}"
        cluster.run()
        assert cluster.reasons() == {"cp-1": "Converged"}
    assert not restore(cluster, backups, tmp_path / "trace").result.get("changed"), "a restore beside the living control plane changes nothing"
    record_property("told", f"a restore: killed at {killed} of {len(boundaries)} boundaries, each finished by the next run")
