# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all looks of a run share: the listings of this pass, the renders, and which machines are acted on."""

from __future__ import annotations

from dataclasses import replace

from .._decide.approved import is_approved, is_control_plane
from .._decide.discovery_interval import discovery_interval, reset_under_way
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.ports import Ports
from .._model.records import BACKUP, CLUSTER, CONFIG_PATCH, MACHINE, RECLAIM, Broken, Listing, Record, list_at, text_at
from .._operations.compared_memory import ComparedMemory
from .._operations.pass_store import PassStore
from .._operations.provisioning_reads import Surroundings
from .._operations.record_reads import check_names, need_store
from .._operations.rendering import Renderer
from .._operations.select import selected
from . import backing_up, reclaiming
from .landing import OUT_OF_REACH
from .request import Request


class World:
    """Renewed now and then; between two renewals the listings stay as they are, with what this run wrote itself.

    `around` is for looking and for steps without a lock, `live` for steps under one: those are decided on the store itself.
    """

    def __init__(self, request: Request, ports: Ports) -> None:
        self._request = request
        self.store = PassStore(need_store(ports))
        self._ports, self._live = replace(ports, store=self.store), ports
        self._patches: tuple[tuple[str, str], ...] | None = None
        self._named = frozenset(request.machines)
        self._memory = ComparedMemory()
        self._chosen: frozenset[str] | None = None
        self._last_read: dict[str, Record | None] = {}
        self.renewed = float("-inf")
        self.around = self._surroundings(self._ports, Renderer(self.store))
        self.live = self._surroundings(ports, Renderer(self.store))
        self._checked = False

    def _surroundings(self, ports: Ports, renderer: Renderer) -> Surroundings:
        request = self._request
        return Surroundings(ports, request.timing, request.allow_loopback, renderer, names=request.machines, allow_reboot=request.allow_reboot,
                            drains=request.drain, memory=self._memory, discard_etcd=request.discard_etcd)

    def renew(self) -> tuple[str, ...]:
        """Read the listings anew; gives the names that are acted on. Raises TalosError for a scope that names nobody, or what the
        store raises."""
        self.store.renew()
        self.renewed = self._ports.clock.monotonic()
        for cluster in self.store.list(CLUSTER).records:
            self._last_read[cluster.name] = cluster
            if (at := reset_under_way(cluster)) is not None:
                self._memory.reset_seen(cluster.name, at)
        patches = tuple((record.name, record.resource_version) for record in self.store.list(CONFIG_PATCH).records)
        if patches != self._patches:
            self._patches = patches
            renderer = Renderer(self.store)
            self.around, self.live = self._surroundings(self._ports, renderer), self._surroundings(self._live, renderer)
        return self._scope()

    def _scope(self) -> tuple[str, ...]:
        request, listing = self._request, self.store.list(MACHINE)
        if not self._checked:
            self._check()
            if request.select:
                self._chosen = frozenset(selected(listing.records, request.select))
            self._checked = True
        return tuple(record.name for record in listing.records if self._wanted(record))

    def _check(self) -> None:
        """Raises TalosError `RecordNotFound` for a name that no record has, broken ones included."""
        clusters = _names(self.store.list(CLUSTER))
        check_names(self.store, self._request.machines)
        self._check_discarded()
        for name in self._request.clusters:
            if not name.strip():
                raise TalosError("InvalidInput", "A name in clusters is empty.", "Take it out; without clusters it is every machine of the store.")
            if name not in clusters:
                raise TalosError("RecordNotFound", f"There is no cluster {name} in {self.store.description}.",
                                 "Check the name, or create it with talos_cluster.")

    def _check_discarded(self) -> None:
        """An etcd is given up by typing the name of its own cluster, for a control plane (section 12)."""
        given = self._request.discard_etcd
        for machine in self.store.list(MACHINE).records if given else ():
            if machine.name not in self._named:
                continue
            if not is_control_plane(machine):
                raise TalosError("InvalidInput", f"discard_etcd is given, and machine {machine.name} is no control plane.", "Leave discard_etcd out.")
            if cluster_of(machine) != given:
                raise TalosError("InvalidInput", f"discard_etcd is {given!r}, and the cluster of machine {machine.name} is {cluster_of(machine)}.",
                                 "Type the name of that cluster when its etcd is to be given up.")

    def _wanted(self, machine: Record) -> bool:
        request = self._request
        return ((not request.clusters or cluster_of(machine) in request.clusters) and (not self._named or machine.name in self._named)
                and (self._chosen is None or machine.name in self._chosen))

    @property
    def whole(self) -> bool:
        """Whether whole clusters are acted on, so that machines nobody knows yet belong to the scope."""
        return not self._request.machines and not self._request.select

    def discovering(self) -> tuple[str, ...]:
        """The clusters whose registered addresses are probed in this run."""
        if not self.whole or not self._request.discover:
            return ()
        return tuple(record.name for record in self.store.list(CLUSTER).records
                     if (not self._request.clusters or record.name in self._request.clusters)
                     and (list_at(record.spec, "discovery", "addresses") or list_at(record.spec, "discovery", "ranges")))

    def beside(self) -> tuple[str, ...]:
        """The subjects with a record of their own that are looked after in this run: backups with a schedule, orders that are not over."""
        if not self.whole:
            return ()
        backups = (record for record in self.store.list(BACKUP).records if text_at(record.spec, "schedule"))
        orders = (record for record in self.store.list(RECLAIM).records if reclaiming.is_open(record))
        return (*(backing_up.subject_of(record.name) for record in backups if self._of_scope(record)),
                *(reclaiming.subject_of(record.name) for record in orders if self._of_scope(record)))

    def _of_scope(self, record: Record) -> bool:
        return not self._request.clusters or text_at(record.spec, "clusterRef") in self._request.clusters

    def discovery_after(self, cluster: str) -> float:
        """Seconds between two passes over the addresses of the cluster."""
        return discovery_interval(self._memory.last_reset(cluster), self._request.timing, self._ports.clock.now())

    def has_approved(self, name: str) -> bool:
        """Whether that is an approved machine, of whatever scope, by the listing of this pass; False while the store cannot be read."""
        try:
            record = self.store.known(name)
        except TalosError:
            return False
        return record is not None and is_approved(record)

    def cluster(self, name: str) -> Record | None:
        """A cluster's record as it is now, and while the store is out of reach as it was last read: what is done under its lock is decided on the
        store itself."""
        try:
            found = self.store.inner.get(CLUSTER, name) if name else None
        except TalosError as error:
            if error.reason != OUT_OF_REACH or name not in self._last_read:
                raise
            return self._last_read[name]
        self._last_read[name] = found
        return found

    def note(self, name: str) -> None:
        """A machine was written to past the listing: the listing has it as it is now."""
        self.store.reread(MACHINE, name)

    def broken(self) -> tuple[Broken, ...]:
        """Records that cannot be read; whose they are is not known, so they are told in every run, and those of backups and orders wherever they are
        looked after."""
        beside = (BACKUP, RECLAIM) if self.whole else ()
        return tuple(entry for kind in (CLUSTER, MACHINE, CONFIG_PATCH, *beside) for entry in self.store.list(kind).broken)

    def concerns(self, broken: Broken) -> bool:
        """Whether a machine whose record cannot be read may be one of those that are acted on."""
        return broken.kind == MACHINE and (self.whole or broken.name in self._named)

    def vanished(self) -> tuple[str, ...]:
        return self.store.list(MACHINE).vanished


def _names(listing: Listing) -> set[str]:
    """Every name that a file stands for, readable or not."""
    return {record.name for record in listing.records} | {entry.name for entry in listing.broken}
