# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A record is read again when one of its files may have changed, and not otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE
from ansible_collections.ichor.talos.plugins.module_utils._store import files
from ansible_collections.ichor.talos.plugins.module_utils._store.directory import DirectoryStore

from tests.unit._store.store_world import machine, made, opened


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    store = made(tmp_path / "ichor")
    record = store.create(machine(1))
    store.patch_status(record.ref, record.uid, lambda status: {**status, "stage": "running"})
    return store


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    read = files.read_entry

    def counted(path: Path, *more: int) -> bytes | None:
        found.append(path.name)
        return read(path, *more)

    monkeypatch.setattr(files, "read_entry", counted)
    return found


def aged(store: DirectoryStore, seconds: float = 100.0) -> tuple[Path, Path]:
    """Both files as if they had not been touched for a while."""
    paths = store.layout.spec(MACHINE, "m1"), store.layout.status(MACHINE, "m1")
    for path in paths:
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - seconds))
    return paths


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of the change of the inode cannot be set back, so what counts as lately is made nothing."""
    monkeypatch.setattr(files, "_LATELY", -3600.0)


@pytest.mark.usefixtures("settled")
def test_files_that_nobody_touched_are_read_once(store: DirectoryStore, reads: list[str]) -> None:
    first = store.get(MACHINE, "m1")
    count = len(reads)
    assert count and store.get(MACHINE, "m1") == first and store.list(MACHINE).records == (first,) and len(reads) == count


def test_files_that_changed_just_now_tell_nothing(store: DirectoryStore, reads: list[str]) -> None:
    store.get(MACHINE, "m1")
    count = len(reads)
    store.get(MACHINE, "m1")
    assert len(reads) == 2 * count


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", [
    pytest.param(lambda spec, state: spec.write_bytes(spec.read_bytes().replace(b"prod", b"test")), id="the spec in place, of equal length"),
    pytest.param(lambda spec, state: state.write_bytes(state.read_bytes().replace(b"running", b"booting")), id="the status in place, of equal length"),
    pytest.param(lambda spec, state: state.unlink(), id="the status is gone"),
    pytest.param(lambda spec, state: spec.unlink(), id="the spec is gone"),
    pytest.param(lambda spec, state: spec.write_text("{"), id="the spec is broken"),
])
def test_a_change_by_hand_is_seen(store: DirectoryStore, change: Callable[[Path, Path], object], tmp_path: Path) -> None:
    aged(store)
    assert store.get(MACHINE, "m1") is not None
    change(*aged(store, 0.0))
    fresh = opened(tmp_path / "ichor")
    for read in (lambda at: at.get(MACHINE, "m1"), lambda at: at.list(MACHINE)):
        assert told(read, store) == told(read, fresh)


def told(read: Callable[[DirectoryStore], object], store: DirectoryStore) -> object:
    try:
        return read(store)
    except TalosError as error:
        return str(error)


@pytest.mark.usefixtures("settled")
def test_what_the_store_writes_itself_is_seen(store: DirectoryStore) -> None:
    record = store.get(MACHINE, "m1")
    assert record is not None
    store.patch_status(record.ref, record.uid, lambda status: {**status, "stage": "booting"})
    after = store.get(MACHINE, "m1")
    assert after is not None and after.status["stage"] == "booting"
    store.update(after, {**after.spec, "hostname": "other"})
    changed = store.get(MACHINE, "m1")
    assert changed is not None and changed.spec["hostname"] == "other"
    store.delete(changed)
    assert store.get(MACHINE, "m1") is None
