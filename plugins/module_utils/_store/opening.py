# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Opens and creates a directory store (design section 4)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from .._model.errors import TalosError
from .._model.ports import Clock
from .._model.timing import Timing
from . import bundle, files
from .directory import DirectoryStore
from .files import WriterLock
from .holder_process import HolderProcess, this_process
from .layout import STATE, Layout, mark, note_to_git
from .leases import DirectoryLeases


def open_store(path: str, state_path: str = "", *, clock: Clock, create: bool = False, check: bool = False, decrypt: bundle.Decrypt | None = None,
               renewal: float = Timing.lock_renewal, lock_wait: float = 10.0, process: HolderProcess | None = None,
               randomness: Callable[[int], bytes] = os.urandom, pause: Callable[[float], None] = time.sleep) -> DirectoryStore:
    """The store in the folder `path`, its state in `state_path` ('' is `.state` in it).

    A store that does not exist is `StoreMissing`. With `create` it is made; with `check` too, nothing is written and the
    store that would be made is an empty one. `decrypt` gives the clear text of a vaulted file by its path, `renewal` is
    the interval at which holders renew leases, `lock_wait` how long another writer is waited for, in seconds.
    """
    tree = Path(os.path.abspath(os.path.expanduser(path)))
    state = Path(os.path.abspath(os.path.expanduser(state_path))) if state_path else tree / STATE
    layout = Layout(tree, state)
    lock = WriterLock(layout.lock, wait=lock_wait, pause=pause, monotonic=clock.monotonic)
    if not layout.exists():
        if not create:
            raise TalosError("StoreMissing", f"There is no store in {tree}.",
                             "Create it with talos_cluster, or set store_path to the folder that holds clusters/ and machines/.")
        if not check:
            _create(layout, lock, randomness)
    return DirectoryStore(layout, lock, clock, decrypt, lambda writing: DirectoryLeases(
        layout, writing, clock, process=process or this_process(), randomness=randomness, renewal=renewal))


def _create(layout: Layout, lock: WriterLock, randomness: Callable[[int], bytes]) -> None:
    files.make_folder(layout.tree)
    files.make_folder(layout.state)
    with lock.held():
        if not layout.exists():
            note_to_git(layout)
            mark(layout, randomness)
