# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A path for a secret that a library takes from files only (law 7: no secret in a temporary file)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def memory_file(content: str) -> Iterator[str]:
    """A path that holds the content (ASCII) while the context lasts: in memory, without a name anybody can open.

    Where the kernel has no such files (not Linux) it is a file of mode 0600 in a folder of mode 0700, removed at once.
    """
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("credential", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb", closefd=True) as file:
            file.write(content.encode("ascii"))
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    with tempfile.TemporaryDirectory(prefix="ichor-") as folder:
        path = os.path.join(folder, "credential")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content.encode("ascii"))
        yield path
