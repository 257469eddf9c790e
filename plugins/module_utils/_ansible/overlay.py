# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would-be records of a check run, so that its later tasks plan with them (design section 20, "Check mode").

They lie in a private folder of the ansible-playbook process, one JSON file a record, and are given only to modules that are
themselves in check mode.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from .._model.record_uid import record_uid
from .._model.records import Json, Record, Ref, dig, text_at


class Overlay:
    """The folder of one check run and one store. A file holds a record, or null where the record would be deleted."""

    def __init__(self, folder: str, store: str) -> None:
        self._folder = Path(folder) / _slug(store)

    def write(self, records: Iterable[Record], deleted: Iterable[Ref]) -> None:
        """Keep what the plan of this task would leave behind."""
        for record in records:
            uid = record.uid or record_uid(record.kind, record.name, record.spec)
            self._put(record.ref, asdict(replace(record, uid=uid)))
        for ref in deleted:
            self._put(ref, None)

    def _put(self, ref: Ref, content: object) -> None:
        folder = self._folder / ref.kind
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = folder / f"{ref.name}.json"
        temporary = folder / f".{ref.name}.{os.getpid()}"
        temporary.write_text(json.dumps(content), encoding="utf-8")
        os.replace(temporary, target)

    @property
    def empty(self) -> bool:
        """Whether no task of this check run has left a word for the store."""
        return not self._folder.is_dir()

    def get(self, ref: Ref) -> tuple[bool, Record | None]:
        """(whether the check run has a word on this record, the record or None where it would be gone)."""
        try:
            content: Json = json.loads((self._folder / ref.kind / f"{ref.name}.json").read_text(encoding="utf-8"))
        except OSError:
            return False, None
        return True, None if content is None else _record(content)

    def all(self, kind: str) -> dict[str, Record | None]:
        """Every word of the check run on records of a kind, by name."""
        folder = self._folder / kind
        names = [path.stem for path in folder.glob("*.json")] if folder.is_dir() else []
        return {name: self.get(Ref(kind, name))[1] for name in names}


def _record(content: Json) -> Record:
    def mapping(key: str) -> dict[str, Json]:
        value = dig(content, key)
        return value if isinstance(value, dict) else {}

    generation = dig(content, "generation")
    return Record(
        kind=text_at(content, "kind"), name=text_at(content, "name"), spec=mapping("spec"), status=mapping("status"),
        labels={key: str(value) for key, value in mapping("labels").items()},
        annotations={key: str(value) for key, value in mapping("annotations").items()}, uid=text_at(content, "uid"),
        generation=generation if isinstance(generation, int) else 0, resource_version=text_at(content, "resource_version"),
        status_version=text_at(content, "status_version"), status_set_aside=dig(content, "status_set_aside") is True,
        source=text_at(content, "source"))


def _slug(store: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in store)[-100:] or "store"
