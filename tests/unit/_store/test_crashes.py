# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stores that are full, read-only, or whose writer dies at any point (design sections 2, law 8, and 4)."""

from __future__ import annotations

import errno
import os
import shutil

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Event, Ref
from ansible_collections.ichor.talos.plugins.module_utils._store import files

from tests.unit._store.store_world import APPROVAL, Counter, StillClock, machine, made, opened, snapshot

CALLS = ("open", "write", "fsync", "replace", "unlink", "fchmod", "mkdir")


class Killed(BaseException):
    """The process ends here: nothing that would tidy up runs either."""


class Faults:
    """Stands in for `os` inside of the store's file functions and ends or fails the run at the n-th call."""

    def __init__(self, at: int = -1, error: int | None = None, only: tuple[str, ...] = CALLS) -> None:
        self.at, self.error, self.only = at, error, only
        self.count = 0
        self.trace: list[str] = []
        self.dead = False

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*arguments, **options):
            if self.dead:
                raise Killed
            if name in self.only:
                self.trace.append(name)
                self.count += 1
                if self.count - 1 == self.at:
                    if self.error is None:
                        self.dead = True
                        if name == "write":
                            real(arguments[0], bytes(arguments[1])[:7])  # torn in the middle
                        raise Killed
                    raise OSError(self.error, os.strerror(self.error))
            return real(*arguments, **options)
        return call


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """fsync is called and counted; that it reaches the disk is the kernel's part."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def world(folder):
    """A store with an approved machine, a pending one and a lease."""
    store = made(folder)
    store.create(machine(1, {"stage": "running", "appliedConfigHash": "x"}, **APPROVAL))
    store.create(machine(2, {"stage": "maintenance"}))
    store.leases.acquire("held", "ada", "x", 60.0)
    store.record_event(Event(Ref(MACHINE, "m1"), "Normal", "NodeJoined", "before"))
    return store


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Such a store, made once; moved, so that copies of it are no copies of a store that is still there."""
    folder = tmp_path_factory.mktemp("template")
    world(folder / "made")
    return (folder / "made").rename(folder / "moved")


def stage(value):
    return lambda status: {**status, "stage": value}


def approve(store):
    read = store.get(MACHINE, "m2")
    store.update(read, {**read.spec, **APPROVAL})


def resolve(store):
    read = store.get(MACHINE, "m2")
    store.update(read, {**read.spec, "identity": {"serial": "other"}})


def delete(store):
    read = store.get(MACHINE, "m2")
    if read is not None:
        store.delete(read)


ACTIONS = {
    "create": lambda store: store.create(machine(3, {"stage": "maintenance"})),
    "approve": approve,
    "resolve an identity": resolve,
    "status": lambda store: store.patch_status(Ref(MACHINE, "m1"), store.get(MACHINE, "m1").uid, stage("booting")),
    "delete": delete,
    "event": lambda store: store.record_event(Event(Ref(MACHINE, "m1"), "Normal", "ConfigApplied", "after")),
    "lease": lambda store: store.leases.acquire("prod", "bob", "x", 60.0),
}


def view(folder):
    """What every later run reads: records without versions, events, leases."""
    store = opened(folder)
    listing = store.list(MACHINE)
    records = {record.name: (dict(record.spec), {key: value for key, value in record.status.items() if key != "recordUID"},
                             record.status.get("recordUID", record.uid) == record.uid, record.status_set_aside) for record in listing.records}
    return records, listing.broken, [event.message for event in store.events()], [store.leases.read(name) is not None for name in ("held", "prod")]


def run(folder, action, faults, monkeypatch):
    store = opened(folder, clock=StillClock(), randomness=Counter("run"))
    with monkeypatch.context() as patched:
        patched.setattr(files, "os", faults)
        try:
            ACTIONS[action](store)
        except (Killed, TalosError) as error:
            return error
    return None


def before_and_after(template, tmp_path, action, monkeypatch):
    """The two views between which a crash may leave the store, and the calls on the way."""
    shutil.copytree(template, tmp_path / "whole")
    before = view(tmp_path / "whole")
    faults = Faults()
    assert run(tmp_path / "whole", action, faults, monkeypatch) is None
    return before, view(tmp_path / "whole"), faults.trace


@pytest.mark.parametrize("action", ACTIONS)
def test_a_writer_killed_at_any_call_leaves_the_old_or_the_new(action, template, tmp_path, monkeypatch):
    before, after, trace = before_and_after(template, tmp_path, action, monkeypatch)
    assert before != after
    assert trace
    seen = set()
    for point in range(len(trace)):
        folder = tmp_path / f"at-{point}"
        shutil.copytree(template, folder)
        assert isinstance(run(folder, action, Faults(point), monkeypatch), Killed)
        found = view(folder)
        assert not found[1], "nothing is broken"
        assert found[0] in (before[0], after[0]) or action == "delete" and set(found[0]) == set(after[0])
        assert found[2] in (before[2], after[2])
        assert found[3] in (before[3], after[3])
        seen.add(found == after)
        again = run(folder, action, Faults(), monkeypatch)  # the next run does it, or finds it done
        assert again is None or again.reason in ("RecordExists", "RecordNotFound")
        later = view(folder)
        assert (later[0], later[3]) == (after[0], after[3])
        assert [name for name in snapshot(folder) if name.endswith(files.TEMPORARY)] == []
        shutil.rmtree(folder)
    assert False in seen


REASONS = (
    (errno.ENOSPC, "StoreFull"), (errno.EROFS, "StoreReadOnly"), (errno.EDQUOT, "StoreFull"), (errno.EACCES, "StoreReadOnly"), (errno.EIO, "StoreUnreachable"),
)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_refusal_of_the_system_at_any_call_is_told_and_harmless(action, template, tmp_path, monkeypatch):
    before, after, trace = before_and_after(template, tmp_path, action, monkeypatch)
    told = 0
    for point in range(len(trace)):
        folder = tmp_path / f"at-{point}"
        shutil.copytree(template, folder)
        error, reason = REASONS[point % len(REASONS)]
        caught = run(folder, action, Faults(point, error), monkeypatch)
        if caught is not None:
            told += 1
            assert caught.reason == reason
            assert str(folder) in caught.message
            assert caught.hint
        found = view(folder)
        assert not found[1]
        assert found[0] in (before[0], after[0]) or action == "delete" and set(found[0]) == set(after[0])
        assert [name for name in snapshot(folder) if name.endswith(files.TEMPORARY)] == []
        again = run(folder, action, Faults(), monkeypatch)
        assert again is None or again.reason in ("RecordExists", "RecordNotFound")
        assert view(folder)[0] == after[0]
        shutil.rmtree(folder)
    assert told > 1


def test_a_full_store_keeps_the_status_that_it_has(tmp_path, monkeypatch):
    store = world(tmp_path / "ichor")
    before = snapshot(tmp_path)
    monkeypatch.setattr(files, "os", Faults(0, errno.ENOSPC, only=("write",)))
    with pytest.raises(TalosError, match="m1.json cannot be written: the file system is full"):
        store.patch_status(Ref(MACHINE, "m1"), store.get(MACHINE, "m1").uid, stage("booting"))
    monkeypatch.setattr(files, "os", os)
    assert snapshot(tmp_path) == before


def test_a_read_only_store_is_read(tmp_path, monkeypatch):
    world(tmp_path / "ichor")
    monkeypatch.setattr(files, "os", Faults(0, errno.EROFS, only=("write", "mkdir")))
    assert [record.name for record in opened(tmp_path / "ichor").list(MACHINE).records] == ["m1", "m2"]


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    store = world(tmp_path / "ichor")
    path = tmp_path / "ichor" / "machines" / "m1.yaml"
    path.unlink()
    path.mkdir()
    with pytest.raises(TalosError, match="m1.yaml: it is a folder") as caught:
        store.get(MACHINE, "m1")
    assert caught.value.reason == "RecordBroken"


def test_a_file_broken_in_mid_run_is_not_written_over(tmp_path):
    store = world(tmp_path / "ichor")
    read = store.get(MACHINE, "m1")
    path = tmp_path / "ichor" / "machines" / "m1.yaml"
    path.write_text(path.read_text()[:60])
    torn = path.read_bytes()
    for call in (lambda: store.patch_status(read.ref, read.uid, stage("booting")), lambda: store.update(read, {**read.spec, "hostname": "a"})):
        with pytest.raises(TalosError, match="m1.yaml, line") as caught:
            call()
        assert caught.value.reason == "RecordBroken"
    assert path.read_bytes() == torn
