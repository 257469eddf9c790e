# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which machines of a cluster count for provisioning, the lock and the bootstrap (design sections 9 and 13)."""

from __future__ import annotations

from collections.abc import Iterable

from .._model.approval import approval_state, was_sent
from .._model.machine import cluster_of
from .._model.records import Record, condition_of, text_at


def is_approved(machine: Record) -> bool:
    return approval_state(machine) == "approved"


def is_control_plane(machine: Record) -> bool:
    return text_at(machine.spec, "role") == "controlplane"


def is_stored(machine: Record) -> bool:
    """A node accepted a configuration for it."""
    return bool(text_at(machine.status, "configStoredAt"))


def has_converged(machine: Record) -> bool:
    """It joined once, or was adopted (section 3)."""
    return bool(text_at(machine.status, "appliedConfigHash"))


def is_followed(machine: Record) -> bool:
    """A configuration was stored and it has not joined yet (section 9, step 3)."""
    return is_stored(machine) and not has_converged(machine)


def held_for_adoption(machine: Record) -> bool:
    """It was adopted and not released yet: nothing is sent to it, and it is not followed (section 15). A person's own hold is an annotation."""
    ready = condition_of(machine, "Ready")
    return ready is not None and ready.reason == "AdoptionHeld" and not was_sent(machine)


def in_cluster(machines: Iterable[Record], cluster: str) -> tuple[Record, ...]:
    """The machines of one cluster."""
    return tuple(machine for machine in machines if cluster_of(machine) == cluster)


def approved_control_planes(machines: Iterable[Record]) -> tuple[Record, ...]:
    return tuple(machine for machine in machines if is_approved(machine) and is_control_plane(machine))


def etcd_lost(cluster: Record | None, machines: Iterable[Record]) -> bool:
    """Whether no control plane of a bootstrapped cluster is left as the records say: each was wiped and is held, or was installed anew
    after the bootstrap and has not joined. Such an etcd comes back from a snapshot only; it is never begun empty by itself."""
    planes = approved_control_planes(machines)
    since = text_at(cluster.status, "bootstrappedAt") if cluster is not None else ""

    def gone(machine: Record) -> bool:
        ready = condition_of(machine, "Ready")
        held = ready is not None and ready.reason == "ReprovisionBlocked"
        return held or is_followed(machine) and text_at(machine.status, "configStoredAt") > since

    return bool(since and planes) and all(gone(machine) for machine in planes)


def is_bootstrapped(cluster: Record | None) -> bool:
    """Whether the cluster's etcd was bootstrapped, or the cluster adopted."""
    return bool(text_at(cluster.status, "bootstrappedAt")) if cluster is not None else False
