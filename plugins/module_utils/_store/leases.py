# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks of a directory store: one file each, changed under the writers' lock (design section 13).

Whether a lease has run out is judged by this reader's monotonic clock since it last saw the lease change; the times in
the file are for people.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from .._model.errors import TalosError
from .._model.plain_files import NotJson, read_json
from .._model.ports import Clock, LeaseView
from .._model.records import Json, text_at
from . import files, holder_process
from .holder_process import HolderProcess
from .layout import Layout, mark, read_id
from .lease_watch import LeaseWatch, lock_held, lock_lost


@dataclasses.dataclass(frozen=True)
class _Lease:
    """A lease's file: what is shown of it, and the process that holds it."""

    view: LeaseView
    process: HolderProcess | None


class DirectoryLeases:
    """`ports.Leases` in the state folder. `writing` holds the writers' lock; `randomness` gives that many bytes."""

    def __init__(self, layout: Layout, writing: Callable[[], AbstractContextManager[None]], clock: Clock, *, process: HolderProcess,
                 randomness: Callable[[int], bytes], renewal: float) -> None:
        self._layout = layout
        self._writing = writing
        self._clock = clock
        self._process = process
        self._randomness = randomness
        self._renewal = renewal
        self._watch = LeaseWatch(clock.monotonic)

    def read(self, name: str) -> LeaseView | None:
        """The lease as it is, or None where there is none; looking at it starts this reader's watch of it."""
        lease = self._load(name)
        if lease is None:
            return None
        self._watch.unchanged_for(lease.view)
        return lease.view

    def acquire(self, name: str, holder: str, purpose: str, duration: float, *, stopped: bool = False) -> LeaseView:
        """Take a free, own, expired or provably abandoned lease. With `stopped`, the caller knows that the holder has stopped:
        then one renewal interval without a change is enough. Raises `LockHeld` or `NoLock`."""
        with self._held():
            lease = self._load(name)
            if lease is not None and lease.view.holder and not self._is_free(lease, holder, stopped):
                raise lock_held(lease.view)
            now = self._clock.now()
            own = lease is not None and lease.view.holder == holder and lease.process == self._process
            acquired = lease.view.acquired_at if lease is not None and own else now
            return self._store(LeaseView(name, holder, purpose, acquired, now, duration, ""))

    def renew(self, lease: LeaseView) -> LeaseView:
        """Renew what is still held; the time of acquiring stays. Raises `LockHeld` when it was lost, `NoLock`."""
        with self._held():
            now = self._load(lease.name)
            if now is None or now.view.version != lease.version:
                if now is not None and now.view.holder:
                    raise lock_held(now.view)
                raise lock_lost(lease.name)
            return self._store(dataclasses.replace(lease, renewed_at=self._clock.now()))

    def release(self, lease: LeaseView) -> None:
        """Give back what is still held. Never raises: what cannot be given back runs out, or is seen to be abandoned."""
        with contextlib.suppress(TalosError, OSError):
            with self._writing():
                now = self._load(lease.name)
                if now is not None and now.view.version == lease.version:
                    files.remove(self._layout.lease(lease.name))

    def no_lock(self) -> str:
        """Why this state folder does not lock the tree, or ''."""
        try:
            refuse_no_lock(self._layout)
        except TalosError as error:
            if error.reason != "NoLock":
                raise
            return error.message
        return ""

    def take_over(self) -> None:
        """Make this state folder the one that locks the tree. The tree's id changes, so that every other folder of the same
        tree loses its lock as soon as it sees the tree."""
        with self._writing():
            mark(self._layout, self._randomness)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        refuse_no_lock(self._layout)
        with self._writing():
            refuse_no_lock(self._layout)
            yield

    def _is_free(self, lease: _Lease, holder: str, stopped: bool) -> bool:
        view, process = lease.view, lease.process
        if process == self._process and view.holder == holder:
            return True
        if process is not None and process != self._process and holder_process.provably_gone(process, self._process):
            return True
        return self._watch.is_over(view, stopped=stopped, renewal=self._renewal)

    def _load(self, name: str) -> _Lease | None:
        path = self._layout.lease(name)
        content = files.read_bytes(path)
        if content is None:
            return None
        try:
            data = read_json(content)
        except NotJson:
            data = None
        if not isinstance(data, dict) or not isinstance(data.get("version"), str):
            raise TalosError("RecordBroken", f"The lease {path} is not what this product writes.",
                             "Make sure that no run is under way, then remove that file.")
        view = LeaseView(name, text_at(data, "holder"), text_at(data, "purpose"), _number(data, "acquiredAt"), _number(data, "renewedAt"),
                         _number(data, "duration"), text_at(data, "version"))
        return _Lease(view, holder_process.of_json(data.get("process")))

    def _store(self, view: LeaseView) -> LeaseView:
        view = dataclasses.replace(view, version=self._randomness(16).hex())
        path = self._layout.lease(view.name)
        data: dict[str, Json] = {
            "name": view.name, "holder": view.holder, "purpose": view.purpose, "acquiredAt": view.acquired_at, "renewedAt": view.renewed_at,
            "duration": view.duration, "version": view.version, "process": self._process.as_json(),
        }
        files.make_folder(path.parent)
        files.write_atomically(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))
        self._watch.unchanged_for(view)
        return view


def _number(data: dict[str, Json], key: str) -> float:
    found = data.get(key)
    return float(found) if isinstance(found, (int, float)) else 0.0


def refuse_no_lock(layout: Layout) -> None:
    """Refuse where this state folder is not the one that locks the tree. Raises `NoLock`."""
    tree, state = read_id(layout.marker), read_id(layout.state_marker)
    hint = "Make sure that no other run uses this tree, then take the store over with talos_cluster (take_over: true)."
    if not tree:
        raise TalosError("NoLock", f"The tree {layout.tree} carries no store id, so nothing can be locked.", hint)
    if not state:
        raise TalosError("NoLock", f"The state folder {layout.state} has never locked the tree {layout.tree}: it is new, or the tree was cloned.", hint)
    if tree != state:
        raise TalosError("NoLock", f"The state folder {layout.state} belongs to another store than the tree {layout.tree}, or somebody took the tree "
                                   "over.", hint)
    original = _original(layout)
    if original is not None:
        raise TalosError("NoLock", f"The store {layout.tree} is a copy of {original}, which is still there; two folders cannot share a lock.", hint)


def _original(layout: Layout) -> Path | None:
    """The tree that this one was copied from, state folder and all, where it is still the same store. Trees that are given one and the same state
    folder, as the clones of a CI are, share its lock."""
    try:
        data = read_json(files.read_bytes(layout.state_marker) or b"null")
    except NotJson:
        return None
    known, state, store_id = text_at(data, "tree"), text_at(data, "state"), text_at(data, "id")
    if not _is_another(known, layout.marker, store_id) or state and not _is_another(state, layout.state_marker, store_id):
        return None
    return Path(known)


def _is_another(folder: str, marker: Path, store_id: str) -> bool:
    """Whether that folder is there, is not the one of our own marker, and has a marker of the same store."""
    if not os.path.isabs(folder):
        return False
    try:
        return not os.path.samefile(folder, marker.parent) and read_id(Path(folder) / marker.name) == store_id
    except OSError:
        return False
