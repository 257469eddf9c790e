# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of the store share: a clock that stands still, records, and a store in a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, Record
from ansible_collections.ichor.talos.plugins.module_utils._store.directory import DirectoryStore
from ansible_collections.ichor.talos.plugins.module_utils._store.holder_process import HolderProcess
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store

NOW = 1_790_000_000.0


class StillClock:
    """Moves only when a test moves it."""

    def __init__(self, now: float = NOW) -> None:
        self.utc = now
        self.ticks = 1000.0

    def now(self) -> float:
        return self.utc

    def monotonic(self) -> float:
        return self.ticks

    async def sleep(self, seconds: float) -> None:
        self.move(seconds)

    def move(self, seconds: float) -> None:
        self.utc += seconds
        self.ticks += seconds


class Counter:
    """Randomness that gives other bytes each time, and the same ones in each test."""

    def __init__(self, seed: str = "") -> None:
        self.seed = seed
        self.count = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return hashlib.sha256(f"{self.seed} {self.count}".encode()).digest()[:size]


def process(pid: int = 1, **changes: str) -> HolderProcess:
    values = {"start": "77", "namespace": "pid:[1]", "machine": "m", "boot": "b", **changes}
    return HolderProcess(pid, **values)


def opened(folder: Path, **options) -> DirectoryStore:
    options.setdefault("clock", StillClock())
    options.setdefault("randomness", Counter(str(folder)))
    return open_store(str(folder), **options)


def made(folder: Path, **options) -> DirectoryStore:
    """A new store, or the one that is there."""
    return opened(folder, create=True, **options)


def cluster(name: str = "prod", **spec) -> Record:
    return Record(CLUSTER, name, {"endpoint": "https://192.0.2.5:6443", **spec})


def machine(number: int = 1, status=None, labels=None, annotations=None, **spec) -> Record:
    values = {
        "clusterRef": "prod", "endpoint": f"192.0.2.{number}", "approvalState": "pending",
        "identity": {"uuid": f"4c4c4544-0042-3010-8047-{number:012x}", "serial": f"SN-{number}", "macs": [f"3c:ec:ef:00:00:{number:02x}"]},
    }
    values.update(spec)
    return Record(MACHINE, f"m{number}", {key: value for key, value in values.items() if value is not None},
                  status or {}, labels or {}, annotations or {})


APPROVAL = {"approvalState": "approved", "approvedBy": "ada", "approvedVia": "ada", "approvedAt": "2026-09-21T14:13:20Z", "role": "worker"}


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def reason(call, *arguments, **options) -> str:
    """The reason with which a call refuses."""
    with pytest.raises(TalosError) as caught:
        call(*arguments, **options)
    return caught.value.reason


def stage(value: str):
    """A change of a status that sets its stage."""
    return lambda status: {**status, "stage": value}
