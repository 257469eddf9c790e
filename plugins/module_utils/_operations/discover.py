# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find machines in maintenance mode; with a store, write pending machines and refresh pins (design section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .._decide.discovery import decide_discovery
from .._decide.discovery_targets import not_dialled, refused_addresses, targets_of, to_verify
from .._decide.discovery_words import PENDING_LIMIT, CreateMachine, Discovery, Found, RefreshPin, Targets, Verdict, World
from .._decide.hardware_status import disk_status, link_status
from .._decide.vanished import vanished_warnings
from .._model.addresses import expand
from .._model.approval import approval_state
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.observations import Endpoint
from .._model.observed import Absent, Present
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan
from .._model.ports import Gate, Ports, Store
from .._model.record_uid import record_uid
from .._model.records import CLUSTER, MACHINE, Event, Json, Listing, Record, list_at
from .._model.timing import Timing
from .machine_rows import machine_row
from .probing import Pace, answers_of, certificates_of
from .status_writing import changed_record, write_change

#: So many pending machines are named.
_SHOWN = 8


@dataclass(frozen=True)
class Request:
    """`addresses` and `ranges` as people write them; without both the cluster's `spec.discovery` is probed.

    `register` False only reads; it needs no store.
    """

    cluster: str = ""
    addresses: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    register: bool = True
    pending_limit: int = PENDING_LIMIT
    rate: float = 1000.0
    unresolved: int = 256
    allow_loopback: bool = False
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True)
class _Records:
    cluster: Record | None = None
    machines: Listing = field(default_factory=Listing)
    events: tuple[Event, ...] = ()


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Observe, decide, show the plan, and write what it says.

    Named addresses that are not dialled are listed as blocked; when there is no other, the task is refused.
    """
    records = _records(request, ports.store)
    wanted = _wanted(request, records.cluster)
    rules = dial_rules(records.cluster.spec if records.cluster else None, request.allow_loopback)
    registered = () if wanted.named else _registered(records.cluster)
    targets = targets_of(wanted, registered, records.machines.records, Absent(), rules)
    if not targets.probe and not targets.skipped:
        raise TalosError("InvalidInput", "There is no address to probe.",
                         "Give addresses or ranges, or list them in the cluster's spec.discovery.")
    ports.progress(f"probing {len(targets.probe)} address{'' if len(targets.probe) == 1 else 'es'}")
    pace = Pace(request.rate, request.unresolved, request.timing.connect)
    world = World(await answers_of(ports, targets.probe, pace), records.cluster, records.machines.records,
                  records.machines.broken, records.events)
    verify = to_verify(wanted, world, rules) if wanted.register else ()
    if verify:
        world = replace(world, answers=(*world.answers, *await answers_of(ports, verify, pace)))
    verdict = decide_discovery(wanted, world, ports.clock.now())
    refusals = refused_addresses(wanted, targets, world.answers)
    warnings = (*not_dialled(wanted, targets, world.answers), *vanished_warnings(records.machines.vanished), *verdict.plan.warnings)
    verdict = replace(verdict, plan=replace(verdict.plan, refusals=refusals, warnings=warnings))
    told = _message(request, verdict, targets, records.machines.records)
    ports.progress(told)
    plan = gate(verdict.plan)
    outcome = await _act(request, ports, verdict, plan, targets, told)
    if refusals and len(refusals) == len(wanted.named):
        return replace(outcome, refused=True, reason=refusals[0].reason, message=f"{refusals[0].message} {refusals[0].hint}")
    return outcome


def _records(request: Request, store: Store | None) -> _Records:
    if store is None:
        if request.register and request.cluster:
            raise TalosError("StoreMissing", "Machines of a cluster can only be registered in a store.",
                             "Give store, or register: false to only look.")
        return _Records()
    machines = store.list(MACHINE)
    if not request.cluster:
        return _Records(machines=machines)
    cluster = store.get(CLUSTER, request.cluster)
    if cluster is None:
        raise TalosError("RecordNotFound", f"There is no cluster {request.cluster} in {store.description}.",
                         "Create it with talos_cluster, or correct the name.")
    return _Records(cluster, machines, store.events(cluster.ref))


def _wanted(request: Request, cluster: Record | None) -> Discovery:
    named = expand((*request.addresses, *request.ranges))
    return Discovery(cluster.name if cluster else "", named, request.register and cluster is not None, request.pending_limit,
                     whole=not named, settle=request.timing.settle)


def _registered(cluster: Record | None) -> tuple[Endpoint, ...]:
    if cluster is None:
        return ()
    texts = [*list_at(cluster.spec, "discovery", "addresses"), *list_at(cluster.spec, "discovery", "ranges")]
    return expand(text for text in texts if isinstance(text, str))


async def _act(request: Request, ports: Ports, verdict: Verdict, plan: Plan, targets: Targets, message: str) -> Outcome:
    now = ports.clock.now()
    executed: list[str] = []
    waiting: list[str] = []
    written: dict[str, Record] = {}
    events: list[Event] = []
    store = ports.store
    if store is not None and not ports.check:
        steps = [step for step in plan.steps if isinstance(step, (CreateMachine, RefreshPin))]
        settled = await _settled(request, ports, steps)
        for step in steps:
            if not settled[step.id]:
                waiting.append(f"{step.target}: two equal readings of the certificate at {step.endpoint}")
                ports.progress(f"{step.target}: the certificate at {step.endpoint} changed between two readings; the next run looks again")
            else:
                try:
                    record, told = _write(store, step, now)
                except TalosError as error:
                    if error.reason not in ("RecordExists", "RecordChanged", "RecordNotFound"):
                        raise
                    waiting.append(f"{step.target}: somebody else wrote this record meanwhile; the next run looks again")
                    continue
                written[record.name] = record
                events.extend(told)
                executed.append(step.id)
        for change in verdict.changes:
            events.extend(write_change(store, change, now))
        for event in verdict.events:
            store.record_event(event)
        events.extend(verdict.events)
    elif ports.check:
        waiting.extend(f"{step.target}: {wait.what}" for step in verdict.plan.steps for wait in step.waits_for)
    would_be = _would_be(ports, verdict, now) if ports.check else ()
    extra: dict[str, Json] = {
        "found": [_found(entry) for entry in verdict.found],
        "not_probed": [{"address": str(entry.endpoint), "rule": entry.rule, "message": entry.message} for entry in targets.skipped],
        "probed": len(targets.probe),
        "silent": verdict.silent,
    }
    return Outcome(
        plan=verdict.plan, executed=tuple(executed), machines=_rows(ports, verdict, written, would_be), events=tuple(events),
        transitions=tuple(move for change in verdict.changes for move in change.transitions),
        blocked=tuple(str(refusal.target) for refusal in verdict.plan.refusals), waiting_for=tuple(waiting),
        message=message, would_be=would_be, extra=extra)


async def _settled(request: Request, ports: Ports, steps: Sequence[CreateMachine | RefreshPin]) -> dict[str, bool]:
    """Whether the certificate of each step is still the same, a settle interval after it was first read (section 5)."""
    if not steps:
        return {}
    await ports.clock.sleep(request.timing.settle)
    again = await certificates_of(ports, (step.endpoint for step in steps), request.timing.call)
    return {step.id: (read := again.get(step.endpoint)) is not None and read.matches(step.fingerprint) for step in steps}


def _write(store: Store, step: CreateMachine | RefreshPin, now: float) -> tuple[Record, tuple[Event, ...]]:
    if isinstance(step, CreateMachine):
        return store.create(step.record), ()
    if step.change is None:
        raise ValueError("a RefreshPin carries its change")
    told = write_change(store, step.change, now)
    record = store.get(step.change.ref.kind, step.change.ref.name)
    return record if record is not None else Record(MACHINE, step.target.name), told


def _would_be(ports: Ports, verdict: Verdict, now: float) -> tuple[Record, ...]:
    """The records as this plan would leave them (section 20)."""
    records: dict[str, Record] = {}
    changes = [step.change for step in verdict.plan.steps if isinstance(step, RefreshPin) and step.change is not None]
    for step in verdict.plan.steps:
        if isinstance(step, CreateMachine):
            records[step.record.name] = replace(step.record, uid=record_uid(MACHINE, step.record.name, step.record.spec))
    for change in (*verdict.changes, *changes):
        record = records.get(change.ref.name) or (ports.store.get(change.ref.kind, change.ref.name) if ports.store else None)
        if record is not None:
            records[record.name] = changed_record(record, change, now)
    return tuple(records[name] for name in sorted(records))


def _rows(ports: Ports, verdict: Verdict, written: dict[str, Record], would_be: tuple[Record, ...]) -> tuple[MachineRow, ...]:
    fresh = {record.name: record for record in would_be} | written
    moved = {change.ref.name for change in verdict.changes}
    names = {entry.machine for entry in verdict.found if entry.machine} | set(fresh) | moved
    rows = []
    for name in sorted(names):
        record = fresh.get(name) or (ports.store.get(MACHINE, name) if ports.store else None)
        if record is not None:
            rows.append(machine_row(record, changed=name in fresh))
    return tuple(rows)


def _found(entry: Found) -> Json:
    """One answer as the result shows it; plain data without secrets."""
    shown: dict[str, Json] = {"address": str(entry.endpoint), "kind": entry.kind, "machine": entry.machine, "message": entry.message,
                              "rule": entry.rule, "weak": entry.weak}
    facts = entry.facts
    if facts is not None:
        shown.update({
            "uuid": facts.identity.uuid, "serial": facts.identity.serial, "macs": list(facts.identity.macs),
            "fingerprint": facts.certificate.fingerprint, "sha256": facts.certificate.sha256,
            "talos_version": facts.talos_version, "hostname": facts.hostname,
            "secure_boot": facts.secure_boot.value if isinstance(facts.secure_boot, Present) else None,
            "disks": [disk_status(disk) for disk in facts.disks.value] if isinstance(facts.disks, Present) else None,
            "links": [link_status(link) for link in facts.links.value] if isinstance(facts.links, Present) else None,
        })
    return shown


def _message(request: Request, verdict: Verdict, targets: Targets, machines: Sequence[Record]) -> str:
    """What was found, for a person: the same sentence live and in the result."""
    kinds = [entry.kind for entry in verdict.found]
    told = [f"{kinds.count('Maintenance')} in maintenance mode", f"{kinds.count('AlreadyConfigured')} configured already"]
    others = len(targets.probe) - kinds.count("Maintenance") - kinds.count("AlreadyConfigured")
    new = sum(1 for step in verdict.plan.steps if isinstance(step, CreateMachine))
    refreshed = sum(1 for step in verdict.plan.steps if isinstance(step, RefreshPin))
    ending = f" {new} to register, {refreshed} to refresh." if new or refreshed else ""
    unregistered = " No cluster is named, so nothing is registered." if request.register and not request.cluster else ""
    count = len(targets.probe)
    found = f"Of {count} address{'' if count == 1 else 'es'} {', '.join(told)}, {max(0, others)} silent or no Talos."
    return f"{found}{ending}{unregistered}{_pending(request.cluster, machines)}"


def _pending(cluster: str, machines: Sequence[Record]) -> str:
    """Which machines of the cluster waited for a person already."""
    names = [machine.name for machine in machines if cluster and cluster_of(machine) == cluster and approval_state(machine) == "pending"]
    if not names:
        return ""
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return f" {len(names)} pending machine{' waits' if len(names) == 1 else 's wait'} for approval: {listed}."
