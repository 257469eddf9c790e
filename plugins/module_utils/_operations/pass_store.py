# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The store as many looks share it: each kind is listed once a pass instead of once a machine (design law 12 without O(n²)).

A machine's own record is always read anew; who else there is, and the cluster that they share, are those of the pass, with what was
written through this since. What is done under a lease is decided on the store itself, never on this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from .._model.approval import approval_state, was_sent
from .._model.errors import TalosError
from .._model.machine import cluster_of, dial_endpoint
from .._model.observations import Endpoint
from .._model.ports import Leases, RecentListings, Store
from .._model.records import MACHINE, Event, JsonMap, Listing, Record, Ref


class PassStore:
    """Implements the port `Store` over another one. `renew` forgets the listings, so that the next pass reads them again."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._recent = inner.recent if isinstance(inner, RecentListings) else inner.list
        self._listed: dict[str, Listing] = {}
        self._shared: dict[Ref, Record | None] = {}
        self._machines: dict[str, Record] = {}
        self._everybody: tuple[Record, ...] | None = None
        self._grouped: dict[str, dict[str, Record]] = {}
        self._clusters: dict[str, tuple[Record, ...]] = {}
        self._addresses: dict[Endpoint, tuple[str, ...]] | None = None

    def renew(self) -> None:
        """Begin a pass."""
        self._listed.clear()
        self._shared.clear()
        self._forget()

    def _forget(self) -> None:
        self._everybody, self._addresses = None, None
        self._grouped.clear()
        self._clusters.clear()

    @property
    def inner(self) -> Store:
        """The store itself."""
        return self._inner

    @property
    def description(self) -> str:
        return self._inner.description

    def account(self) -> str:
        return self._inner.account()

    @property
    def leases(self) -> Leases:
        return self._inner.leases

    # What is shared.

    def list(self, kind: str) -> Listing:
        """The listing of this pass, with what this run wrote since."""
        if kind not in self._listed:
            self._listed[kind] = self._recent(kind)
            if kind == MACHINE:
                self._machines = {record.name: record for record in self._listed[kind].records}
                self._forget()
        if kind != MACHINE:
            return self._listed[kind]
        if self._everybody is None:
            self._everybody = tuple(self._machines.values())
            self._listed[kind] = replace(self._listed[kind], records=self._everybody)
        return self._listed[kind]

    def known(self, name: str) -> Record | None:
        """A machine as the listing of this pass has it; nothing is read again for it."""
        self.list(MACHINE)
        return self._machines.get(name)

    def machines_of(self, cluster: str) -> tuple[Record, ...]:
        """All machines of one cluster, grouped once a pass. What this run writes takes the place of what stood there: grouping anew after
        each write would cost the more the more machines there are."""
        everybody = self.list(MACHINE).records
        if not self._grouped:
            for machine in everybody:
                self._grouped.setdefault(cluster_of(machine), {})[machine.name] = machine
        if cluster not in self._clusters:
            self._clusters[cluster] = tuple(self._grouped.get(cluster, {}).values())
        return self._clusters[cluster]

    def dialled_at(self, endpoint: Endpoint) -> tuple[str, ...]:
        """The approved machines that are dialled at this address and were sent nothing yet."""
        if self._addresses is None:
            found: dict[Endpoint, tuple[str, ...]] = {}
            for machine in self.list(MACHINE).records:
                if approval_state(machine) != "approved" or was_sent(machine):
                    continue
                try:
                    address = dial_endpoint(machine)
                except TalosError:
                    continue
                found[address] = (*found.get(address, ()), machine.name)
            self._addresses = found
        return self._addresses.get(endpoint, ())

    def _wrote(self, record: Record) -> Record:
        if record.kind == MACHINE and MACHINE in self._listed:
            before = self._machines.get(record.name)
            if before is None:
                self._listed.pop(MACHINE)
            self._machines[record.name] = record
            if before is None or cluster_of(before) != cluster_of(record) or not self._grouped:
                self._forget()
            else:
                self._everybody, self._addresses = None, None
                self._grouped[cluster_of(record)][record.name] = record
                self._clusters.pop(cluster_of(record), None)
        elif record.kind != MACHINE:
            self._listed.pop(record.kind, None)
            self._shared.pop(record.ref, None)
        return record

    def reread(self, kind: str, name: str) -> None:
        """Take a record that was written past this store into the listing; its cluster may have been written too."""
        self._shared.clear()
        record = self._inner.get(kind, name)
        if record is not None:
            self._wrote(record)

    # What goes through.

    def get(self, kind: str, name: str) -> Record | None:
        if kind == MACHINE:
            return self._inner.get(kind, name)
        ref = Ref(kind, name)
        if ref not in self._shared:
            self._shared[ref] = self._inner.get(kind, name)
        return self._shared[ref]

    def create(self, record: Record) -> Record:
        return self._wrote(self._inner.create(record))

    def update(self, record: Record, spec: JsonMap, *, annotations: Mapping[str, str] | None = None,
               labels: Mapping[str, str] | None = None, override: bool = False) -> Record:
        return self._wrote(self._inner.update(record, spec, annotations=annotations, labels=labels, override=override))

    def patch_status(self, ref: Ref, uid: str, change: Callable[[dict[str, object]], dict[str, object]], *,
                     expect: Record | None = None) -> Record:
        return self._wrote(self._inner.patch_status(ref, uid, change, expect=expect))

    def delete(self, record: Record) -> None:
        self._inner.delete(record)
        self.renew()

    def record_event(self, event: Event) -> None:
        self._inner.record_event(event)

    def events(self, ref: Ref | None = None) -> tuple[Event, ...]:
        return self._inner.events(ref)

    def bundle(self, name: str) -> bytes:
        return self._inner.bundle(name)

    def bundle_form(self, name: str) -> str:
        return self._inner.bundle_form(name)

    def write_bundle(self, name: str, data: bytes, *, replace: bool = False) -> None:
        self._inner.write_bundle(name, data, replace=replace)
