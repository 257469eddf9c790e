# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups in a folder: files of mode 0600 that appear whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .._model.backups import SUFFIX, Stored
from . import problem

#: Ends the name of a file that is being written. Its writer holds a lock on it, so that what nobody writes any more is known.
PART = ".ichor-part"
_PIECE = 1 << 18
#: What a file system says that has no hard links.
_NO_LINKS = frozenset((errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK))


class FolderArchive:
    """Implements the port `Archive` over one folder."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path)

    def stored(self) -> tuple[Stored, ...]:
        """A folder that is not there holds nothing yet."""
        try:
            with os.scandir(self._folder) as entries:
                found = [one for entry in entries if (one := _stored(entry)) is not None]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise problem.of_system(error, "read", str(self._folder)) from error
        return tuple(sorted(found, key=lambda entry: entry.name))

    def begin(self, name: str) -> FileWriting:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sweep(self._folder)
            return FileWriting(self._folder, name)
        except OSError as error:
            raise problem.of_system(error, "written", str(self._folder / name)) from error

    @contextmanager
    def read(self, name: str) -> Iterator[Iterator[bytes]]:
        path = self._folder / name
        try:
            with open(path, "rb") as stream:
                yield _pieces(stream)
        except FileNotFoundError:
            raise problem.not_found(name, f"folder {self._folder}") from None
        except OSError as error:
            raise problem.of_system(error, "read", str(path)) from error

    def delete(self, name: str) -> None:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._folder / name)
        except OSError as error:
            raise problem.of_system(error, "deleted", str(self._folder / name)) from error


class FileWriting:
    """A file under a hidden name until it is whole and on the disk. `abandon` may come from another thread than `write`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._target = folder, folder / name
        self._part = folder / f".{name}{PART}"
        self._turn = threading.Lock()
        self._over = False
        self._descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def write(self, data: bytes) -> None:
        try:
            with self._turn:
                rest = memoryview(data)
                while rest and not self._over:
                    rest = rest[os.write(self._descriptor, rest):]
        except OSError as error:
            raise problem.of_system(error, "written", str(self._target)) from error

    def finish(self) -> None:
        try:
            with self._turn:
                if self._over:
                    return
                os.fsync(self._descriptor)
                _put(self._part, self._target)
                self._end()
            _sync(self._folder)
        except OSError as error:
            raise problem.of_system(error, "written", str(self._target)) from error

    def abandon(self) -> None:
        with self._turn, contextlib.suppress(OSError):
            self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            os.close(self._descriptor)
            self._part.unlink(missing_ok=True)


def _stored(entry: os.DirEntry[str]) -> Stored | None:
    """One backup; None for what is none, and for one that went since the folder was listed: the others are still there. Raises OSError."""
    if not entry.name.endswith(SUFFIX) or entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
        return None
    try:
        return Stored(entry.name, entry.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        return None


def _put(part: Path, target: Path) -> None:
    """Give the whole file its name, never over another file. Raises OSError."""
    try:
        os.link(part, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A share of a NAS has no hard links; names hold the second and the record, which has one writer at a time.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.rename(part, target)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Take away what a killed run left behind; what another run writes now is locked by it."""
    for path in folder.glob(f".*{PART}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(descriptor)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece
