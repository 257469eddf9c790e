# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the state folder keeps of one record: whose it is, its generation and its status (design section 4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from .._model.plain_files import NotJson, read_json
from .._model.record_uid import unresolved_uid
from .._model.records import MACHINE, Json, JsonMap, Record


class StateBroken(Exception):
    """The file is not what this product writes; `line` is where the reader stopped (1-based)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class RecordState:
    """One file. `former` is the uid before an edit of the identity that may not have been finished; `approved` remembers
    that the record was an approved machine, so that a vanished file can be told; `revision` counts the writes."""

    uid: str
    generation: int = 1
    spec_hash: str = ""
    status: JsonMap = field(default_factory=dict)
    former: str = ""
    approved: bool = False
    revision: int = 0
    version: str = ""

    def belongs_to(self, record: Record) -> bool:
        """Whether this is the state of that record (whose uid is set).

        A machine that nobody had told apart keeps its status when a person writes its identity down, unless it was approved.
        """
        if record.uid in (self.uid, self.former):
            return True
        return record.kind == MACHINE and not self.approved and self.uid == unresolved_uid(record.kind, record.name)


def read(content: bytes) -> RecordState:
    """The state in a file. Raises StateBroken."""
    try:
        data = read_json(content)
    except NotJson as problem:
        raise StateBroken(problem.message, problem.line) from None
    if not isinstance(data, dict):
        raise StateBroken("the file is no JSON object", 1)
    uid, generation, revision = data.get("uid"), data.get("generation"), data.get("revision")
    status = data.get("status")
    if not isinstance(uid, str) or not isinstance(generation, int) or not isinstance(revision, int) or not isinstance(status, dict):
        raise StateBroken("uid, generation, revision or status is missing", 1)
    return RecordState(uid, generation, _text(data, "specHash"), status, _text(data, "formerUID"), data.get("approved") is True, revision,
                       hashlib.sha256(content).hexdigest()[:40])


def _text(data: Mapping[str, Json], key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""


def content(state: RecordState) -> bytes:
    """The file of a state."""
    data: dict[str, Json] = {
        "uid": state.uid, "generation": state.generation, "specHash": state.spec_hash, "approved": state.approved,
        "revision": state.revision, "status": dict(state.status),
    }
    if state.former:
        data["formerUID"] = state.former
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
