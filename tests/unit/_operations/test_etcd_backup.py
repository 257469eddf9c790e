# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A backup as it runs: checked before it counts, nothing left of one that is disturbed, once for each due time."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._controller import backing_up
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.backups import Destination
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import Identity
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import seconds_of
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdStatus
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Plan
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import BACKUP, CLUSTER, MACHINE, Record, condition_of
from ansible_collections.ichor.talos.plugins.module_utils._model.timing import Timing
from ansible_collections.ichor.talos.plugins.module_utils._operations import etcd_backup
from ansible_collections.ichor.talos.plugins.module_utils._operations.provisioning_reads import Surroundings
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store

NOW = seconds_of("2026-11-30T06:55:30Z") or 0.0
IDENTITY = Identity("a1b2c3d4-0001-4000-8000-000000000001", "SN-0001-A", ("3c:ec:ef:00:00:01",))


def database(pages: int = 80) -> bytes:
    body = os.urandom(512 * pages)
    return body + hashlib.sha256(body).digest()


@dataclass
class Clock:
    """Time stands still unless a test moves it: whoever waits for a lock waits until it is free."""

    at: float = NOW

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.001)


@dataclass
class Node:
    """A control plane whose stream may be disturbed: `breaks` at which piece, `raises` what."""

    data: bytes = field(default_factory=database)
    breaks: int = -1
    raises: BaseException | None = None
    streams: int = 0

    async def identity(self) -> Identity:
        return IDENTITY

    async def etcd_status(self) -> EtcdStatus:
        return EtcdStatus("1", "1", False, 77, len(self.data), ())

    async def etcd_snapshot(self) -> AsyncIterator[bytes]:
        self.streams += 1
        for number, start in enumerate(range(0, len(self.data), 4096)):
            if number == self.breaks and self.raises is not None:
                raise self.raises
            yield self.data[start:start + 4096]

    @asynccontextmanager
    async def authenticated(self, endpoint: object, credentials: object) -> AsyncIterator[Any]:
        yield self


def request(folder: Path, **more: Any) -> etcd_backup.Request:
    return etcd_backup.Request("prod", address=parse_endpoint("192.0.2.1"), destination=Destination(path=str(folder)), **more)


def ports(node: Node, store: Any = None, clock: Clock | None = None, check: bool = False) -> Ports:
    return Ports(node, store, clock or Clock(), lambda line: None, Actor("ann", "login"), check, "run-1", lambda cluster, bundle: object())  # type: ignore


def back_up(node: Node, folder: Path, check: bool = False, **more: Any) -> Outcome:
    return asyncio.run(etcd_backup.run(request(folder, **more), ports(node, check=check), lambda plan: Plan() if check else plan))


def test_a_backup_is_what_the_node_sent(tmp_path: Path) -> None:
    node = Node()
    outcome = back_up(node, tmp_path / "b")
    (path,) = (tmp_path / "b").iterdir()
    assert path.read_bytes() == node.data and outcome.extra["backup"]["raft_index"] == 77  # type: ignore[index,call-overload]
    assert outcome.extra["backup"]["sha256"] == hashlib.sha256(node.data).hexdigest()  # type: ignore[index,call-overload]
    assert list(outcome.executed) == [step.id for step in outcome.plan.steps] and path.name == outcome.extra["backup"]["name"]  # type: ignore


def test_check_mode_plans_the_same_and_writes_nothing(tmp_path: Path) -> None:
    node = Node()
    planned = back_up(node, tmp_path / "b", check=True)
    assert not (tmp_path / "b").exists() and not node.streams
    assert planned.plan.id == back_up(node, tmp_path / "b").plan.id


class Large(Node):
    """200 MB of a database that nobody holds as a whole."""

    async def etcd_snapshot(self) -> AsyncIterator[bytes]:
        piece, seen = os.urandom(1 << 18), hashlib.sha256()
        for unused in range(800):
            seen.update(piece)
            yield piece
        yield seen.digest()


def test_two_hundred_megabytes_pass_in_little_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        outcome = back_up(Large(), tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.extra["backup"]["size"] == 800 * (1 << 18) + 32 and peak < 20_000_000  # type: ignore[index,call-overload]


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data[:-32], lambda data: data[:4096], lambda data: b"", lambda data: b"x" + data[1:],
                                    lambda data: data[:-1] + bytes((data[-1] ^ 1,)), lambda data: data[:512 * 40] + data[512 * 41:]])
def test_what_is_not_whole_is_not_kept(tmp_path: Path, change: Any) -> None:
    outcome = back_up(Node(change(database())), tmp_path)
    assert outcome.refused and outcome.reason == "SnapshotInvalid" and not outcome.executed and not list(tmp_path.iterdir())


@pytest.mark.parametrize("piece", range(0, 11, 2))
def test_a_stream_that_breaks_at_any_point_leaves_nothing(tmp_path: Path, piece: int) -> None:
    broken = back_up(Node(breaks=piece, raises=TalosError("ConnectionLost", "gone")), tmp_path)
    assert broken.reason == "ConnectionLost" and not list(tmp_path.iterdir())
    with pytest.raises(asyncio.CancelledError):
        back_up(Node(breaks=piece, raises=asyncio.CancelledError()), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_oldest_go_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "by-hand.snapshot").write_bytes(b"x")
    clock, names = Clock(), []
    for unused in range(4):
        clock.at += 60
        made = asyncio.run(etcd_backup.run(request(tmp_path, keep=2), ports(Node(), clock=clock), lambda plan: plan))
        names.append(made.extra["backup"]["name"])  # type: ignore[index,call-overload]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["by-hand.snapshot", *names[2:]])  # type: ignore[type-var]
    assert made.extra["deleted"] == [names[1]]


def scheduled(tmp_path: Path) -> tuple[Any, Clock]:
    clock = Clock()
    store = open_store(str(tmp_path / "ichor"), clock=clock, create=True)
    store.create(Record(CLUSTER, "prod", {"talosVersion": "v1.13.9", "kubernetesVersion": "v1.35.0", "endpoint": "https://10.0.0.10:6443",
                                          "secretsRef": {"name": "prod"}, "controlPlane": {"count": 1}}))
    made = store.create(Record(MACHINE, "cp1", {
        "clusterRef": "prod", "identity": {"uuid": IDENTITY.uuid, "serial": IDENTITY.serial, "macs": list(IDENTITY.macs)}, "endpoint": "10.0.0.11",
        "approvalState": "approved", "approvedBy": "ann", "approvedVia": "login", "approvedAt": "2026-01-01T00:00:00Z", "role": "controlplane"}))
    store.patch_status(made.ref, made.uid, lambda status: {**status, "configStoredAt": "2026-01-01T00:00:00Z", "storedConfigHash": "a"})
    store.create(Record(BACKUP, "nightly", {"clusterRef": "prod", "destination": {"file": {"path": str(tmp_path / "b")}}, "schedule": "0 3 * * *", "keep": 2}))
    return store, clock


def subject(around: Surroundings) -> tuple[str, ...]:
    """One look, and what it calls for done."""
    async def turn() -> tuple[str, ...]:
        found = await backing_up.look(around, "backup nightly")
        steps = frozenset(step.id for step in found.plan.steps)
        return await backing_up.act(around, "backup nightly", steps) if steps else ()

    return asyncio.run(turn())


def test_a_record_is_taken_when_it_is_due_and_not_again(tmp_path: Path) -> None:
    store, clock = scheduled(tmp_path)
    node = Node()
    around = Surroundings(ports(node, store, clock), Timing())
    assert subject(around) and not subject(around) and node.streams == 1
    clock.at += 3 * 86400
    assert subject(around) and not subject(around) and node.streams == 2
    record = store.get(BACKUP, "nightly")
    assert len(record.status["backups"]) == 2 and record.status["backups"][0]["raftIndex"] == 77
    ready = condition_of(record, "Ready")
    assert ready is not None and (ready.status, ready.reason) == ("True", "Converged") and not store.leases.read("backup.nightly")


def test_two_controllers_that_look_at_once_take_one(tmp_path: Path) -> None:
    store, clock = scheduled(tmp_path)
    node = Node()
    one, two = (Surroundings(replace(ports(node, store, clock), holder=holder), Timing()) for holder in ("run-1", "run-2"))

    async def both() -> None:
        looks = [await backing_up.look(around, "backup nightly") for around in (one, two)]
        granted = [frozenset(step.id for step in found.plan.steps) for found in looks]
        assert granted[0] and granted[0] == granted[1]
        await asyncio.gather(*(backing_up.act(around, "backup nightly", steps) for around, steps in zip((one, two), granted)))

    asyncio.run(both())
    assert node.streams == 1 and len(list((tmp_path / "b").iterdir())) == 1


def test_a_backup_that_another_run_takes_at_this_moment_is_no_failure(tmp_path: Path) -> None:
    store, clock = scheduled(tmp_path)
    node = Node()
    lease = store.leases.acquire("backup.nightly", "another run", "backup nightly", 60.0)
    around = Surroundings(ports(node, store, clock), Timing(lock_wait=0.0))
    assert subject(around) == () and not node.streams
    assert condition_of(store.get(BACKUP, "nightly"), "Ready") is None
    store.leases.release(lease)
    assert subject(around)


def test_an_attempt_that_fails_is_told_by_the_record(tmp_path: Path) -> None:
    store, clock = scheduled(tmp_path)
    around = Surroundings(ports(Node(database()[:-1]), store, clock), Timing())
    with pytest.raises(TalosError):
        subject(around)
    ready = condition_of(store.get(BACKUP, "nightly"), "Ready")
    assert ready is not None and (ready.status, ready.reason) == ("False", "SnapshotInvalid") and not list((tmp_path / "b").iterdir())
