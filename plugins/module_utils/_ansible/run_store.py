# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The store as one run sees it: in check mode nothing is written and the would-be records lie over the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from .._model.errors import CheckModeWrite
from .._model.ports import LeaseView, Leases, RecentListings, Store
from .._model.records import BUNDLE, Event, JsonMap, Listing, Record, Ref, text_at
from .overlay import Overlay
from .redaction import Redactor

T = TypeVar("T")


class ReadOnlyLeases:
    """Leases of a check run: they can be seen, not taken."""

    def __init__(self, inner: Leases) -> None:
        self._inner = inner

    def read(self, name: str) -> LeaseView | None:
        return self._inner.read(name)

    def acquire(self, name: str, holder: str, purpose: str, duration: float) -> LeaseView:
        raise CheckModeWrite(f"lease {name}")

    def renew(self, lease: LeaseView) -> LeaseView:
        raise CheckModeWrite(f"lease {lease.name}")

    def release(self, lease: LeaseView) -> None:
        raise CheckModeWrite(f"lease {lease.name}")

    def no_lock(self) -> str:
        return self._inner.no_lock()

    def take_over(self) -> None:
        raise CheckModeWrite("the store would be taken over")


class RunStore:
    """Implements the port `Store` over another one. Each secrets bundle that is read is remembered for masking."""

    def __init__(self, inner: Store, redactor: Redactor, *, check: bool, overlay: Overlay | None = None) -> None:
        self._inner = inner
        self._redactor = redactor
        self._check = check
        self._overlay = overlay if check else None
        #: Whether something of the people's was written: a record, its spec, a bundle.
        self.wrote = False

    @property
    def description(self) -> str:
        return self._inner.description

    def account(self) -> str:
        """Who the store knows this run as, '' where it knows nobody."""
        return self._inner.account()

    @property
    def leases(self) -> Leases:
        return ReadOnlyLeases(self._inner.leases) if self._check else self._inner.leases

    def get(self, kind: str, name: str) -> Record | None:
        if self._overlay is not None:
            known, record = self._overlay.get(Ref(kind, name))
            if known:
                return record
        return self._inner.get(kind, name)

    def recorded(self, kind: str, name: str) -> Record | None:
        """The record as it is, without a word of the check run."""
        return self._inner.get(kind, name)

    def list(self, kind: str) -> Listing:
        listing = self._inner.list(kind)
        over = self._overlay.all(kind) if self._overlay is not None else {}
        if not over:
            return listing
        records = [record for record in listing.records if record.name not in over]
        records.extend(record for record in over.values() if record is not None)
        return replace(listing, records=tuple(sorted(records, key=lambda record: record.name)))

    def recent(self, kind: str) -> Listing:
        """The listing as a watch has it, where the store watches."""
        if self._overlay is None and isinstance(self._inner, RecentListings):
            return self._inner.recent(kind)
        return self.list(kind)

    def create(self, record: Record) -> Record:
        created = self._inner.create(self._write(record, f"{record.kind} {record.name}"))
        self.wrote = True
        return created

    def update(self, record: Record, spec: JsonMap, *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        updated = self._inner.update(self._write(record, f"{record.kind} {record.name}"), spec, annotations=annotations, labels=labels, override=override)
        self.wrote = True
        return updated

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        return self._inner.patch_status(self._write(ref, f"the status of {ref.kind} {ref.name}"), uid, change, expect=expect)

    def delete(self, record: Record) -> None:
        self._inner.delete(self._write(record, f"{record.kind} {record.name}"))
        self.wrote = True

    def record_event(self, event: Event) -> None:
        self._inner.record_event(self._write(event, f"an event of {event.ref.kind} {event.ref.name}"))

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        return self._inner.events(ref)

    def bundle(self, name: str) -> bytes:
        would_be = self._overlay.get(Ref(BUNDLE, name))[1] if self._overlay is not None else None
        data = text_at(would_be.spec, "text").encode() if would_be is not None else self._inner.bundle(name)
        self._redactor.add_document(data.decode("utf-8", "replace"))
        return data

    def bundle_form(self, name: str) -> str:
        if self._overlay is not None and self._overlay.get(Ref(BUNDLE, name))[1] is not None:
            return "clear"
        return self._inner.bundle_form(name)

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        self._redactor.add_document(data.decode("utf-8", "replace"))
        self._inner.write_bundle(name, self._write(data, f"secrets bundle {name}"), replace=replace)
        self.wrote = True

    def _write(self, value: T, what: str) -> T:
        if self._check:
            raise CheckModeWrite(f"{what} would be written")
        return value
