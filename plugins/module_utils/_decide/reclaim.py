# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reclaiming machines of other clusters (design section 16): inspection, assessment, plan. Pure.

A node that answers as configured is reset and comes back as pending; one that is in maintenance mode already is registered, or left alone
where the records know it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .._model.addresses import canonical_host
from .._model.dialling import endpoint_host
from .._model.machine import cluster_of, pin_of
from .._model.observed import Present
from .._model.plan import Plan, Refusal, Step, Wait, Warn
from .._model.records import Record
from .hostnames import host_of
from .reclaim_gates import CONFIGURED_GATES, FORCED, NODE_GATES, ReclaimGate, refusal_of
from .reclaim_inspection import (
    after_leaving, cluster_words, etcd_problem, goes, inspection, is_plane, lease_of, lives, own_cluster, own_member, owner_of, records_of, stays, twice,
    unchecked, uuid_of, voters, whose,
)
from .reclaim_words import Reclaiming, ReclaimMachine, RegisterMachine
from .stale_member import told

IN_MAINTENANCE = "maintenance mode, after the reset"


@dataclass(frozen=True)
class Verdict:
    """The plan. `done`: nothing is left to be done, in words. `under_way`: the node is being reset already; it is only waited for.
    `gone`: the etcd members that are gone when its turn comes. `machine`: the record that it is pending as already."""

    plan: Plan
    done: str = ""
    under_way: bool = False
    gone: frozenset[str] = frozenset()
    machine: str = ""

    @property
    def refusal(self) -> Refusal | None:
        return next(iter(self.plan.refusals), None)

    @property
    def reset(self) -> ReclaimMachine | None:
        return next((step for step in self.plan.steps if isinstance(step, ReclaimMachine)), None)


@dataclass(frozen=True)
class WarningRow:
    """One row: when it holds, and what a person has to read before agreeing."""

    id: str
    holds: Callable[[Reclaiming], bool]
    message: Callable[[Reclaiming], str]


def _forced(seen: Reclaiming) -> bool:
    return seen.wish.force_ungraceful and is_plane(seen) and bool(etcd_problem(seen))


def _is_endpoint(seen: Reclaiming) -> bool:
    """Whether the Kubernetes API of its cluster is reached at this very machine. An endpoint that is a name is not resolved."""
    host = endpoint_host({"endpoint": owner_of(seen).endpoint})
    return bool(host) and host in {canonical_host(host_of(text)) for text in (seen.target.address, seen.wish.address)}


def _sentence(clause: str) -> str:
    return clause[:1].upper() + clause[1:]


def _names(machines: Sequence[Record]) -> str:
    return ", ".join(machine.name for machine in machines)


def _doubled(seen: Reclaiming) -> str:
    found = inspection(seen).partitions
    rows = twice(found.value) if isinstance(found, Present) else ()
    return "; ".join(f"{label} on {' and '.join(devices)}" for label, devices in rows)


def _elsewhere(seen: Reclaiming) -> tuple[Record, ...]:
    return tuple(machine for machine in records_of(seen, "pending") if cluster_of(machine) != seen.wish.cluster)


def _here(seen: Reclaiming) -> tuple[Record, ...]:
    return tuple(machine for machine in records_of(seen, "pending") if cluster_of(machine) == seen.wish.cluster)


WARNINGS: tuple[WarningRow, ...] = (
    WarningRow("16/managed-unrecorded", lambda seen: isinstance(own_cluster(seen), Present),
               lambda seen: f"The node is of {cluster_words(seen)}, and no approved machine has its UUID: adding it there as it is (talos_adopt, add_machine) "
                            "would keep it without a reset."),
    WarningRow("16/forced", lambda seen: _forced(seen) and not lives(seen),
               lambda seen: f"{_sentence(etcd_problem(seen))}: {cluster_words(seen)} {FORCED}."),
    WarningRow("16/member-stays", lambda seen: _forced(seen) and lives(seen),
               lambda seen: f"{_sentence(etcd_problem(seen))}, so the reset is not graceful: the member of this node stays listed in the etcd of "
                            f"{cluster_words(seen)}, which keeps its quorum. Remove it there (talosctl etcd remove-member)."),
    WarningRow("16/force-not-needed", lambda seen: seen.wish.force_ungraceful and not _forced(seen),
               lambda seen: "force_ungraceful changes nothing: " + ("its etcd answers, so it leaves gracefully." if is_plane(seen) else "it is a worker.")),
    WarningRow("16/one-left", lambda seen: is_plane(seen) and not etcd_problem(seen) and voters(seen) == 2 and not _learner(seen),
               lambda seen: f"One control plane of {cluster_words(seen)} is left afterwards, and that one is not reclaimed while its etcd answers."),
    WarningRow("16/endpoint-goes", _is_endpoint,
               lambda seen: f"This machine's own address is the endpoint {owner_of(seen).endpoint} of {cluster_words(seen)}: nothing reaches that API "
                            "there any more, neither its other nodes nor a kubeconfig. Where the cluster is to live on, move its endpoint first."),
    WarningRow("16/not-drained", lambda seen: True,
               lambda seen: f"The node is not drained: what {cluster_words(seen)} runs on it ends, and nobody looks for data that pods keep on its disks."),
    WarningRow("16/two-disks", lambda seen: bool(_doubled(seen)),
               lambda seen: f"Volumes of Talos are there twice: {_doubled(seen)}. The reset wipes the ones that Talos runs from; with the others the machine "
                            "may come up configured instead of in maintenance mode."),
    WarningRow("16/no-boot-id", lambda seen: not isinstance(inspection(seen).boot_id, Present),
               lambda seen: "The boot id cannot be read: a reset that fails after its OK is only told when the wait for maintenance mode is over."),
    WarningRow("16/unchecked", lambda seen: bool(unchecked(seen)), lambda seen: f"Not checked, since it could not be read: {'; '.join(unchecked(seen))}."),
    WarningRow("16/not-in-discovery", lambda seen: not seen.listed,
               lambda seen: f"{seen.wish.address} is not in the spec.discovery of cluster {seen.wish.cluster}: discovery does not refresh the machine later. "
                            "Add the address there."),
    WarningRow("16/pending", lambda seen: bool(_here(seen)),
               lambda seen: f"{_names(_here(seen))} is pending with this UUID: it stays, with a fresh certificate and fresh disks."),
    WarningRow("16/pending-elsewhere", lambda seen: bool(_elsewhere(seen)),
               lambda seen: f"{_names(_elsewhere(seen))} is pending with this UUID in cluster {cluster_of(_elsewhere(seen)[0])}: it stays, and nothing is "
                            f"registered in cluster {seen.wish.cluster}."),
    WarningRow("16/rejected", lambda seen: bool(records_of(seen, "rejected")),
               lambda seen: f"{_names(records_of(seen, 'rejected'))} is rejected with this UUID and stays rejected: approve it with talos_machine_approval "
                            "where it is to be used after all."),
)


def _learner(seen: Reclaiming) -> bool:
    own = own_member(seen)
    return own is not None and own.learner


def warnings_of(seen: Reclaiming, rows: tuple[WarningRow, ...] = WARNINGS) -> tuple[Warn, ...]:
    return tuple(Warn(seen.target, row.message(seen), row.id) for row in rows if row.holds(seen))


def decide_reclaim(seen: Reclaiming, gates: tuple[ReclaimGate, ...] = (*NODE_GATES, *CONFIGURED_GATES),
                   rows: tuple[WarningRow, ...] = WARNINGS) -> Verdict:
    """What the observation of one machine calls for."""
    refusal = refusal_of(seen, tuple(gate for gate in gates if gate in NODE_GATES))
    if refusal is not None:
        return Verdict(Plan(refusals=(refusal,)))
    if isinstance(seen.maintenance, Present):
        return _waiting(seen, rows)
    stage = inspection(seen).stage
    if isinstance(stage, Present) and stage.value.stage == "resetting":
        register = _register(seen, "it is being reset", Wait(IN_MAINTENANCE, target=str(seen.target)))
        return Verdict(Plan(register, waits=(Wait(IN_MAINTENANCE, target=str(seen.target)),)), under_way=True)
    refusal = refusal_of(seen, tuple(gate for gate in gates if gate not in NODE_GATES))
    if refusal is not None:
        return Verdict(Plan(refusals=(refusal,)))
    reset = ReclaimMachine(seen.target, _why(seen), locked=True, machine_uuid=uuid_of(seen), from_cluster=lease_of(seen), partitions=goes(seen),
                           graceful=not _forced(seen))
    register = _register(seen, "it is in maintenance mode then", Wait(IN_MAINTENANCE, target=str(seen.target)))
    return Verdict(Plan((reset, *register), warnings=warnings_of(seen, rows)))


def _waiting(seen: Reclaiming, rows: tuple[WarningRow, ...]) -> Verdict:
    """It is in maintenance mode: there is nothing to be wiped, and registering is what discovery does."""
    words = f"{seen.target} is in maintenance mode"
    if not isinstance(seen.maintenance, Present) or records_of(seen, "rejected") or _elsewhere(seen):
        return Verdict(Plan(warnings=_some(seen, rows, "16/rejected", "16/pending-elsewhere")),
                       f"{words}; its record stays as it is.")
    known = _here(seen)
    if known and seen.maintenance.value.certificate.matches(pin_of(known[0])):
        return Verdict(Plan(), f"{words}, pending as {known[0].name}.", machine=known[0].name)
    warnings = _some(seen, rows, "16/not-in-discovery", "16/pending")
    return Verdict(Plan(_register(seen, "it is in maintenance mode"), warnings=warnings))


def _some(seen: Reclaiming, rows: tuple[WarningRow, ...], *ids: str) -> tuple[Warn, ...]:
    """What of the warnings speaks of a machine that is not wiped."""
    return warnings_of(seen, tuple(row for row in rows if row.id in ids))


def _register(seen: Reclaiming, why: str, *waits: Wait) -> tuple[Step, ...]:
    """Nothing where a person has rejected it, or where it is pending in another cluster: discovery changes neither."""
    if records_of(seen, "rejected") or _elsewhere(seen):
        return ()
    told_why = f"{why}, and is written down as pending in cluster {seen.wish.cluster}, where a person approves it"
    return (RegisterMachine(seen.target, told_why, machine_uuid=uuid_of(seen), waits_for=waits),)


def _why(seen: Reclaiming) -> str:
    """Whose it is, what that does to its etcd, what goes and what stays."""
    look = inspection(seen)
    role = "control plane" if is_plane(seen) else "worker"
    name = f" {look.hostname.value}" if isinstance(look.hostname, Present) and look.hostname.value else ""
    kept = "; ".join(stays(seen)) or "nothing else"
    return f"it is the {role}{name} of {whose(seen)}; {_etcd_words(seen)}wipes {', '.join(goes(seen))}; stays: {kept}"


def _etcd_words(seen: Reclaiming) -> str:
    if not is_plane(seen):
        return ""
    if _forced(seen):
        return "its etcd is not left gracefully; "
    own = own_member(seen)
    name = told(own) if own is not None else "its member"
    left = voters(seen) - (0 if _learner(seen) else 1)
    healthy, needed = after_leaving(seen)
    return (f"member {name} leaves etcd, {left} voter{' stays' if left == 1 else 's stay'}, {healthy} answer and {needed} {'is' if needed == 1 else 'are'} "
            "needed; ")


def plan_order(seen: Sequence[Reclaiming]) -> tuple[int, ...]:
    """In which order machines go: cluster by cluster, workers before control planes, etcd's leader last, else as they were named."""
    def key(index: int) -> tuple[str, bool, bool, int]:
        one = seen[index]
        look = inspection(one)
        leads = isinstance(look.etcd, Present) and look.etcd.value.leader == look.etcd.value.member_id
        return lease_of(one), isinstance(one.node, Present) and is_plane(one), leads, index

    return tuple(sorted(range(len(seen)), key=key))


def decide_all(seen: Sequence[Reclaiming]) -> tuple[Verdict, ...]:
    """A verdict for each machine, in the order of `seen`. A control plane is assessed as its cluster is when those before it are gone; of one
    cluster the next machine waits until the one before is in maintenance mode."""
    found: dict[int, Verdict] = {}
    gone: dict[str, set[str]] = {}
    before: dict[str, str] = {}
    for index in plan_order(seen):
        lease = lease_of(seen[index])
        one = replace(seen[index], gone=frozenset(gone.get(lease, set())))
        verdict = decide_reclaim(one)
        if verdict.reset is not None:
            own = own_member(one)
            if own is not None and verdict.reset.graceful:
                gone.setdefault(lease, set()).add(own.id)
            if lease in before:
                wait = Wait(f"{before[lease]} in maintenance mode: of one cluster one machine at a time", target=str(one.target))
                steps = tuple(replace(step, waits_for=(wait, *step.waits_for)) if isinstance(step, ReclaimMachine) else step for step in verdict.plan.steps)
                verdict = replace(verdict, plan=replace(verdict.plan, steps=steps))
            before[lease] = str(one.target)
        found[index] = replace(verdict, gone=one.gone)
    return tuple(found[index] for index in range(len(seen)))


def as_agreed(seen: Reclaiming) -> Reclaiming:
    """The same where its UUID was typed: what a person reads before they agree."""
    return seen if seen.wish.confirm.strip() else replace(seen, wish=replace(seen.wish, confirm=uuid_of(seen)))
