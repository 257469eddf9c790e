# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many sockets this process may have. A session takes three; the usual soft limit of 1024 is less than 400 nodes need."""

from __future__ import annotations

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]

_WANTED = 65536
_OTHERS = 128


def raise_limit() -> None:
    """Raise the soft limit towards the hard one, as far as it is of use; harmless where that is not allowed."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return


def room() -> int:
    """How many more sockets may be opened at once, leaving some for everything else."""
    if resource is None:
        return 512
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _WANTED if soft == resource.RLIM_INFINITY else max(16, soft - _OTHERS)
