# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records that a machine's decision needs: itself, its cluster, all machines of the cluster and of the store (design law 12)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from .._decide.approved import approved_control_planes, in_cluster
from .._decide.names import nearest
from .._model.approval import was_sent
from .._model.credentials import Credentials
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, dial_endpoint
from .._model.observations import Endpoint
from .._model.observed import Observed, Present, Unknown
from .._model.ports import Ports, Store
from .._model.plan import Target
from .._model.records import CLUSTER, MACHINE, JsonMap, Listing, Record, text_at
from .pass_store import PassStore


@dataclass(frozen=True)
class MachineView:
    """A machine's record with what surrounds it, as one reading of the store gave it."""

    machine: Record
    cluster: Record | None
    siblings: tuple[Record, ...]
    everybody: tuple[Record, ...] = ()

    @property
    def target(self) -> Target:
        """What a step on this machine names."""
        return Target(name=self.machine.name, cluster=cluster_of(self.machine), cluster_id=self.cluster.uid if self.cluster else "",
                      uid=self.machine.uid, uuid=text_at(self.machine.spec, "identity", "uuid").lower(),
                      address=text_at(self.machine.spec, "endpoint"))


def need_store(ports: Ports) -> Store:
    """The store, where a record was named."""
    if ports.store is None:
        raise TalosError("StoreMissing", "A record was named, and there is no store.", "Set store and store_path.")
    return ports.store


def check_names(store: Store, names: Iterable[str]) -> None:
    """A name that no record has is a mistake of whoever wrote it, not a machine that is held. Raises TalosError `RecordNotFound`."""
    listing = store.list(MACHINE)
    known = {record.name for record in listing.records} | {broken.name for broken in listing.broken}
    missing = sorted({name for name in names if name and name not in known})
    if missing:
        raise TalosError("RecordNotFound", f"There is no machine {' and no machine '.join(missing)} in {store.description}.",
                         "Check the name; talos_machine_info lists the machines.")


def no_cluster(store: Store, name: str) -> TalosError:
    """What is raised for the name of a cluster that has no record."""
    near = nearest(name, (record.name for record in store.list(CLUSTER).records))
    return TalosError("RecordNotFound", f"There is no cluster {name} in {store.description}.", near or "Check the name; talos_cluster_info lists the clusters.")


def record_in(listing: Listing, name: str, what: str, where: str) -> Record:
    """The record of that name; `what` is machine or cluster. Raises TalosError `RecordBroken` or `RecordNotFound`."""
    for record in listing.records:
        if record.name == name:
            return record
    for entry in listing.broken:
        if entry.name == name:
            raise TalosError("RecordBroken", f"{what.capitalize()} {name} cannot be read ({entry.source}, line {entry.line}): {entry.sentence}",
                             "Mend the file.")
    near = nearest(name, (record.name for record in listing.records))
    raise TalosError("RecordNotFound", f"There is no {what} {name} in {where}.", near or f"Check the name; without names all {what}s are shown.")


def read_machine(store: Store, name: str) -> MachineView:
    """One machine with its cluster and siblings. Raises TalosError `RecordNotFound`."""
    machine = store.get(MACHINE, name)
    if machine is None:
        raise TalosError("RecordNotFound", f"There is no machine {name} in {store.description}.",
                         "Check the name; talos_machine_info lists the machines.")
    cluster = store.get(CLUSTER, cluster_of(machine))
    everybody = store.list(MACHINE).records
    siblings = store.machines_of(cluster_of(machine)) if isinstance(store, PassStore) else in_cluster(everybody, cluster_of(machine))
    return MachineView(machine, cluster, siblings, everybody)


def address_of(view: MachineView, allow_loopback: bool) -> Observed[Endpoint]:
    """Where the machine is dialled, or why not (`EndpointRefused`, `InvalidAddress`)."""
    try:
        endpoint = dial_endpoint(view.machine)
        rules_for(view.cluster, allow_loopback, endpoint)
    except TalosError as error:
        return Unknown("EndpointRefused", error.message)
    return Present(endpoint)


def other_control_planes(view: MachineView) -> tuple[Endpoint, ...]:
    """Where the cluster's other control planes that were sent a configuration are dialled."""
    return sent_control_planes(other for other in view.siblings if other.name != view.machine.name)


def sent_control_planes(machines: Iterable[Record]) -> tuple[Endpoint, ...]:
    """Where those of these machines are dialled that are approved control planes and were sent a configuration."""
    found: list[Endpoint] = []
    for machine in approved_control_planes(machines):
        if was_sent(machine):
            with suppress(TalosError):
                found.append(dial_endpoint(machine))
    return tuple(found)


def rules_for(cluster: Record | None, allow_loopback: bool, endpoint: Endpoint) -> None:
    """Raises TalosError `EndpointRefused` for an address that nobody dials in that cluster."""
    spec: JsonMap | None = cluster.spec if cluster is not None else None
    dial_rules(spec, allow_loopback).check(endpoint.host)


def credentials_for(ports: Ports, cluster: str, record: Record | None) -> Observed[Credentials]:
    """The credentials for a cluster's nodes, or why there are none."""
    try:
        return Present(ports.credentials(cluster, text_at(record.spec, "secretsRef", "name") if record else ""))
    except TalosError as error:
        return Unknown(error.reason, error.text)
