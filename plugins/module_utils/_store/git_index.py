# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether git tracks a file, told from the repository's index, without running git.

Git may be missing where this runs (an execution environment), and its `safe.directory` refuses a repository of another
owner. The index (versions 2 to 4, split ones too) is described in git's Documentation/gitformat-index.txt.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Generator, Iterator
from pathlib import Path

_EXTENDED = 0x4000
_NAME_LENGTH = 0x0FFF
_TREE_MODE = 0o040000


class GitUnreadable(Exception):
    """There is a repository, but its index cannot be read."""


def tracked_by_git(path: Path) -> str:
    """The repository that tracks the file, under the path given or the one that a link leads to; '' where none does.

    Raises GitUnreadable.
    """
    for candidate in dict.fromkeys((Path(os.path.abspath(path)), Path(os.path.realpath(path)), Path(os.path.realpath(path.parent)) / path.name)):
        for root in candidate.parents:
            entry = root / ".git"
            if not os.path.lexists(entry):
                continue
            if _is_tracked(_git_folder(entry), candidate.relative_to(root).as_posix()):
                return str(root)
            break  # git looks no further than the nearest repository
    return ""


def _git_folder(entry: Path) -> Path:
    """`.git` itself, or where a worktree's or submodule's `.git` file points."""
    if entry.is_dir():
        return entry
    try:
        text = entry.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError as error:
        raise GitUnreadable(f"{entry}: {error.strerror or error}") from None
    if not text.startswith("gitdir:"):
        raise GitUnreadable(f"{entry} is no link to a repository")
    return entry.parent / text[len("gitdir:"):].strip()


def _is_tracked(folder: Path, name: str) -> bool:
    wanted = os.fsencode(name)
    for found in _names(folder, folder / "index"):
        if found == wanted or found.endswith(b"/") and wanted.startswith(found):
            return True
    return False


def _names(folder: Path, index: Path) -> Iterator[bytes]:
    """Names in an index; a folder of a sparse index ends with a slash, and counts as tracked with all that it holds."""
    try:
        data = index.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise GitUnreadable(f"{index}: {error.strerror or error}") from None
    hash_size = _hash_size(folder)
    try:
        offset = yield from _entries(data, hash_size)
        yield from _shared(folder, index, data, offset, hash_size)
    except (struct.error, IndexError, ValueError):
        raise GitUnreadable(f"{index} is not an index as git writes it") from None


def _hash_size(folder: Path) -> int:
    common = folder
    try:
        common = folder / (folder / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pass
    try:
        config = (common / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        config = ""
    return 32 if re.search(r"^\s*objectformat\s*=\s*sha256\s*$", config, re.MULTILINE | re.IGNORECASE) else 20


def _entries(data: bytes, hash_size: int) -> Generator[bytes, None, int]:
    signature, version, count = struct.unpack_from(">4sLL", data, 0)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("signature")
    offset, previous = 12, b""
    for dummy in range(count):
        start = offset
        mode, = struct.unpack_from(">L", data, start + 24)
        flags, = struct.unpack_from(">H", data, start + 40 + hash_size)
        offset = start + 42 + hash_size + (2 if flags & _EXTENDED else 0)
        if version == 4:
            strip, offset = _variable(data, offset)
            end = data.index(b"\0", offset)
            previous = previous[:len(previous) - strip] + data[offset:end]
            offset = end + 1
        else:
            length = flags & _NAME_LENGTH
            end = offset + length if length < _NAME_LENGTH else data.index(b"\0", offset)
            previous = data[offset:end]
            offset = start + (end - start + 8) // 8 * 8
        if offset > len(data):
            raise ValueError("length")
        yield previous if mode != _TREE_MODE or previous.endswith(b"/") else previous + b"/"
    return offset


def _variable(data: bytes, offset: int) -> tuple[int, int]:
    """A number in git's offset encoding, and where it ends."""
    value = data[offset] & 0x7F
    while data[offset] & 0x80:
        offset += 1
        value = ((value + 1) << 7) | (data[offset] & 0x7F)
    return value, offset + 1


def _shared(folder: Path, index: Path, data: bytes, offset: int, hash_size: int) -> Iterator[bytes]:
    """The names of the index that a split index builds on; one that it takes away counts too, which errs to be careful."""
    while offset + 8 <= len(data) - hash_size:
        name, size = struct.unpack_from(">4sL", data, offset)
        if name == b"link":
            base = data[offset + 8:offset + 8 + hash_size]
            if any(base):
                shared = index.with_name(f"sharedindex.{base.hex()}")
                if not shared.exists():
                    raise ValueError("shared index")
                yield from _names(folder, shared)
        offset += 8 + size
