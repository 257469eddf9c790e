# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks of a directory store (design sections 4 and 13)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._store import holder_process
from ansible_collections.ichor.talos.plugins.module_utils._store.holder_process import of_json, provably_gone, this_process

from tests.unit._store.store_world import NOW, Counter, StillClock, machine, made, opened, process, snapshot


class Readers:
    """Several runs on one store, each with its own process and clock."""

    def __init__(self, tmp_path):
        self.folder = tmp_path / "ichor"
        made(self.folder)
        self.gone = set()

    def run(self, pid, **changes):
        store = opened(self.folder, process=process(pid, **changes), clock=StillClock(), randomness=Counter(str(pid)), renewal=20.0)
        return store.leases, store._clock


@pytest.fixture
def readers(tmp_path, monkeypatch):
    found = Readers(tmp_path)
    monkeypatch.setattr(holder_process, "provably_gone", lambda holder, here: holder.pid in found.gone)
    return found


def held(call, *arguments, **options):
    with pytest.raises(TalosError) as caught:
        call(*arguments, **options)
    assert caught.value.reason == "LockHeld"
    return caught.value.text


def test_a_lease_says_who_since_when_and_for_what(readers):
    leases, _unused = readers.run(1)
    assert leases.read("prod") is None
    view = leases.acquire("prod", "ada@laptop", "the send to m1", 60.0)
    assert (view.holder, view.purpose, view.duration) == ("ada@laptop", "the send to m1", 60.0)
    assert view.acquired_at == view.renewed_at == NOW
    other, _unused = readers.run(2)
    assert other.read("prod") == view
    assert held(other.acquire, "prod", "bob", "a reset", 60.0) == (
        "The lock prod is held by ada@laptop since 2026-09-21T14:13:20Z, for the send to m1. "
        "Wait until it is released; a holder that is gone loses it 60 s after its last renewal.")
    assert other.acquire("lab", "bob", "a reset", 60.0).name == "lab"


def test_renewal_moves_the_renewal_only(readers):
    leases, clock = readers.run(1)
    view = leases.acquire("prod", "ada", "x", 60.0)
    clock.move(20)
    renewed = leases.renew(view)
    assert (renewed.acquired_at, renewed.renewed_at) == (view.acquired_at, view.acquired_at + 20)
    assert renewed.version != view.version
    assert "lost" in held(leases.renew, replace(renewed, name="other"))
    assert held(leases.renew, view)  # an older one than is held


def test_a_lease_runs_out_by_the_readers_own_clock_since_it_last_saw_it_change(readers):
    first, first_clock = readers.run(1)
    view = first.acquire("prod", "ada", "x", 60.0)
    second, clock = readers.run(2)
    clock.move(1_000_000)  # its wall clock is far ahead: that proves nothing
    held(second.acquire, "prod", "bob", "y", 60.0)
    clock.move(59)
    held(second.acquire, "prod", "bob", "y", 60.0)
    first_clock.move(-500_000)  # and the holder's runs backwards
    view = first.renew(view)
    clock.move(59)
    held(second.acquire, "prod", "bob", "y", 60.0)
    clock.move(60)
    assert second.acquire("prod", "bob", "y", 60.0).holder == "bob"
    assert "held by bob" in held(first.renew, view)


def test_a_new_reader_waits_the_whole_duration(readers):
    first, _unused = readers.run(1)
    first.acquire("prod", "ada", "x", 60.0)
    for pid in (2, 3):
        reader, clock = readers.run(pid)
        reader.read("prod")
        clock.move(59.9)
        held(reader.acquire, "prod", "bob", "y", 60.0)


def test_a_holder_that_is_provably_gone_frees_it_at_once(readers):
    first, _unused = readers.run(1)
    first.acquire("prod", "ada", "x", 60.0)
    second, _unused = readers.run(2)
    held(second.acquire, "prod", "bob", "y", 60.0)
    readers.gone.add(1)
    assert second.acquire("prod", "bob", "y", 60.0).holder == "bob"


def test_a_holder_that_has_stopped_loses_it_after_one_renewal_without_change(readers):
    first, _unused = readers.run(1)
    view = first.acquire("prod", "machine m1", "the send", 60.0)
    second, clock = readers.run(2)
    held(second.acquire, "prod", "bob", "y", 60.0, stopped=True)
    clock.move(19)
    held(second.acquire, "prod", "bob", "y", 60.0, stopped=True)
    first.renew(view)
    clock.move(19)
    held(second.acquire, "prod", "bob", "y", 60.0, stopped=True)
    clock.move(20)
    held(second.acquire, "prod", "bob", "y", 60.0)
    assert second.acquire("prod", "bob", "y", 60.0, stopped=True).holder == "bob"


def test_taking_what_is_ones_own_keeps_the_time_of_acquiring(readers):
    leases, clock = readers.run(1)
    view = leases.acquire("prod", "ada", "x", 60.0)
    clock.move(5)
    again = leases.acquire("prod", "ada", "x", 60.0)
    assert again.acquired_at == view.acquired_at
    held(leases.acquire, "prod", "another part of this process", "x", 60.0)
    held(readers.run(2)[0].acquire, "prod", "ada", "x", 60.0)  # the same words from another process


def test_release_gives_back_and_never_raises(readers):
    leases, _unused = readers.run(1)
    view = leases.acquire("prod", "ada", "x", 60.0)
    newer = leases.renew(view)
    leases.release(view)
    assert leases.read("prod") == newer
    leases.release(newer)
    assert leases.read("prod") is None
    leases.release(newer)
    view = leases.acquire("prod", "ada", "x", 60.0)
    shutil.rmtree(readers.folder)
    leases.release(view)


def test_a_cluster_id_can_name_a_lease(readers):
    leases, _unused = readers.run(1)
    name = "../../x/" + "Zk+/" * 20 + "=="
    view = leases.acquire(name, "ada", "x", 60.0)
    assert leases.read(name) == view
    assert all(path.startswith(".state/leases/=") for path in snapshot(readers.folder) if "leases" in path)


def test_a_broken_lease_is_told_and_not_taken(readers):
    leases, _unused = readers.run(1)
    leases.acquire("prod", "ada", "x", 60.0)
    path = readers.folder / ".state" / "leases" / "prod.json"
    for text in ("", "{", "[]", "{}"):
        path.write_text(text)
        with pytest.raises(TalosError, match="prod.json is not what this product writes") as caught:
            leases.acquire("prod", "ada", "x", 60.0)
        assert caught.value.reason == "RecordBroken"


# One tree, one state folder.


def no_lock(store):
    with pytest.raises(TalosError) as caught:
        store.leases.acquire("prod", "ada", "x", 60.0)
    assert caught.value.reason == "NoLock"
    assert "take_over" in caught.value.hint
    return caught.value.message


def test_two_state_folders_of_one_tree(tmp_path):
    first = made(tmp_path / "ichor", state_path=str(tmp_path / "one"))
    second = opened(tmp_path / "ichor", state_path=str(tmp_path / "two"), randomness=Counter("two"))
    first.leases.acquire("prod", "ada", "x", 60.0)
    assert "has never locked" in no_lock(second)
    second.create(machine(1, {"stage": "maintenance"}))  # records can be written; only the lock is refused
    assert "has never locked" in no_lock(second)
    second.leases.take_over()
    second.leases.acquire("prod", "bob", "x", 60.0)
    assert "belongs to another store" in no_lock(first)


def test_a_clone_has_no_lock_until_a_person_takes_over(tmp_path):
    original = made(tmp_path / "ichor")
    shutil.copytree(tmp_path / "ichor", tmp_path / "clone", ignore=shutil.ignore_patterns(".state"))
    clone = opened(tmp_path / "clone", randomness=Counter("clone"))
    assert "has never locked" in no_lock(clone)
    view = original.leases.acquire("prod", "ada", "x", 60.0)
    before = clone.layout.marker.read_bytes()
    clone.leases.take_over()
    clone.leases.acquire("prod", "bob", "x", 60.0)
    (tmp_path / "ichor" / ".ichor-store").write_bytes((tmp_path / "clone" / ".ichor-store").read_bytes())  # git pull
    assert before != clone.layout.marker.read_bytes()
    no_lock(original)
    with pytest.raises(TalosError, match="NoLock"):
        original.leases.renew(view)
    original.leases.release(view)


def test_a_copy_with_its_state_has_no_lock_beside_the_original_and_a_moved_one_has(tmp_path):
    made(tmp_path / "ichor")
    shutil.copytree(tmp_path / "ichor", tmp_path / "copy")
    copy = opened(tmp_path / "copy", randomness=Counter("copy"))
    assert f"is a copy of {tmp_path / 'ichor'}" in no_lock(copy)
    (tmp_path / "link").symlink_to(tmp_path / "ichor")
    opened(tmp_path / "link").leases.acquire("prod", "ada", "x", 60.0)
    shutil.rmtree(tmp_path / "ichor")
    copy.leases.acquire("prod", "ada", "x", 60.0)


def test_clones_with_one_state_folder_share_its_lock(tmp_path):
    made(tmp_path / "ichor", state_path=str(tmp_path / "state"))
    shutil.copytree(tmp_path / "ichor", tmp_path / "clone")
    clone = opened(tmp_path / "clone", state_path=str(tmp_path / "state"))
    view = clone.leases.acquire("prod", "ada", "x", 60.0)
    with pytest.raises(TalosError, match="LockHeld"):
        opened(tmp_path / "ichor", state_path=str(tmp_path / "state"), randomness=Counter("other")).leases.acquire("prod", "bob", "x", 60.0)
    clone.leases.release(view)
    # A copy of the state folder is another lock, as long as the first one is there.
    shutil.copytree(tmp_path / "state", tmp_path / "other")
    assert f"is a copy of {tmp_path / 'ichor'}" in no_lock(opened(tmp_path / "clone", state_path=str(tmp_path / "other")))
    shutil.rmtree(tmp_path / "state")
    opened(tmp_path / "clone", state_path=str(tmp_path / "other")).leases.acquire("prod", "ada", "x", 60.0)


@pytest.mark.parametrize("damage", [
    lambda folder: (folder / ".ichor-store").unlink(), lambda folder: (folder / ".ichor-store").write_text("{"),
    lambda folder: (folder / ".state" / "store.json").unlink(), lambda folder: (folder / ".state" / "store.json").write_text(""),
    lambda folder: (folder / ".ichor-store").write_text('{"id": 5}'),
])
def test_a_missing_or_broken_id_is_no_lock(tmp_path, damage):
    store = made(tmp_path / "ichor")
    store.create(machine(1))
    damage(tmp_path / "ichor")
    no_lock(opened(tmp_path / "ichor"))
    store.leases.take_over()
    store.leases.acquire("prod", "ada", "x", 60.0)


# Processes.


def test_this_process_is_not_gone_and_is_read_back():
    here = this_process()
    assert of_json(here.as_json()) == here
    assert here.pid == os.getpid()
    assert not provably_gone(here, here)


def test_a_process_that_ended_is_gone():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    here = this_process()
    holder = replace(here, pid=child.pid, start="")
    try:
        assert not provably_gone(holder, here)
        assert provably_gone(replace(holder, start="1"), here)  # the number was given to another process since
        for other in ({"boot": "b"}, {"machine": "m"}, {"namespace": "n"}):
            assert not provably_gone(replace(holder, start="1", **other), here)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert provably_gone(holder, here)  # dead, and not yet buried by its parent
    finally:
        child.kill()
        child.communicate()
    assert provably_gone(holder, here)


def test_nothing_is_proven_where_the_kernel_does_not_say():
    holder = process(2**22 + 1, boot="", namespace="", machine="")
    assert not provably_gone(holder, process(1, boot="", namespace="", machine=""))


@pytest.mark.parametrize("data", [None, {}, {"pid": 0}, {"pid": -1}, {"pid": True}, {"pid": "1"}, []])
def test_a_lease_without_a_process(data):
    assert of_json(data) is None
