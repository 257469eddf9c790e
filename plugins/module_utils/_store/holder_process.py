# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which process holds a lease, and whether it is provably gone (design section 13).

Provable is only what the kernel of this very boot, seen through the same pid namespace, says. Another boot id may be a
reboot, or another machine that was cloned with the same machine id; so it proves nothing, and the lease runs out.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from .._model.records import Json, text_at


@dataclass(frozen=True)
class HolderProcess:
    """One process. `start` is its start time in the kernel's ticks since boot; '' is what could not be told."""

    pid: int
    start: str
    namespace: str
    machine: str
    boot: str

    def as_json(self) -> dict[str, Json]:
        """As a lease keeps it."""
        return asdict(self)


def of_json(data: Json) -> HolderProcess | None:
    """The process that a lease names, or None."""
    pid = data.get("pid") if isinstance(data, dict) else None
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return None
    return HolderProcess(pid, text_at(data, "start"), text_at(data, "namespace"), text_at(data, "machine"), text_at(data, "boot"))


def this_process() -> HolderProcess:
    """The process that runs this."""
    pid = os.getpid()
    stat = _stat(pid)
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return HolderProcess(pid, stat[1] if stat else "", namespace, _line("/etc/machine-id"), _line("/proc/sys/kernel/random/boot_id"))


def provably_gone(holder: HolderProcess, here: HolderProcess) -> bool:
    """Whether the kernel that `here` runs on says that the process is no more."""
    same = (holder.machine, holder.boot, holder.namespace) == (here.machine, here.boot, here.namespace)
    if not same or not (here.boot and here.namespace):
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and somebody else's
    stat = _stat(holder.pid)
    if stat is None:
        return False
    state, start = stat
    return state in ("Z", "X") or bool(holder.start) and start != holder.start


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start time from /proc, whose second field may hold anything, parentheses included."""
    line = _line(f"/proc/{pid}/stat")
    fields = line.rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else None


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return ""
