# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What discovery makes of the answers: the verdict, and what is written of it (design section 6).

Apart from `discover`, which imports it after its scan: the first packets do not wait for what is only needed then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .._decide.discovery import decide_discovery
from .._decide.discovery_targets import not_dialled, refused_addresses
from .._decide.discovery_verdict import CreateMachine, Found, RefreshPin, Verdict
from .._decide.discovery_words import Discovery, Targets, World
from .._decide.hardware_status import disk_status, link_status
from .._decide.vanished import vanished_warnings
from .._model.approval import approval_state
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.observed import Present
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan
from .._model.ports import Gate, Ports, Store
from .._model.record_uid import record_uid
from .._model.records import MACHINE, Event, Json, Record
from .._model.timing import Timing
from .machine_rows import machine_row
from .probing import certificates_of
from .status_writing import changed_record, write_change

#: So many pending machines are named.
_SHOWN = 8


@dataclass(frozen=True)
class Looked:
    """What was asked for and what answered. `vanished` names records that are gone, `note` ends the message."""

    wanted: Discovery
    timing: Timing
    targets: Targets
    world: World
    vanished: tuple[str, ...]
    note: str


async def conclude(looked: Looked, ports: Ports, gate: Gate) -> Outcome:
    """Decide, show the plan, and write what it says."""
    wanted, targets, answers = looked.wanted, looked.targets, looked.world.answers
    verdict = decide_discovery(wanted, looked.world, ports.clock.now())
    refusals = refused_addresses(wanted, targets, answers)
    warnings = (*not_dialled(wanted, targets, answers), *vanished_warnings(looked.vanished), *verdict.plan.warnings)
    verdict = replace(verdict, plan=replace(verdict.plan, refusals=refusals, warnings=warnings))
    told = _message(looked, verdict)
    ports.progress(told)
    plan = gate(verdict.plan)
    outcome = await _act(looked, ports, verdict, plan, told)
    if refusals and len(refusals) == len(wanted.named):
        return replace(outcome, refused=True, reason=refusals[0].reason, message=f"{refusals[0].message} {refusals[0].hint}")
    return outcome


async def _act(looked: Looked, ports: Ports, verdict: Verdict, plan: Plan, message: str) -> Outcome:
    now = ports.clock.now()
    executed: list[str] = []
    waiting: list[str] = []
    written: dict[str, Record] = {}
    events: list[Event] = []
    store = ports.store
    if store is not None and not ports.check:
        steps = [step for step in plan.steps if isinstance(step, (CreateMachine, RefreshPin))]
        settled = await _settled(looked.timing, ports, steps)
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
        "not_probed": [{"address": str(entry.endpoint), "rule": entry.rule, "message": entry.message} for entry in looked.targets.skipped],
        "probed": len(looked.targets.probe),
        "silent": verdict.silent,
    }
    return Outcome(
        plan=verdict.plan, executed=tuple(executed), machines=_rows(ports, verdict, written, would_be), events=tuple(events),
        transitions=tuple(move for change in verdict.changes for move in change.transitions),
        blocked=tuple(str(refusal.target) for refusal in verdict.plan.refusals), waiting_for=tuple(waiting),
        message=message, would_be=would_be, extra=extra)


async def _settled(timing: Timing, ports: Ports, steps: Sequence[CreateMachine | RefreshPin]) -> dict[str, bool]:
    """Whether the certificate of each step is still the same, a settle interval after it was first read (section 5)."""
    if not steps:
        return {}
    await ports.clock.sleep(timing.settle)
    again = await certificates_of(ports, (step.endpoint for step in steps), timing.call)
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


def _message(looked: Looked, verdict: Verdict) -> str:
    """What was found, for a person: the same sentence live and in the result."""
    kinds = [entry.kind for entry in verdict.found]
    told = [f"{kinds.count('Maintenance')} in maintenance mode", f"{kinds.count('AlreadyConfigured')} configured already"]
    count = len(looked.targets.probe)
    others = count - kinds.count("Maintenance") - kinds.count("AlreadyConfigured")
    new = sum(1 for step in verdict.plan.steps if isinstance(step, CreateMachine))
    refreshed = sum(1 for step in verdict.plan.steps if isinstance(step, RefreshPin))
    ending = f" {new} to register, {refreshed} to refresh." if new or refreshed else ""
    found = f"Of {count} address{'' if count == 1 else 'es'} {', '.join(told)}, {max(0, others)} silent or no Talos."
    return f"{found}{ending}{looked.note}{_pending(looked.wanted.cluster, looked.world.machines)}"


def _pending(cluster: str, machines: Sequence[Record]) -> str:
    """Which machines of the cluster waited for a person already."""
    names = [machine.name for machine in machines if cluster and cluster_of(machine) == cluster and approval_state(machine) == "pending"]
    if not names:
        return ""
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return f" {len(names)} pending machine{' waits' if len(names) == 1 else 's wait'} for approval: {listed}."
