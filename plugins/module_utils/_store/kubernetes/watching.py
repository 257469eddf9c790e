# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records of a kind as they lately were: listed once, then kept by a watch in a thread (design section 4).

For looks, not for what is decided under a lock: a watch may lag behind. It never lags behind what was written through the same store,
and where no watch stands the records are listed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..._kube.api import Api, ApiRefused
from ..._model.records import JsonMap, Listing, text_at
from .listing import Entry, entry_of, listing_of, read_all
from .objects import path_of

#: Seconds after which an API server that sends nothing is taken for gone; it sends a bookmark each minute.
_QUIET = 150.0
#: Seconds for which one watch is asked; the next goes on where it ended.
_LENGTH = 600
_PAUSES = (0.2, 5.0)
#: Seconds for which what was just written is waited for.
_CATCH_UP = 2.0


class Watched:
    """One kind in one namespace. `page` gives the size of a listing's pages."""

    def __init__(self, api: Api, namespace: str, kind: str, page: Callable[[], int]) -> None:
        self._api, self._namespace, self._kind, self._page = api, namespace, kind, page
        self._turn = threading.Condition()
        self._entries: dict[str, Entry] = {}
        self._version = ""
        self._standing = False
        self._listed = False
        self._written = 0
        self._stopped = False
        self._thread: threading.Thread | None = None

    def listing(self) -> Listing:
        """The records. Raises TalosError as `store_error` says where they have to be listed and cannot be."""
        with self._turn:
            if self._listed and self._thread is not None:
                self._turn.wait_for(lambda: self._standing and _number(self._version) >= self._written or not self._listed, _CATCH_UP)
            if self._listed and self._standing and _number(self._version) >= self._written:
                return listing_of(self._entries)
        entries, version = read_all(self._api, self._namespace, self._kind, self._page())
        with self._turn:
            # A watch that stood up meanwhile may know more than the listing; it sends that again from the listing's version.
            if _number(version) >= _number(self._version):
                self._entries, self._version = entries, version
            self._listed = True
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._watch, name=f"watch of {self._kind}", daemon=True)
                self._thread.start()
            return listing_of(self._entries)

    def wrote(self, version: str) -> None:
        """This store wrote an object, which has that version now."""
        with self._turn:
            self._written = max(self._written, _number(version))

    def stop(self) -> None:
        """No further watch; one that stands ends with its connection."""
        with self._turn:
            self._stopped = True
            self._turn.notify_all()

    def _watch(self) -> None:
        pause = _PAUSES[0]
        while not self._stopped:
            wait = 0.0
            try:
                self._once()
                pause = _PAUSES[0]
            except ApiRefused as refused:
                if refused.status == 410:
                    self._forget()
                    return
                wait, pause = max(pause, refused.retry_after), min(pause * 2, _PAUSES[1])
            except Exception:  # a login plugin raises whatever it does; a thread that ended by it would let each look wait for a watch in vain
                wait, pause = pause, min(pause * 2, _PAUSES[1])
            with self._turn:
                self._standing = False
                if wait:
                    self._turn.wait_for(lambda: self._stopped, wait)

    def _once(self) -> None:
        """One watch to its end. Raises ApiRefused, ApiSilent."""
        query = {"watch": "1", "resourceVersion": self._version, "allowWatchBookmarks": "true", "timeoutSeconds": str(_LENGTH)}
        for event in self._api.stream(path_of(self._namespace, self._kind), query, _QUIET, self._stand):
            found = event.get("object")
            if isinstance(found, dict):
                self._take(text_at(event, "type"), found)

    def _stand(self) -> None:
        with self._turn:
            self._standing = True
            self._turn.notify_all()

    def _take(self, kind: str, found: JsonMap) -> None:
        if kind == "ERROR":
            code = found.get("code")
            raise ApiRefused(code if isinstance(code, int) else 500, text_at(found, "reason"), text_at(found, "message"))
        entry = entry_of(self._kind, found) if kind != "BOOKMARK" else None
        version = text_at(found, "metadata", "resourceVersion")
        with self._turn:
            if _number(version) <= _number(self._version):
                return  # a listing that was made meanwhile is newer
            if kind == "DELETED" and entry is not None:
                self._entries.pop(entry.name, None)
            elif entry is not None:
                self._entries[entry.name] = entry
            self._version = version
            self._turn.notify_all()

    def _forget(self) -> None:
        """What it knew is too old to go on from: the next look lists."""
        with self._turn:
            self._listed, self._standing, self._thread, self._version = False, False, None, ""
            self._turn.notify_all()


def _number(version: str) -> int:
    """Versions of one kind grow (Kubernetes promises it since 1.35, and etcd always did)."""
    return int(version) if version.isdigit() else 0
