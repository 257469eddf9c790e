# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files and JSON that somebody else may have put there, read so that nothing hangs and nothing grows without bound.

A pipe would wait for a writer, a device never ends, and a deep or huge JSON text breaks the reader that believes in it.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from .errors import TalosError
from .records import Json

#: No configuration, bundle, talosconfig or plan is larger.
LARGEST_FILE = 8 << 20

_DEEPEST = 64
_LONGEST_INTEGER = 20


class NotPlain(Exception):
    """What is at a path is no file of a sane size; the text ends a sentence that begins with the path."""


class NotJson(Exception):
    """The text is no JSON that this product would write; `line` is where the reader stopped (1-based)."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def open_plain(path: str | Path) -> int:
    """A descriptor of a regular file, opened to be read; links are followed. Raises OSError, NotPlain."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise NotPlain("is a folder" if stat.S_ISDIR(mode) else "is a device, a pipe or a socket")


def read_plain(path: str | Path, largest: int = LARGEST_FILE) -> bytes:
    """The bytes of a regular file of at most `largest` bytes. Raises OSError, NotPlain."""
    with os.fdopen(open_plain(path), "rb") as stream:
        data = stream.read(largest + 1)
    if len(data) > largest:
        raise NotPlain(f"is larger than {largest >> 20} MiB")
    return data


def read_given(path: str | Path, option: str) -> bytes:
    """The bytes of a file that a person named in an option. Raises TalosError `InvalidInput` that names both."""
    try:
        return read_plain(path)
    except NotPlain as problem:
        raise TalosError("InvalidInput", f"{option} {path} {problem}.", "Give the right file.") from None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise TalosError("InvalidInput", f"{option} {path} cannot be read: {why}.",
                         "Give the path of a readable file on the machine that runs ansible-playbook.") from error


def read_json(content: bytes) -> Json:
    """The data of a JSON text: UTF-8, not deep, with finite numbers of a sane length. Raises NotJson."""
    try:
        data: Json = json.loads(content.decode("utf-8"), parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    except UnicodeDecodeError:
        raise NotJson("the file is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"the file is not valid JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise NotJson("the file is not valid JSON of this product: it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(f"the file is not valid JSON of this product: {error}") from None
    if content.count(b"[") + content.count(b"{") > _DEEPEST and _is_deep(data):
        raise NotJson("the file is not valid JSON of this product: it is nested too deeply")
    return data


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError("a number is too long")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError("a number is not finite")
    return number


def _is_deep(data: Json) -> bool:
    layer: list[Json] = [data]
    for dummy in range(_DEEPEST):
        layer = [item for outer in layer if isinstance(outer, (dict, list)) for item in (outer.values() if isinstance(outer, dict) else outer)]
        if not layer:
            return False
    return True
