# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real processes that write to one store at once; none waits for a time (design section 4)."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Event, Ref
from ansible_collections.ichor.talos.plugins.module_utils._store import files
from ansible_collections.ichor.talos.plugins.module_utils._store.holder_process import this_process

from tests.unit._store.store_world import StillClock, machine, made, opened

SPAWN = multiprocessing.get_context("fork")
ROUNDS = 25
REF = Ref(MACHINE, "m1")


def adds(folder, gate, label):
    """Adds to one counter, appends events, and tries for one lease, ROUNDS times."""
    store = opened(folder, process=this_process(), randomness=os.urandom)
    uid = store.get(MACHINE, "m1").uid
    gate.wait()
    for number in range(ROUNDS):
        store.patch_status(REF, uid, lambda status: {**status, "count": status.get("count", 0) + 1})
        store.record_event(Event(REF, "Normal", "ConfigApplied", f"{label} {number}"))
        with contextlib.suppress(TalosError):
            view = store.leases.acquire("prod", label, "x", 60.0)
            inside = os.open(folder / "inside", os.O_CREAT | os.O_EXCL | os.O_WRONLY)  # fails when two hold the lock
            os.close(inside)
            os.unlink(folder / "inside")
            store.leases.release(view)


def updates(folder, gate, label, won):
    """Writes over the record that all have read; says whether it was let."""
    store = opened(folder)
    read = store.get(MACHINE, "m1")
    gate.wait()
    try:
        store.update(read, {**read.spec, "hostname": label})
        won.put(label)
    except TalosError as error:
        won.put(error.reason)


def run_all(target, arguments):
    children = [SPAWN.Process(target=target, args=line) for line in arguments]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    codes = [child.exitcode for child in children]
    for child in children:
        child.kill()
    return codes


def test_no_write_of_several_processes_is_lost(tmp_path):
    folder = tmp_path / "ichor"
    store = made(folder)
    store.create(machine(1, {"stage": "maintenance"}))
    gate = SPAWN.Barrier(4)
    assert run_all(adds, [(folder, gate, f"p{number}") for number in range(4)]) == [0] * 4
    found = opened(folder)
    assert found.get(MACHINE, "m1").status["count"] == 4 * ROUNDS
    assert sorted(event.message for event in found.events()) == sorted(f"p{label} {number}" for label in range(4) for number in range(ROUNDS))
    assert found.leases.read("prod") is None


def test_of_several_updates_over_one_read_one_wins(tmp_path):
    folder = tmp_path / "ichor"
    made(folder).create(machine(1))
    gate, won = SPAWN.Barrier(4), SPAWN.Queue()
    assert run_all(updates, [(folder, gate, f"p{number}", won) for number in range(4)]) == [0] * 4
    results = sorted(won.get(timeout=10) for _unused in range(4))
    assert results.count("RecordChanged") == 3
    assert opened(folder).get(MACHINE, "m1").spec["hostname"] == results[-1]


def test_of_several_that_make_the_store_all_get_the_same(tmp_path):
    folder = tmp_path / "ichor"
    gate = SPAWN.Barrier(4)

    def make():
        gate.wait()
        made(folder, randomness=os.urandom).leases.acquire(f"p{os.getpid()}", "x", "x", 60.0)

    assert run_all(make, [()] * 4) == [0] * 4
    assert len(list((folder / ".state" / "leases").iterdir())) == 4


def test_a_killed_holder_leaves_no_lock_and_no_lease(tmp_path):
    folder = tmp_path / "ichor"
    made(folder)
    ready, wait = SPAWN.Event(), SPAWN.Event()

    def hold():
        store = opened(folder, process=this_process(), randomness=os.urandom)
        store.leases.acquire("prod", "child", "x", 60.0)
        with store.writing():
            ready.set()
            wait.wait()

    child = SPAWN.Process(target=hold)
    child.start()
    assert ready.wait(30)
    store = opened(folder, process=this_process(), randomness=os.urandom, clock=StillClock())
    pauses = []
    stuck = opened(folder, lock_wait=5.0, clock=(clock := StillClock()), pause=lambda seconds: (pauses.append(seconds), clock.move(1)))
    with pytest.raises(TalosError, match="Another process has been writing to the store for more than 5 s") as caught:
        stuck.create(machine(1))
    assert caught.value.reason == "StoreUnreachable"
    assert len(pauses) == 5
    os.kill(child.pid, signal.SIGKILL)
    child.join(30)
    assert store.leases.acquire("prod", "parent", "x", 60.0).holder == "parent"


def test_the_lock_is_given_back_whatever_happens(tmp_path):
    lock = files.WriterLock(tmp_path / "lock", wait=0.0)
    with pytest.raises(ZeroDivisionError):
        with lock.held():
            with pytest.raises(TalosError):
                with lock.held():
                    pass
            raise ZeroDivisionError
    with lock.held():
        descriptor = os.open(tmp_path / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
