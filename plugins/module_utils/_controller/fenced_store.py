# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The store as a run sees it that may work only while it leads (design sections 13 and 18).

A process that was frozen for longer than its lead and is woken has old observations on their way into records that somebody else keeps by
now. `still` raises TalosError then; it is asked right before each write, and again when a write is decided anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .._model.ports import Leases, RecentListings, Store
from .._model.records import Event, JsonMap, Listing, Record, Ref


class FencedStore:
    """Implements the port `Store` over another one. Events go through: they tell what was done."""

    def __init__(self, inner: Store, still: Callable[[], None]) -> None:
        self._inner = inner
        self._still = still

    @property
    def description(self) -> str:
        return self._inner.description

    def account(self) -> str:
        return self._inner.account()

    @property
    def leases(self) -> Leases:
        return self._inner.leases

    def get(self, kind: str, name: str) -> Record | None:
        return self._inner.get(kind, name)

    def list(self, kind: str) -> Listing:
        return self._inner.list(kind)

    def recent(self, kind: str) -> Listing:
        """The listing as a watch has it, where the store watches."""
        return self._inner.recent(kind) if isinstance(self._inner, RecentListings) else self._inner.list(kind)

    def create(self, record: Record) -> Record:
        self._still()
        return self._inner.create(record)

    def update(self, record: Record, spec: JsonMap, *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        self._still()
        return self._inner.update(record, spec, annotations=annotations, labels=labels, override=override)

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        def fenced(status: dict[str, object]) -> dict[str, object]:
            self._still()
            return change(status)

        return self._inner.patch_status(ref, uid, fenced, expect=expect)

    def delete(self, record: Record) -> None:
        self._still()
        self._inner.delete(record)

    def record_event(self, event: Event) -> None:
        self._inner.record_event(event)

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        return self._inner.events(ref)

    def bundle(self, name: str) -> bytes:
        return self._inner.bundle(name)

    def bundle_form(self, name: str) -> str:
        return self._inner.bundle_form(name)

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        self._still()
        self._inner.write_bundle(name, data, replace=replace)
