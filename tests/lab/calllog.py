# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of everything that reaches a node: one JSON object a line, kept in memory as well.

Events: `connect` (TCP accepted), `tls` (handshake done or failed), `call` (a request arrived), `done` (its outcome), `closed`
(a connection ended, with how much it carried), and `node` (something the lab itself did or a node went through).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, TextIO


class CallLog:
    """Appends entries; `entries` is the whole history of the process."""

    def __init__(self, clock: Callable[[], float], out: TextIO | None = None) -> None:
        self._clock = clock
        self._out = out
        self.entries: list[dict[str, Any]] = []

    def add(self, event: str, node: str, **fields: Any) -> dict[str, Any]:
        entry = {"n": len(self.entries), "time": round(self._clock(), 6), "event": event, "node": node}
        entry.update((key, value) for key, value in fields.items() if value is not None)
        self.entries.append(entry)
        if self._out is not None:
            self._out.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self._out.flush()
        return entry

    def select(self, since: int = 0, **wanted: Any) -> list[dict[str, Any]]:
        """Entries from number `since` on whose fields have the wanted values."""
        return [entry for entry in self.entries[since:] if all(entry.get(key) == value for key, value in wanted.items())]

    def writes(self, since: int = 0, accepted_only: bool = False) -> dict[str, int]:
        """How often each writing RPC arrived (or was accepted), by method name; a dry run is not a write."""
        counts: dict[str, int] = {}
        for entry in self.entries[since:]:
            if entry["event"] == "done" and entry.get("kind") == "write" and not entry.get("dry_run"):
                if not accepted_only or entry.get("code") == "OK":
                    name = str(entry["rpc"]).rpartition("/")[2]
                    counts[name] = counts.get(name, 0) + 1
        return counts


def digest(data: bytes) -> dict[str, Any]:
    """What is logged of a configuration: its hash and its length."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}


def roles_text(roles: Iterable[str]) -> str:
    """Credentials as the log shows them: the Organization values, or `none`."""
    return "+".join(roles) or "none"
