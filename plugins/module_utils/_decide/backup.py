# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking a backup of etcd: when, from whom, where to, and what goes afterwards (design sections 3 and 17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Union

from .._model.backups import BackupName, Destination, Stored, backup_label, backup_name, destination_of, parsed_name
from .._model.moments import moment, seconds_of
from .._model.observations import EtcdStatus
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Plan, Refusal, Step, Target, Warn
from .._model.records import Condition, Record, list_at, text_at
from .conditions import Status, with_condition, without_conditions
from .cron import last_due, next_due
from .following import is_member
from .inside_cluster import inside_cluster

#: So many backups are told in the record's status; how many are kept is another matter.
TOLD = 50
#: Seconds that the clocks of two runners may be apart.
CLOCKS_APART = 300.0


@dataclass(frozen=True)
class Asked:
    """One control plane, and what its etcd says. `name` is the record's, or the address of a node without one."""

    name: str
    etcd: Observed[EtcdStatus]


@dataclass(frozen=True)
class BackingUp:
    """One observation. `stored`: what lies at the destination; `asked` in the order of preference; `cluster` None without a record.
    `keep` 0 keeps all."""

    target: Target
    destination: Destination
    stored: Observed[tuple[Stored, ...]]
    asked: tuple[Asked, ...] = ()
    cluster: Record | None = None
    record: Record | None = None
    keep: int = 0
    now: float = 0.0

    @property
    def name(self) -> BackupName:
        """What a backup that is taken now is called."""
        return backup_name(self.target.cluster, backup_label(self.record), self.record.uid if self.record is not None else "", self.now)


@dataclass(frozen=True)
class TakeBackup(Step):
    """Stream a snapshot of etcd to its place."""

    action: ClassVar[str] = "TakeBackup"

    destination: Destination = field(default_factory=Destination)
    source: str = field(default="", metadata={"plan": "skip"})
    name: str = field(default="", metadata={"plan": "skip"})


@dataclass(frozen=True)
class DeleteBackups(Step):
    """Delete the oldest backups of this record, once the new one is whole."""

    action: ClassVar[str] = "DeleteBackups"
    reversible: ClassVar[bool] = False

    destination: Destination = field(default_factory=Destination)
    keep: int = 0
    names: tuple[str, ...] = field(default=(), metadata={"plan": "skip"})


Words = Union[str, Callable[["BackingUp"], str]]


@dataclass(frozen=True)
class Gate:
    """One row. `which` gives what the words speak of, '' where the row does not hold."""

    id: str
    which: Callable[[BackingUp], str]
    reason: Words
    message: str
    hint: str


def _silences(seen: BackingUp) -> str:
    if any(is_member(asked.etcd) for asked in seen.asked):
        return ""
    told = [f"{asked.name}: {asked.etcd.message or asked.etcd.reason}" if isinstance(asked.etcd, Unknown) else f"{asked.name}: no voting member with a leader"
            for asked in seen.asked]
    return "; ".join(text.rstrip(".") for text in told)


def _all(seen: BackingUp, reason: str) -> str:
    """What the first says, where everybody asked failed for this one reason, which is of this run and not of the nodes."""
    found = [asked.etcd for asked in seen.asked]
    if found and all(isinstance(one, Unknown) and one.reason == reason for one in found):
        return getattr(found[0], "message", "") or reason
    return ""


GATES: tuple[Gate, ...] = (
    Gate("17/backup-nowhere", lambda seen: "" if seen.destination.s3 or seen.destination.path else "x", "InvalidInput",
         "It is not said where the backup goes.", "Give path, or s3_bucket, or a backup record that names its destination."),
    Gate("17/backup-place-unread", lambda seen: seen.stored.message or seen.stored.reason if isinstance(seen.stored, Unknown) else "",
         lambda seen: seen.stored.reason if isinstance(seen.stored, Unknown) else "ArchiveUnreachable",
         "The place of the backups cannot be read: {which}", "Nothing was taken."),
    Gate("17/backup-nobody-to-ask", lambda seen: "" if seen.asked else "x", "ControlPlaneUnreachable",
         "The cluster has no control plane that was sent a configuration.", "Take a backup when there is an etcd."),
    Gate("17/backup-no-credentials", lambda seen: _all(seen, "SecretsUnavailable"), "SecretsUnavailable",
         "The control planes are read with authentication only, and there are no credentials for them. {which}", "Give talosconfig, or a secrets bundle."),
    Gate("17/backup-other-authority", lambda seen: _all(seen, "UnknownAuthority"), "UnknownAuthority",
         "The control planes are not read with these credentials: {which}", "Give the talosconfig or the bundle of this cluster."),
    Gate("17/backup-no-member", _silences, "ControlPlaneUnreachable",
         "No etcd member can give a snapshot ({which}).", "Bring a control plane back; what was saved before stays."),
)


def source_of(seen: BackingUp) -> str:
    """The name of the control plane that gives the snapshot: the first that is a voting member with a leader, a follower before the leader."""
    members = [asked for asked in seen.asked if is_member(asked.etcd)]
    rest = [asked for asked in members if isinstance(asked.etcd, Present) and asked.etcd.value.leader != asked.etcd.value.member_id]
    return (rest or members)[0].name if members else ""


def surplus(stored: tuple[Stored, ...], own: BackupName, keep: int) -> tuple[str, ...]:
    """Which backups go, the oldest first, where `keep` stay (0: all do). Only those that this product wrote for this very record count:
    whatever else lies there is nobody's business."""
    mine = sorted(entry.name for entry in stored if (name := parsed_name(entry.name)) is not None
                  and (name.cluster, name.record, name.tag) == (own.cluster, own.record, own.tag))
    return tuple(mine[:-keep]) if keep > 0 and len(mine) > keep else ()


def store_warning(seen: BackingUp) -> tuple[Warn, ...]:
    """A backup that goes with the cluster is told; it is taken all the same."""
    why = inside_cluster(seen.destination, seen.cluster.spec if seen.cluster is not None else None)
    return (Warn(seen.target, f"{_in_cluster(why)} A restore from there is refused.", "17/store-in-cluster"),) if why else ()


def _in_cluster(why: str) -> str:
    return f"The store of the backups is inside the cluster that it is for ({why}): it goes with it."


def decide_backup(seen: BackingUp, gates: tuple[Gate, ...] = GATES) -> Plan:
    """Take one, and delete what is over afterwards; or why not."""
    for gate in gates:
        which = gate.which(seen)
        if which:
            reason = gate.reason if isinstance(gate.reason, str) else gate.reason(seen)
            return Plan(refusals=(Refusal(seen.target, reason, gate.message.format(which=which), gate.hint, gate.id),), warnings=store_warning(seen))
    stored = seen.stored.value if isinstance(seen.stored, Present) else ()
    name = seen.name
    steps: list[Step] = [TakeBackup(target=seen.target, why=f"a snapshot of etcd from {source_of(seen)} to {seen.destination}",
                                    destination=seen.destination, source=source_of(seen), name=str(name))]
    gone = surplus((*stored, Stored(str(name), 0)), name, seen.keep)
    if gone:
        steps.append(DeleteBackups(target=seen.target, why=f"{seen.keep} are kept: {', '.join(gone)}", destination=seen.destination, keep=seen.keep,
                                   names=gone))
    return Plan(tuple(steps), warnings=store_warning(seen))


def last_taken(record: Record, now: float) -> float | None:
    """When the last backup of the record was taken, by its status. A time that has not come yet, of a clock that was wrong, is none:
    it would keep the schedule silent until then."""
    times = [seconds_of(text_at(entry, "time")) for entry in list_at(record.status, "backups")]
    return max((time for time in times if time is not None and time <= now + CLOCKS_APART), default=None)


def is_due(record: Record, now: float) -> bool:
    """Whether the schedule calls for a backup: none was taken since the last time that it names, or ever. However many were missed, it is
    one that is made up. A record without a schedule waits for a person. Raises ValueError for a schedule that is none."""
    schedule = text_at(record.spec, "schedule")
    due = last_due(schedule, now) if schedule else None
    last = last_taken(record, now)
    return due is not None and (last is None or last < due)


def seconds_until_due(record: Record, now: float) -> float | None:
    """How long until the schedule names a time, None where it never does. Raises ValueError."""
    schedule = text_at(record.spec, "schedule")
    due = next_due(schedule, now) if schedule else None
    return max(0.0, due - now) if due is not None else None


@dataclass(frozen=True)
class Taken:
    """A backup that is whole."""

    name: str
    time: float
    size: int
    sha256: str
    raft_index: int


def with_backup(status: Status, taken: Taken, gone: tuple[str, ...]) -> Status:
    """The record's status after a backup: the last ones, newest first, without those that were deleted."""
    found = status.get("backups")
    kept = [entry for entry in (found if isinstance(found, list) else []) if isinstance(entry, dict) and entry.get("name") not in {taken.name, *gone}]
    entry = {"name": taken.name, "time": moment(taken.time), "size": taken.size, "sha256": taken.sha256, "raftIndex": taken.raft_index}
    return {**status, "backups": [entry, *kept][:TOLD]}


def with_told(status: Status, record: Record, cluster: Record | None, refusal: Refusal | None, now: float, *, done: bool = False) -> Status:
    """Its conditions: whether the last attempt went well (`done`) or what `refusal` held it, and whether the store is inside the cluster."""
    why = inside_cluster(destination_of(record.spec), cluster.spec if cluster is not None else None)
    if refusal is not None:
        status = with_condition(status, Condition("Ready", "False", refusal.reason, f"{refusal.message} {refusal.hint}".strip(), record.generation), now)
    elif done:
        status = with_condition(status, Condition("Ready", "True", "Converged", "The last backup is whole.", record.generation), now)
    if not why:
        return without_conditions(status, ("StoreInCluster",))
    return with_condition(status, Condition("StoreInCluster", "True", "StoreInCluster", _in_cluster(why), record.generation), now)
