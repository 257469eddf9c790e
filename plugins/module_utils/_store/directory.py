# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory store: records in a tree of YAML made for git, everything else in a state folder (design section 4).

Reading takes no lock: every file is replaced as a whole. Writers are serialised by the lock file; each reads again what
it changes once it holds the lock, so that a write over an outdated read is refused and never merged.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from .._model.approval import approval_state
from .._model.errors import TalosError
from .._model.plain_files import NotPlain
from .._model.ports import Clock, Leases
from .._model.record_uid import record_uid, spec_hash
from .._model.records import MACHINE, Broken, Event, JsonMap, Listing, Record, Ref
from .._model.schema import SCHEMAS
from .._model.schema_rules import Context
from .._model.store_place import StorePlace
from . import bundle, event_log, files, record_file, state_file
from .files import WriterLock
from .layout import Layout, mark, note_to_git, read_place, write_place
from .record_file import RecordFile
from .state_file import RecordState, StateBroken
from .written import as_status, checked, context_of, record_changed, refuse_lost_status, refuse_tracked
from .yaml_nodes import YamlProblem
from .yaml_splice import CannotEdit

#: A person could not read a larger one, and parsing it would take long.
_LARGEST_RECORD = 2 << 20
_REPAIR = "Repair it by hand or with git; nothing is written over it."


class DirectoryStore:
    """`ports.Store` over two folders. `decrypt` gives the clear text of a vaulted file; `leases` makes the locks from what
    holds the writers' lock."""

    def __init__(self, layout: Layout, lock: WriterLock, clock: Clock, decrypt: bundle.Decrypt | None,
                 leases: Callable[[Callable[[], AbstractContextManager[None]]], Leases]) -> None:
        self.layout = layout
        self._lock = lock
        self._leases = leases(self.writing)
        self._clock = clock
        self._decrypt = decrypt
        self._parsed: dict[Ref, RecordFile] = {}
        self._loaded: dict[Ref, tuple[files.Signature | None, Record | None]] = {}
        self._swept = False

    #: Whether this is who moves the records: it may write where others are refused.
    copying = False

    def place(self) -> StorePlace:
        """Its id, and whether its records are moving."""
        return read_place(self.layout)

    def set_place(self, place: StorePlace) -> StorePlace:
        """Say in the tree whether its records are moving."""
        with self.writing():
            if not read_place(self.layout).id:
                mark(self.layout, os.urandom)
            write_place(self.layout, place)
        return read_place(self.layout)

    @property
    def description(self) -> str:
        """For messages."""
        return f"directory {self.layout.tree}"

    def account(self) -> str:
        """'': files know no users."""
        return ""

    @property
    def leases(self) -> Leases:
        """The locks of this store."""
        return self._leases

    def get(self, kind: str, name: str) -> Record | None:
        """The record, or None. Raises TalosError `RecordBroken` for a file that cannot be read as one."""
        try:
            return self._load(kind, name)
        except YamlProblem as problem:
            raise _broken(self.layout.spec(kind, name), problem.line, problem.message) from None
        except StateBroken as problem:
            raise _broken(self.layout.status(kind, name), problem.line, problem.message) from None

    def list(self, kind: str) -> Listing:
        """All records of a kind, what is broken, and the approved machines whose file has vanished."""
        records: list[Record] = []
        broken: list[Broken] = []
        names: set[str] = set()
        for name, path in _files_in(self.layout.folder(kind)):
            names.add(name)
            try:
                if path.suffix != ".yaml":
                    raise YamlProblem(f"the file has to be called {name}.yaml")
                record = self._load(kind, name)
            except YamlProblem as problem:
                broken.append(Broken(kind, name, str(path), problem.line, problem.message))
            except StateBroken as problem:
                broken.append(Broken(kind, name, str(self.layout.status(kind, name)), problem.line, problem.message))
            except TalosError as error:
                if error.reason != "InvalidInput":
                    raise
                broken.append(Broken(kind, name, str(path), 0, error.message))
            else:
                records += [record] if record is not None else []
        return Listing(tuple(records), tuple(broken), tuple(self._vanished(kind, names)))

    def _load(self, kind: str, name: str) -> Record | None:
        """Spec and status that belong together, read without the lock: where no status fits, a writer may be between the two
        files, so the spec is looked at again. Raises YamlProblem, StateBroken, TalosError."""
        path = self.layout.spec(kind, name)
        signature = files.signature(path, self.layout.status(kind, name))
        known = self._loaded.get(Ref(kind, name))
        if known is None or signature is None or known[0] != signature:
            known = self._loaded[Ref(kind, name)] = (signature, self._load_anew(kind, name, path))
        return known[1]

    def _load_anew(self, kind: str, name: str, path: Path) -> Record | None:
        content = _spec_bytes(path)
        while content is not None:
            record = self._record(self._read(kind, name, content), self._read_state(kind, name))
            again = content if record.status_version else _spec_bytes(path)
            if again == content:
                return record
            content = again
        return None

    def _vanished(self, kind: str, names: set[str]) -> Iterator[str]:
        if kind == MACHINE:
            for name, dummy in _files_in(self.layout.state / SCHEMAS[kind].folder, (".json",)):
                if name not in names:
                    try:
                        state = self._read_state(kind, name)
                    except (StateBroken, TalosError) as problem:
                        if isinstance(problem, TalosError) and problem.reason != "InvalidInput":
                            raise
                        continue
                    if state is not None and state.approved and not files.is_there(self.layout.spec(kind, name)):
                        yield name

    def _parse(self, kind: str, name: str, content: bytes) -> RecordFile:
        try:
            return self._read(kind, name, content)
        except YamlProblem as problem:
            raise _broken(self.layout.spec(kind, name), problem.line, problem.message) from None

    def _read(self, kind: str, name: str, content: bytes) -> RecordFile:
        """The file of a record, parsed anew only when its bytes changed. Raises YamlProblem."""
        ref = Ref(kind, name)
        known = self._parsed.get(ref)
        if known is None or known.record.resource_version != record_file.version_of(content):
            known = record_file.read(kind, name, content, str(self.layout.spec(kind, name)))
            self._parsed[ref] = known
        return known

    def _state(self, kind: str, name: str) -> RecordState | None:
        try:
            return self._read_state(kind, name)
        except StateBroken as problem:
            raise _broken(self.layout.status(kind, name), problem.line, problem.message) from None

    def _read_state(self, kind: str, name: str) -> RecordState | None:
        try:
            content = files.read_entry(self.layout.status(kind, name))
        except NotPlain as problem:
            raise StateBroken(f"it {problem}", 0) from None
        return state_file.read(content) if content is not None else None

    @staticmethod
    def _record(file: RecordFile, state: RecordState | None) -> Record:
        """File and state as one record. A state of another uid is not shown, only told of."""
        uid = record_uid(file.record.kind, file.record.name, file.record.spec)
        record = dataclasses.replace(file.record, uid=uid, generation=1, status_set_aside=state is not None)
        if state is None or not state.belongs_to(record):
            return record
        grown = 0 if state.spec_hash == spec_hash(record.spec) else 1
        status = {**state.status, "recordUID": uid} if state.status.get("recordUID") else state.status
        return dataclasses.replace(record, generation=state.generation + grown, status=status, status_version=state.version, status_set_aside=False)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writers' lock, in a store that has not moved away."""
        files.make_folder(self.layout.state)
        with self._lock.held():
            if not self.copying:
                read_place(self.layout).refuse(f"directory {self.layout.tree}")
            note_to_git(self.layout)
            if not self._swept:
                for folder in (self.layout.tree, self.layout.state):
                    for inner in (folder, *(folder / schema.folder for schema in SCHEMAS.values())):
                        files.sweep(inner)
                self._swept = True
            yield

    def create(self, record: Record) -> Record:
        """A new file, and the status with it. A status of that name that was left over is set aside, never inherited."""
        checked(record, None, Context())
        path = self.layout.spec(record.kind, record.name)
        with self.writing():
            if files.is_there(path):
                raise TalosError("RecordExists", f"{record.kind} {record.name} is there already ({path}).", "Choose another name, or change that record.")
            self._set_aside(record.kind, record.name)
            content = record_file.new_content(record)
            file = self._read_own(record.kind, record.name, content)
            state = self._first_state(file.record, record.status)
            if state is not None:
                self._write_state(file.record, state)
            files.make_folder(path.parent)
            files.write_atomically(path, content)
            self._parsed[record.ref] = file
            return self._record(file, self._state(record.kind, record.name))

    def _first_state(self, record: Record, status: JsonMap) -> RecordState | None:
        """The state that a new record begins with; an approval always leaves a status (section 4)."""
        approved = approval_state(record) == "approved"
        if not status and not approved:
            return None
        uid = record_uid(record.kind, record.name, record.spec)
        return RecordState(uid, 1, spec_hash(record.spec), as_status(status, uid))

    def update(self, record: Record, spec: JsonMap, *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        """Write over the very version that was read, changing no other byte of the file."""
        with self.writing():
            file, state, before = self._current(record.ref)
            if before.resource_version != record.resource_version:
                raise record_changed(before)
            refuse_tracked(before, override)
            wanted = dataclasses.replace(before, spec=spec, labels=before.labels if labels is None else labels,
                                         annotations=before.annotations if annotations is None else annotations)
            checked(wanted, before, context_of(before, spec, self.list))
            content = self._edited(file, spec, labels, annotations)
            if record_file.version_of(content) == before.resource_version:
                return before
            changed = self._read_own(record.kind, record.name, content)
            self._write_changed(changed, content, before, state)
            return self._record(changed, self._state(record.kind, record.name))

    def _write_changed(self, file: RecordFile, content: bytes, before: Record, state: RecordState | None) -> None:
        """Spec and state so that a crash between any two writes leaves a pair that belongs together."""
        record = file.record
        uid = record_uid(record.kind, record.name, record.spec)
        approves = record.kind == MACHINE and approval_state(record) == "approved" and approval_state(before) != "approved"
        if state is not None and not state.belongs_to(before):
            if approves:
                self._set_aside(record.kind, record.name)
            state = None
        if state is None and approves:
            state = RecordState(before.uid, before.generation, spec_hash(before.spec))
        if state is not None:
            status = as_status(state.status, before.uid) if approves else state.status
            state = dataclasses.replace(state, uid=uid, former="" if uid == before.uid else before.uid, status=status)
            if uid != before.uid or approves:
                state = self._write_state(record, state)
        files.write_atomically(self.layout.spec(record.kind, record.name), content)
        self._parsed[record.ref] = file
        if state is not None:
            status = {**state.status, "recordUID": uid} if state.status.get("recordUID") else state.status
            hashed = spec_hash(record.spec)
            generation = before.generation + (0 if hashed == spec_hash(before.spec) else 1)
            self._write_state(record, dataclasses.replace(state, former="", status=status, generation=generation, spec_hash=hashed))

    def _edited(self, file: RecordFile, spec: JsonMap, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> bytes:
        try:
            return record_file.changed_content(file, spec, labels, annotations)
        except CannotEdit as problem:
            raise TalosError(
                "RecordInvalid", f"{file.record.source}, line {problem.line}: this change cannot be made without touching what stands around it "
                "(an anchor or a merge that other places use).", "Write the value out at that place, or make the change by hand.") from None

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        """Change the status of the record with that uid, as it is now.

        An approved machine whose status was lost stays so: only a change that sets `recordUID` (a person's trust) gives it
        one again; any other raises `StatusMissing`.
        """
        with self.writing():
            file, state, record = self._current(ref)
            if record.uid != uid:
                raise record_changed(record)
            if expect is not None and (expect.resource_version, expect.status_version) != (record.resource_version, record.status_version):
                raise record_changed(record)
            status = change(copy.deepcopy(dict(record.status)))
            refuse_lost_status(record, status, "the state folder")
            new = as_status(status, uid)
            if new == record.status:
                return record
            if state is not None and not state.belongs_to(record):
                self._set_aside(ref.kind, ref.name)
                state = None
            self._write_state(record, dataclasses.replace(
                state or RecordState(uid), uid=uid, former="", generation=record.generation, spec_hash=spec_hash(record.spec), status=new))
            return self._record(file, self._state(ref.kind, ref.name))

    def delete(self, record: Record) -> None:
        """Remove the record that was read, then its status."""
        with self.writing():
            now = self._current(record.ref)[2]
            if now.resource_version != record.resource_version:
                raise record_changed(now)
            files.remove(self.layout.spec(record.kind, record.name))
            files.remove(self.layout.status(record.kind, record.name))
            self._parsed.pop(record.ref, None)

    def _current(self, ref: Ref) -> tuple[RecordFile, RecordState | None, Record]:
        content = files.read_bytes(self.layout.spec(ref.kind, ref.name))
        if content is None:
            raise TalosError("RecordNotFound", f"{ref.kind} {ref.name} is not in the store "
                                               f"({self.layout.tree}).", "Look at the name, or create the record first.")
        file = self._parse(ref.kind, ref.name, content)
        state = self._state(ref.kind, ref.name)
        return file, state, self._record(file, state)

    def _read_own(self, kind: str, name: str, content: bytes) -> RecordFile:
        """What is about to be written, read as every later run will read it."""
        try:
            return record_file.read(kind, name, content, str(self.layout.spec(kind, name)))
        except YamlProblem as problem:
            raise TalosError("RecordInvalid", f"{kind} {name} cannot be written: {problem.message}.", "Correct the values that were given.") from None

    def _write_state(self, record: Record, state: RecordState) -> RecordState:
        path = self.layout.status(record.kind, record.name)
        state = dataclasses.replace(state, revision=state.revision + 1, approved=record.kind == MACHINE and approval_state(record) == "approved")
        files.make_folder(path.parent)
        files.write_atomically(path, state_file.content(state))
        return state

    def _set_aside(self, kind: str, name: str) -> None:
        """Keep a status that is not this record's where a person finds it."""
        path = self.layout.status(kind, name)
        content = files.read_bytes(path)
        if content is not None:
            target = self.layout.set_aside(kind, name, content)
            files.make_folder(target.parent)
            files.move(path, target)

    def record_event(self, event: Event) -> None:
        """Append one line to the log of events."""
        with self.writing():
            event_log.append(self.layout.events, event, self._clock.now())

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        """All events in order of writing, or those of one record."""
        return event_log.read(self.layout.events, ref)

    def bundle(self, name: str) -> bytes:
        """The secrets bundle of that name, in clear. Raises `SecretsUnavailable`, also where others can read it."""
        return bundle.read(self.layout.secret(name), name, self._decrypt)

    def bundle_form(self, name: str) -> str:
        """`absent`, `clear` or `vaulted`."""
        return bundle.form(self.layout.secret(name))

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        """Put a bundle in clear into the store. Raises `RecordExists`, `SecretsUnavailable` or `BundleExposed`."""
        path = self.layout.secret(name)
        with self.writing():
            bundle.prepare_folder(path.parent)
            bundle.write(path, data, replace=replace)


def _files_in(folder: Path, endings: tuple[str, ...] = (".yaml", ".yml")) -> list[tuple[str, Path]]:
    """Name and path of each record's file, sorted; hidden files and everything else are none of ours."""
    try:
        entries = [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.store_error(error, "read", folder) from error
    found = [(os.path.splitext(name)[0], folder / name) for name in entries if not name.startswith(".") and name.endswith(endings)]
    return sorted(found)


def _spec_bytes(path: Path) -> bytes | None:
    """A record's file as bytes. Raises YamlProblem for an entry of that name that is no file, TalosError."""
    try:
        return files.read_entry(path, _LARGEST_RECORD)
    except NotPlain as problem:
        raise YamlProblem(f"it {problem}") from None


def _broken(path: Path, line: int, message: str) -> TalosError:
    where = f"{path}, line {line}" if line else str(path)
    return TalosError("RecordBroken", f"{where}: {message.rstrip('.')}.", _REPAIR)
