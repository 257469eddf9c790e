# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines as hosts of an inventory: groups and variables (design section 18, "Inventory plugin")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._model.approval import approval_state
from .._model.machine import cluster_of
from .._model.records import JsonMap, Record, condition_of, text_at

#: The group of every approved machine.
APPROVED = "talos_machines"


@dataclass(frozen=True)
class Host:
    """One machine: its host name in the inventory is its record's name. `variables` hold no secret, since records hold none;
    part of them is what a node said of itself, so they are data and never templates."""

    name: str
    groups: tuple[str, ...]
    variables: JsonMap


def hosts_of(machines: Iterable[Record], clusters: Sequence[str] = ()) -> tuple[Host, ...]:
    """The hosts of these machines, of the named clusters or of all. Pending and rejected machines are in a group of their own
    (`talos_pending`, `talos_rejected`) and in no other, so that a play on a cluster or a role never touches one."""
    return tuple(_host(machine) for machine in machines if not clusters or cluster_of(machine) in clusters)


def group_name(*parts: str) -> str:
    """A group's name that Ansible takes as it is: letters, digits and underscores."""
    return re.sub(r"\W", "_", "_".join(("talos", *parts)), flags=re.ASCII)


def _host(machine: Record) -> Host:
    state = approval_state(machine)
    groups = (APPROVED, *_groups(machine)) if state == "approved" else (group_name(state),)
    return Host(machine.name, groups, {
        "ichor_cluster": cluster_of(machine), "ichor_spec": dict(machine.spec), "ichor_status": dict(machine.status),
        "ichor_labels": dict(machine.labels), "ichor_annotations": dict(machine.annotations)})


def _groups(machine: Record) -> Iterable[str]:
    """Groups by cluster, role, stage and the condition Ready with its reason."""
    for kind, value in (("cluster", cluster_of(machine)), ("role", text_at(machine.spec, "role")), ("stage", text_at(machine.status, "stage"))):
        if value:
            yield group_name(kind, value)
    ready = condition_of(machine, "Ready")
    yield group_name("ready" if ready is not None and ready.status == "True" else "not_ready")
    if ready is not None and ready.reason:
        yield group_name("reason", ready.reason)
