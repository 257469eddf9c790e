# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One approval with what follows from what was read: the gates ask this, and ask nothing twice (design section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .._model.errors import TalosError
from .._model.hardware import meaningful
from .._model.identity import Identity
from .._model.machine import cluster_of
from .._model.observations import Disk, NodeFacts
from .._model.observed import Present, Unknown
from .._model.plan import Target
from .._model.records import Json, Record, condition_of, text_at
from .approval_words import Candidate, Wanted
from .disk_selector import matching, named
from .hardware_status import disks_of
from .same_machine import recorded_identity
from .weak_identity import Suspect, Weakness, weaknesses


@dataclass(frozen=True)
class Picked:
    """The disks that the install settings pick. `outright`: by its name. `problem` where the selector is none."""

    words: str = ""
    disks: tuple[Disk, ...] = ()
    outright: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Case:
    """`machine` is the record as read; `spec` is what it would say with the person's words over it."""

    wanted: Wanted
    seen: Candidate
    machine: Record

    @cached_property
    def target(self) -> Target:
        return Target(name=self.machine.name, cluster=cluster_of(self.machine), cluster_id=self.seen.cluster.uid if self.seen.cluster else "",
                      uid=self.machine.uid, uuid=recorded_identity(self.machine.spec).uuid, address=text_at(self.machine.spec, "endpoint"))

    @cached_property
    def settings(self) -> Mapping[str, Json]:
        """What the person's words set in the spec."""
        wanted = self.wanted
        said: dict[str, Json] = {}
        if wanted.role:
            said["role"] = wanted.role
        if wanted.hostname:
            said["hostname"] = wanted.hostname
        if wanted.labels is not None:
            said["labels"] = {key: wanted.labels[key] for key in sorted(wanted.labels)}
        if wanted.taints is not None:
            said["taints"] = [dict(taint) for taint in wanted.taints]
        if wanted.install:
            said["install"] = dict(wanted.install)
        if wanted.disks is not None:
            said["disks"] = [dict(disk) for disk in wanted.disks]
        if wanted.network:
            said["network"] = {"primary": dict(wanted.network)}
        return said

    @cached_property
    def spec(self) -> Mapping[str, Json]:
        return {**self.machine.spec, **self.settings}

    @cached_property
    def role(self) -> str:
        return text_at(self.spec, "role")

    @cached_property
    def node(self) -> NodeFacts | None:
        return self.seen.node.value if isinstance(self.seen.node, Present) else None

    @property
    def silent(self) -> Unknown | None:
        return self.seen.node if isinstance(self.seen.node, Unknown) else None

    @cached_property
    def others(self) -> tuple[Record, ...]:
        """Every other machine of the store."""
        return tuple(machine for machine in self.seen.machines if machine.name != self.machine.name)

    @cached_property
    def siblings(self) -> tuple[Record, ...]:
        """Every other machine of the cluster."""
        return tuple(machine for machine in self.others if cluster_of(machine) == cluster_of(self.machine))

    @cached_property
    def recorded(self) -> Identity:
        return recorded_identity(self.machine.spec)

    @cached_property
    def weak(self) -> tuple[Weakness, ...]:
        """Why the identity is weak, by what the node says now, else by what is recorded; an entry that was made as weak stays one."""
        identity = self.node.identity if self.node is not None else self.recorded
        found = weaknesses(Suspect(identity, (), self.others))
        if found:
            return found
        condition = condition_of(self.machine, "WeakIdentity")
        if condition is not None and condition.reason != "TwinIdentity":
            return (Weakness("6/weak-recorded", condition.message.rstrip(".")),)
        if self.machine.name.startswith("weak-"):
            return (Weakness("6/weak-recorded", "it was found with a weak identity"),)
        return ()

    @cached_property
    def disks(self) -> tuple[Disk, ...]:
        """The disks that the node shows now, else those that discovery recorded."""
        if self.node is not None and isinstance(self.node.disks, Present):
            return self.node.disks.value
        return disks_of(self.machine)

    @cached_property
    def picked(self) -> Picked | None:
        """What the install settings pick; None where there are none."""
        install = self.spec.get("install")
        return pick(install, self.disks) if isinstance(install, dict) else None

    @property
    def pin(self) -> str:
        return text_at(self.machine.status, "maintenanceFingerprint")

    @property
    def comparable(self) -> bool:
        """Whether anything is recorded that the node can be held against."""
        return meaningful(self.recorded) != Identity()


def pick(install: Mapping[str, Json], disks: tuple[Disk, ...]) -> Picked | None:
    """The disks that `install.disk` or `install.diskSelector` picks; None where neither is there."""
    disk, selector = install.get("disk"), install.get("diskSelector")
    if isinstance(disk, str) and disk:
        return Picked(disk, named(disk, disks), outright=True)
    if isinstance(selector, dict):
        words = ", ".join(f"{key} {value}" for key, value in sorted(selector.items()))
        try:
            return Picked(words, matching(selector, disks))
        except TalosError as error:
            return Picked(words, problem=error.text)
    return None


def disk_identity(disk: Disk) -> dict[str, Json]:
    """`spec.approvedDisk`: what tells this disk from others whatever the kernel calls it."""
    entry: dict[str, Json] = {"wwid": disk.wwid, "serial": disk.serial, "model": disk.model, "size": disk.size}
    return {key: value for key, value in entry.items() if value}
