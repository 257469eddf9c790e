# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cluster is doing, what it waits for, and what a person would do now (design sections 3, 9 and 13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .._model.approval import approval_state, was_sent
from .._model.observations import EtcdStatus
from .._model.observed import Observed, Unknown
from .._model.plan import Refusal, Target
from .._model.ports import LeaseView
from .._model.records import Record, condition_of, text_at
from .approved import approved_control_planes, etcd_lost, has_converged, is_approved, is_bootstrapped, is_control_plane
from .bootstrap import ETCD_LOST_HINT
from .following import is_member
from .lock import LockView, disruption_of, lock_refusals
from .telling import Doing


_NOBODY = Target(kind="TalosCluster")


@dataclass(frozen=True)
class Counts:
    """How many machines the cluster has, by approval, role, stage and the reason of Ready (approved ones only for the last three)."""

    approval: dict[str, int]
    role: dict[str, int]
    stage: dict[str, int]
    reason: dict[str, int]
    ready: int


def count(machines: Sequence[Record]) -> Counts:
    """Counts of the machines of one cluster."""
    approved = [machine for machine in machines if is_approved(machine)]
    conditions = [condition_of(machine, "Ready") for machine in approved]
    return Counts(
        _counted(map(approval_state, machines)), _counted(text_at(machine.spec, "role") for machine in approved),
        _counted(text_at(machine.status, "stage") for machine in approved), _counted(ready.reason for ready in conditions if ready),
        sum(1 for ready in conditions if ready and ready.status == "True"))


def _counted(words: Iterable[str]) -> dict[str, int]:
    return {word: number for word, number in sorted(Counter(words).items()) if word}


@dataclass(frozen=True)
class Seen:
    """A cluster with everything that is known of it. `etcd` is what each control plane says of itself, by record name; Absent
    where it was not asked."""

    cluster: Record
    machines: tuple[Record, ...]
    lease: LeaseView | None = None
    no_lock: str = ""
    etcd: tuple[tuple[str, Observed[EtcdStatus]], ...] = ()


@dataclass(frozen=True)
class _Row:
    """One row: the first that holds is what a person is told."""

    id: str
    holds: Callable[[Seen], bool]
    tell: Callable[[Seen], Doing]


def _names(machines: Iterable[Record]) -> str:
    return ", ".join(sorted(machine.name for machine in machines))


def _planes(seen: Seen) -> tuple[Record, ...]:
    return approved_control_planes(seen.machines)


def _count(seen: Seen) -> int:
    return LockView(seen.cluster, seen.machines).count


def _refusals(seen: Seen) -> tuple[Refusal, ...]:
    """What refuses the lock; before the bootstrap each join completes the transition."""
    return lock_refusals(LockView(seen.cluster, seen.machines, completes_transition=not is_bootstrapped(seen.cluster)), _NOBODY)


def _refusal(seen: Seen) -> Doing:
    found = _refusals(seen)[0]
    return Doing(found.message, "", "a person", found.hint)


def _disrupted(seen: Seen) -> Doing:
    found = disruption_of(seen.cluster)
    what, machine, since = (found.step, found.machine, found.time) if found else ("", "", "")
    return Doing(f"Machine {machine} was disrupted ({what}): no other machine is restarted, and no other control plane is changed, before it is well "
                 "again.", since,
                 f"evidence that {machine} is well", f"Look at {machine} with talos_machine_info; talos_cluster, clear_disruption: {machine}, when it is well "
                 "or will never be.")


def _members(seen: Seen) -> str:
    well = [name for name, status in seen.etcd if is_member(status)]
    silent = [name for name, status in seen.etcd if isinstance(status, Unknown)]
    if not well and not silent:
        return ""
    told = f" {len(well)} of {len(seen.etcd)} control planes are members of etcd that see a leader"
    return f"{told}; {', '.join(silent)} did not say." if silent else f"{told}."


def _running(seen: Seen) -> Doing:
    counts = count(seen.machines)
    late = [machine for machine in seen.machines if is_approved(machine) and not _ready(machine)]
    total = counts.approval.get("approved", 0)
    told = f"It runs: {counts.ready} of {total} approved machines are Ready.{_members(seen)}"
    if not late:
        return Doing(told, text_at(seen.cluster.status, "bootstrappedAt"))
    return Doing(told, text_at(seen.cluster.status, "bootstrappedAt"), _names(late), "talos_machine_info says of each what to do.")


def _ready(machine: Record) -> bool:
    ready = condition_of(machine, "Ready")
    return ready is not None and ready.status == "True"


def _lost(seen: Seen) -> bool:
    return not is_bootstrapped(seen.cluster) and any(has_converged(machine) for machine in seen.machines if is_control_plane(machine))


ROWS: tuple[_Row, ...] = (
    _Row("3/operation", lambda seen: bool(text_at(seen.cluster.status, "operation", "name")),
         lambda seen: Doing(f"{text_at(seen.cluster.status, 'operation', 'name')} is being done to the whole cluster.",
                            text_at(seen.cluster.status, "operation", "since"), "its end",
                            "When nothing of it runs any more, clear it by name with talos_cluster, clear_operation.")),
    _Row("9/bootstrapping", lambda seen: bool(text_at(seen.cluster.status, "bootstrapping", "machine")) and not is_bootstrapped(seen.cluster),
         lambda seen: Doing(f"Its etcd is being bootstrapped on {text_at(seen.cluster.status, 'bootstrapping', 'machine')}.",
                            text_at(seen.cluster.status, "bootstrapping", "time"), "the answer of that node",
                            "Run talos_bootstrap for that machine again; no other one may be bootstrapped.")),
    _Row("13/no-lock", lambda seen: bool(seen.no_lock),
         lambda seen: Doing(f"There is no lock here: {seen.no_lock}", "", "a person", "talos_cluster, take_over: true, makes this the place that locks.")),
    _Row("13/disruption", lambda seen: disruption_of(seen.cluster) is not None, _disrupted),
    _Row("9/lost", _lost,
         lambda seen: Doing("A control plane has converged, and the record does not say that etcd was bootstrapped.", "", "a person",
                            "Bring the state folder back; it is never bootstrapped again.")),
    _Row("12/etcd-lost", lambda seen: etcd_lost(seen.cluster, seen.machines),
         lambda seen: Doing("No control plane of it is left, so its etcd is lost.", "", "a person who recovers etcd",
                            f"A wiped control plane is installed again with talos_controller, discard_etcd: {seen.cluster.name}. {ETCD_LOST_HINT}")),
    _Row("13/lock", lambda seen: bool(_refusals(seen)), _refusal),
    _Row("9/empty", lambda seen: not _planes(seen),
         lambda seen: Doing("No control plane is approved yet.", "", "a person's approval",
                            "Find machines with talos_discover, and approve control planes with talos_machine_approval.")),
    _Row("9/unsent", lambda seen: not any(was_sent(machine) for machine in _planes(seen)),
         lambda seen: Doing(f"{len(_planes(seen))} of {_count(seen)} control planes are approved, and none was sent its configuration.", "",
                            "the first send", "Run talos_maintenance_apply, or the playbook apply.")),
    _Row("9/bootstrap", lambda seen: not is_bootstrapped(seen.cluster),
         lambda seen: Doing("Its etcd was not bootstrapped yet.", "", "talos_bootstrap",
                            f"Run talos_bootstrap once for one of {_names(_planes(seen))}, when it waits for it.")),
    _Row("9/fewer", lambda seen: len(_planes(seen)) < _count(seen),
         lambda seen: Doing(f"{_running(seen).what} {len(_planes(seen))} of {_count(seen)} control planes are approved.",
                            text_at(seen.cluster.status, "bootstrappedAt"), "a person's approval",
                            "Approve another control plane, or lower controlPlane.count.")),
    _Row("11/running", lambda seen: True, _running),
)


def tell_cluster(seen: Seen) -> Doing:
    """What the first row that holds says."""
    return next(row.tell(seen) for row in ROWS if row.holds(seen))
