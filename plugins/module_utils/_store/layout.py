# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where everything stands in a directory store (design section 4).

The tree, made for git:            The state, which git leaves out (`.state` in the tree unless said otherwise):

    .ichor-store                       store.json                id of the store that this state belongs to
    clusters/<name>.yaml               clusters/<name>.json      uid, generation and status of a record
    machines/<name>.yaml               machines/<name>.json
    patches/ reclaims/ backups/        ...
    secrets/<name>.yaml                set-aside/                statuses that belong to no record any more
                                       events.jsonl
                                       leases/<name>.json
                                       lock                      held by the one who writes
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .._model.errors import TalosError
from .._model.plain_files import NotJson, read_json
from .._model.records import CLUSTER, MACHINE, Json, text_at
from .._model.schema import SCHEMAS
from .._model.schema_formats import is_dns_1123
from .._model.store_place import StorePlace
from . import files

MARKER = ".ichor-store"
STATE = ".state"


@dataclass(frozen=True)
class Layout:
    """The two folders of a store, and every path in them."""

    tree: Path
    state: Path

    @property
    def marker(self) -> Path:
        """The file that makes a folder a store: it holds the store's id."""
        return self.tree / MARKER

    @property
    def state_marker(self) -> Path:
        return self.state / "store.json"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def events(self) -> Path:
        return self.state / "events.jsonl"

    def folder(self, kind: str) -> Path:
        """The folder of a kind's specs. Raises TalosError for a kind that is none."""
        if kind not in SCHEMAS:
            raise TalosError("InvalidInput", f"{kind!r} is no kind of record.", f"It has to be one of {', '.join(SCHEMAS)}.")
        return self.tree / SCHEMAS[kind].folder

    def spec(self, kind: str, name: str) -> Path:
        """A record's file. Raises TalosError for a name that is none, so that no name leads out of the store."""
        return self.folder(kind) / f"{_checked(name)}.yaml"

    def status(self, kind: str, name: str) -> Path:
        """A record's file in the state."""
        return self.state / SCHEMAS[kind].folder / f"{_checked(name)}.json"

    def set_aside(self, kind: str, name: str, content: bytes) -> Path:
        """Where a status goes that is not its record's."""
        digest = hashlib.sha256(content).hexdigest()[:12]
        return self.state / "set-aside" / f"{SCHEMAS[kind].folder}-{_checked(name)[:200]}-{digest}.json"

    def lease(self, name: str) -> Path:
        """A lease's file; a name that cannot be a file's (a cluster id) goes by its digest."""
        plain = is_dns_1123(name) and len(name) <= 200
        return self.state / "leases" / f"{name if plain else '=' + hashlib.sha256(name.encode()).hexdigest()[:40]}.json"

    def secret(self, name: str) -> Path:
        return self.tree / "secrets" / f"{_checked(name)}.yaml"

    def exists(self) -> bool:
        """Whether the tree is a store: it carries the marker, or folders of records that a person made.

        Raises TalosError where that cannot be read.
        """
        return any(files.is_there(path) for path in (self.marker, self.folder(CLUSTER), self.folder(MACHINE)))


def _checked(name: str) -> str:
    if not is_dns_1123(name):
        shown = name if len(name) <= 64 else name[:61] + "..."
        raise TalosError("InvalidInput", f"{shown!r} cannot name a record.", "A name has lower-case letters, digits, '-' and '.' only.")
    return name


def read_id(path: Path) -> str:
    """The store id in a marker, or '' where there is none or it cannot be read as one."""
    data = files.read_bytes(path)
    try:
        found = read_json(data) if data else None
    except NotJson:
        return ""
    value = found.get("id") if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""


def store_around(path: Path) -> Path | None:
    """The folder of records or of state, of whatever store, that a path lies in; None outside of all of them."""
    for folder in Path(os.path.realpath(path)).parents:
        here = Layout(folder, folder)
        if files.is_there(here.marker) or here.lock.is_file() and here.state_marker.is_file() and read_id(here.state_marker):
            return folder
    return None


def marker_text(store_id: str, **more: Json) -> bytes:
    """The content of a marker."""
    return (json.dumps({"id": store_id, "format": 1, **more}, indent=1) + "\n").encode()


def mark(layout: Layout, randomness: Callable[[int], bytes]) -> None:
    """Give tree and state one new id, the state first: a crash between the two leaves a store without a lock, never two locks.

    The writers' lock is held by the caller. Raises TalosError.
    """
    store_id = randomness(16).hex()
    files.write_atomically(layout.state_marker, marker_text(
        store_id, tree=os.path.realpath(layout.tree), state=os.path.realpath(layout.state)))
    files.write_atomically(layout.marker, marker_text(store_id))


def note_to_git(layout: Layout) -> None:
    """Tell git to leave out a state folder that stands in the tree, until it is complete; after that the note is a person's.

    The writers' lock is held by the caller. Raises TalosError.
    """
    note = layout.state / ".gitignore"
    if layout.tree in layout.state.parents and not files.is_there(layout.state_marker) and not files.is_there(note):
        files.write_atomically(note, b"*\n")


_NOTES = {"movedTo": "moved_to", "movedToId": "moved_to_id", "filledFrom": "filled_from", "filledFromId": "filled_from_id"}


def read_place(layout: Layout) -> StorePlace:
    """What the tree's marker says. Raises TalosError where it cannot be read."""
    data = files.read_bytes(layout.marker)
    try:
        found = read_json(data) if data else None
    except NotJson:
        return StorePlace()
    return StorePlace(text_at(found, "id"), **{field: text_at(found, key) for key, field in _NOTES.items()}) if isinstance(found, dict) else StorePlace()


def write_place(layout: Layout, place: StorePlace) -> None:
    """Say it in the tree's marker, whose id stays. The writers' lock is held by the caller. Raises TalosError."""
    notes: dict[str, Json] = {key: str(getattr(place, field)) for key, field in _NOTES.items() if getattr(place, field)}
    files.write_atomically(layout.marker, marker_text(read_id(layout.marker), **notes))
