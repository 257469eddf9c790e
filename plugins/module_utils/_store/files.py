# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Atomic, durable writes and the lock of the writers (design section 4).

A write is: a temporary file in the same folder, fsync of it, rename over the target, fsync of the folder. A crash at
any point leaves the old file or the new one, and at most one temporary file, which the next writer removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional

from .._model.errors import TalosError
from .._model.plain_files import NotPlain, read_plain

#: Ends the name of each temporary file; nothing else in a store is called so.
TEMPORARY = ".ichor-tmp"

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
#: What is wrong with one entry, and not with the file system that holds the store.
_ENTRY = frozenset((errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV))
#: No record, status or lease is larger.
_LARGEST = 16 << 20
_READ_ONLY = frozenset((errno.EROFS, errno.EACCES, errno.EPERM))


def store_error(error: OSError, what: str, path: Path) -> TalosError:
    """The refusal of an operating system as an error with a reason; `what` is e.g. 'written'."""
    detail = error.strerror or str(error)
    if error.errno in _FULL:
        return TalosError("StoreFull", f"{path} cannot be {what}: the file system is full.",
                          "Make room there and run again.", detail)
    if error.errno in _READ_ONLY:
        why = "the file system is read-only" if error.errno == errno.EROFS else "permission is missing"
        return TalosError("StoreReadOnly", f"{path} cannot be {what}: {why}.",
                          "Make the store's folder and its state folder writable for this user.", detail)
    if error.errno == errno.ENAMETOOLONG:
        return TalosError("InvalidInput", f"{path.name} is too long for a file name.", "Choose a shorter name.", detail)
    return TalosError("StoreUnreachable", f"{path} cannot be {what}: {detail}.", "See to the file system that holds the store.", detail)


def read_entry(path: Path, largest: int = _LARGEST) -> bytes | None:
    """The file's bytes, or None where there is no such file. Raises NotPlain for what is no readable file of ours, TalosError
    where the store itself cannot be read."""
    try:
        return read_plain(path, largest)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _ENTRY:
            raise NotPlain(f"cannot be read: {error.strerror or error}") from error
        raise store_error(error, "read", path) from error


def read_bytes(path: Path, largest: int = _LARGEST) -> bytes | None:
    """The same, with `RecordBroken` for what is no readable file. Raises TalosError."""
    try:
        return read_entry(path, largest)
    except NotPlain as problem:
        raise TalosError("RecordBroken", f"{path} {problem}.", "Put the right file there, or take it away; nothing is written over it.") from None


#: Whether two files are what they were: of each, the numbers that a change of its content changes, or None where it is not there.
Signature = tuple[Optional[tuple[int, int, int, int]], ...]
#: A file that changed so lately may change again within the resolution of its times, in seconds.
_LATELY = 2.0


def signature(*paths: Path) -> Signature | None:
    """What tells an unchanged file without reading it; None where one changed just now, so that nothing is told by it.

    Taken before the files are read: a change in between gives another one the next time.
    """
    found: list[tuple[int, int, int, int] | None] = []
    now = time.time()
    for path in paths:
        try:
            seen = os.stat(path)
        except FileNotFoundError:
            found.append(None)
            continue
        except OSError:
            return None
        if max(seen.st_mtime, seen.st_ctime) > now - _LATELY:
            return None
        found.append((seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns))
    return tuple(found)


def is_there(path: Path) -> bool:
    """Whether something of that name is there, a link that leads nowhere too. Raises TalosError."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise store_error(error, "read", path) from error
    return True


def make_folder(path: Path, mode: int = 0o777) -> None:
    """The folder and those above it, durable; `mode` is of the folder itself where it is made. Raises TalosError."""
    try:
        missing = []
        here = path
        while not here.is_dir():
            missing.append(here)
            here = here.parent
        for folder in reversed(missing):
            folder.mkdir(mode if folder == path else 0o777, exist_ok=True)
            _sync_folder(folder.parent)
    except OSError as error:
        raise store_error(error, "created", path) from error


def write_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Put `data` at `path`, durable, all or nothing; the writers' lock is held by the caller.

    An existing file keeps its mode and, where permitted, its owner; a link is followed. A device, a pipe or a socket stays: who may
    would rename over `/dev/null` for the whole machine. Raises TalosError.
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    temporary = target.with_name("." + target.name[:200] + TEMPORARY)
    try:
        with contextlib.suppress(FileNotFoundError):
            mode_there = os.lstat(target).st_mode
            if not stat.S_ISREG(mode_there) and not stat.S_ISDIR(mode_there):
                raise TalosError("InvalidInput", f"{path} is a device, a pipe or a socket: nothing is put in its place.", "Give the path of a file.")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            _write_new(temporary, data, target, mode)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise store_error(error, "written", path) from error


def _write_new(temporary: Path, data: bytes, target: Path, mode: int | None) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666 if mode is None else mode)
    try:
        with contextlib.suppress(FileNotFoundError):
            before = os.stat(target)
            if mode is None:
                os.fchmod(descriptor, before.st_mode & 0o7777)
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, before.st_uid, before.st_gid)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view):]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_exclusively(path: Path, data: bytes, mode: int) -> None:
    """Put `data` at `path`, durable, all or nothing, only where nothing is. Raises TalosError: RecordExists where something is."""
    temporary = path.with_name("." + path.name[:200] + TEMPORARY)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            _write_new(temporary, data, temporary, mode)
            os.link(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        _sync_folder(path.parent)
    except FileExistsError:
        raise TalosError("RecordExists", f"{path} is there already.", "Look at it, and choose another name or say that it is to be replaced.") from None
    except OSError as error:
        raise store_error(error, "written", path) from error


def append_line(path: Path, line: bytes) -> None:
    """Append one line, durable; a torn line before it is closed first. The writers' lock is held. Raises TalosError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            view = memoryview((b"\n" if torn else b"") + line + b"\n")
            try:
                while view:
                    view = view[os.write(descriptor, view):]
            except OSError:
                os.ftruncate(descriptor, size)
                raise
            os.fsync(descriptor)
            if size == 0:
                _sync_folder(path.parent)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise store_error(error, "written", path) from error


def remove(path: Path) -> bool:
    """Remove a file, durable; whether there was one. Raises TalosError."""
    try:
        os.unlink(path)
        _sync_folder(path.parent)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise store_error(error, "removed", path) from error
    return True


def move(source: Path, target: Path) -> None:
    """Rename within one file system, durable. Raises TalosError."""
    try:
        os.replace(source, target)
        _sync_folder(target.parent)
        _sync_folder(source.parent)
    except OSError as error:
        raise store_error(error, "moved", source) from error


def sweep(folder: Path) -> None:
    """Remove what a killed writer left; the writers' lock is held. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(TEMPORARY) and entry.name.startswith("."):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):  # some file systems do not sync folders
            raise
    finally:
        os.close(descriptor)


class WriterLock:
    """One writer at a time, over all processes and threads of one host (flock; freed by the kernel when a holder dies)."""

    def __init__(self, path: Path, *, wait: float = 10.0, pause: Callable[[float], None] = time.sleep,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._wait = wait
        self._pause = pause
        self._monotonic = monotonic

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock. Raises TalosError: StoreUnreachable when somebody else writes for longer than the deadline."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise store_error(error, "locked", self.path) from error
        try:
            self._take(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        deadline = self._monotonic() + self._wait
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                    raise store_error(error, "locked", self.path) from error
            if self._monotonic() >= deadline:
                raise TalosError("StoreUnreachable", f"Another process has been writing to the store for more than {self._wait:.0f} s ({self.path}).",
                                 "Look for a run that hangs, end it, and run again.")
            self._pause(0.01)
