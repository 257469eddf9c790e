# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A person's edits of machine records, the trust of new certificates, and the deletion of records (design sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .._decide.machine_edit import decide_edit
from .._decide.machine_edit_words import DeleteRecord, Edit, Edited, EditMachine, EditSeen, TrustMachine
from .._decide.record_deletion import counts_for_quorum
from .._model.approval import approval_state
from .._model.dialling import dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, known_endpoints
from .._model.observations import NodeFacts
from .._model.observed import Absent, Observed, Unknown
from .._model.outcome import Difference, Outcome, refused_by
from .._model.plan import Plan, Refusal
from .._model.ports import Gate, Ports, Store
from .._model.records import CLUSTER, MACHINE, Event, Listing, Record, Ref
from .._model.timing import Timing
from .machine_rows import machine_row
from .node_reads import read_maintenance
from .probing import certificates_of, each
from .quorum_reads import read_etcd
from .record_reads import check_names, need_store
from .select import chosen
from .status_writing import changed_record, write_change


@dataclass(frozen=True)
class Request:
    """The same edit for every machine that is chosen; `edit.name` is overwritten by each name.

    Endpoint, host name, identity and fingerprint belong to one machine, so that a choice of several with one of them is
    refused.
    """

    machines: tuple[str, ...] = ()
    select: str = ""
    cluster: str = ""
    edit: Edit = field(default_factory=lambda: Edit(""))
    timing: Timing = field(default_factory=Timing)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read the records and what else the edit needs, decide, show the plan, write it.

    With one named machine a refusal fails the task and nothing is done. With several, those that are refused are listed as
    blocked, those that do not answer as out of reach, and the others go on.
    """
    store = need_store(ports)
    machines = store.list(MACHINE)
    names = chosen(machines.records, request.machines, request.select, request.cluster)
    alone = len(names) == 1 and not request.select
    _check(request, names)
    if not alone and not request.edit.absent:
        check_names(store, names)
    seen = await each(names, lambda name: _observe(request, ports, store, machines, name))
    now = ports.clock.now()
    records = {machine.name: machine for machine in machines.records}
    decided: dict[str, Edited] = {}
    for name, before in zip(names, seen):
        edited = decide_edit(_edit(request, name), replace(before, machines=tuple(records.values())), now)
        decided[name] = edited
        if edited.record is not None:
            records[name] = edited.record
        elif edited.plan.steps:
            records.pop(name, None)
    plan = sum((edited.plan for edited in decided.values()), Plan())
    if alone and plan.refusals:
        plan = replace(plan, steps=())
        gate(plan)
        return replace(refused_by(plan),
                       machines=tuple(machine_row(edited.record) for edited in decided.values() if edited.record is not None),
                       blocked=() if decided[names[0]].unreachable else names, unreachable=names if decided[names[0]].unreachable else ())
    return await _act(request, ports, store, plan, gate(plan), decided)


def _edit(request: Request, name: str) -> Edit:
    return replace(request.edit, name=name, settle=request.timing.settle, sending_fresh=request.timing.sending_counts)


def _check(request: Request, names: tuple[str, ...]) -> None:
    edit = request.edit
    if not (request.machines or request.select):
        raise TalosError("InvalidInput", "No machine is named.", "Give machine, machines or select.")
    if edit.fingerprint and not edit.trust:
        raise TalosError("InvalidInput", "fingerprint is only for a trust.", "Set trust: true beside it.")
    single = [name for name, value in (("endpoint", edit.endpoint), ("hostname", edit.hostname), ("identity", edit.identity),
                                       ("fingerprint", edit.fingerprint)) if value]
    if len(names) > 1 and single:
        raise TalosError("InvalidInput", f"{' and '.join(single)} can only be given for one machine.", "Name one machine.")


async def _observe(request: Request, ports: Ports, store: Store, machines: Listing, name: str) -> EditSeen:
    machine = next((record for record in machines.records if record.name == name), None)
    broken = next((entry for entry in machines.broken if entry.name == name), None)
    cluster = store.get(CLUSTER, cluster_of(machine)) if machine is not None else None
    seen = EditSeen(machine, cluster, machines.records, broken)
    if machine is None:
        return seen
    edit = request.edit
    if edit.absent:
        if counts_for_quorum(machine, cluster, machines.records):
            ports.progress(f"{name}: asking the other control planes about etcd")
            return replace(seen, etcd=await read_etcd(ports, machine, cluster, machines.records, edit.allow_loopback))
        return seen
    if edit.trust or edit.install and approval_state(machine) == "approved":
        return replace(seen, node=await _facts(ports, machine, cluster, edit))
    return seen


async def _facts(ports: Ports, machine: Record, cluster: Record | None, edit: Edit) -> Observed[NodeFacts]:
    if approval_state(machine) == "rejected":
        return Absent("a rejected machine is not asked")
    known = known_endpoints(machine)
    if not known:
        return Unknown("EndpointRefused", "it has no address that can be read")
    why = dial_rules(cluster.spec if cluster else None, edit.allow_loopback).problem(known[0].host)
    if why:
        return Unknown("EndpointRefused", f"the address {known[0]} is not dialled: {why}")
    ports.progress(f"{machine.name}: reading {known[0]}")
    return await read_maintenance(ports, known[0])


async def _act(request: Request, ports: Ports, store: Store, plan: Plan, granted: Plan, decided: Mapping[str, Edited]) -> Outcome:
    now = ports.clock.now()
    unsettled = await _unsettled(request, ports, granted, decided)
    current: dict[str, Record] = {}
    gone: set[str] = set()
    executed: list[str] = []
    events: list[Event] = []
    for step in granted.steps:
        name = step.target.name
        if isinstance(step, DeleteRecord):
            store.delete(step.before)
            gone.add(name)
        elif isinstance(step, EditMachine):
            current[name] = store.update(step.before, step.spec, annotations=_annotations(step), override=step.override)
        elif isinstance(step, TrustMachine) and name not in unsettled:
            events.extend(_trust(store, step, current, now))
        else:
            continue
        executed.append(step.id)
    fresh = {name: store.get(MACHINE, name) or record for name, record in current.items()}
    would_be = {name: _after(edited, now) for name, edited in decided.items() if ports.check and edited.plan.steps}
    rows = []
    for name, edited in decided.items():
        record = fresh.get(name) or would_be.get(name) or edited.record
        if record is not None:
            refusal = next(iter(edited.plan.refusals), None)
            rows.append(machine_row(record, changed=bool(edited.plan.steps), reason=refusal.reason if refusal else "",
                                    message=refusal.message if refusal else ""))
    alone = len(decided) == 1 and not request.select
    late = next(iter(unsettled.values()), None)
    return Outcome(
        plan=replace(plan, refusals=plan.refusals + tuple(unsettled.values())), executed=tuple(executed), machines=tuple(rows), events=tuple(events),
        blocked=tuple(sorted({name for name, edited in decided.items() if edited.plan.refusals and not edited.unreachable} | set(unsettled))),
        unreachable=tuple(sorted(name for name, edited in decided.items() if edited.unreachable)),
        refused=alone and late is not None, reason=late.reason if alone and late else "",
        message=f"{late.message} {late.hint}" if alone and late else "",
        waiting_for=tuple(f"{step.target}: {wait.what}" for step in plan.steps for wait in step.waits_for) if ports.check else (),
        differences=_differences(decided, plan),
        would_be=tuple(record for record in would_be.values() if record is not None),
        would_delete=tuple(Ref(MACHINE, step.target.name) for step in plan.steps if isinstance(step, DeleteRecord)) if ports.check else (),
        extra={"deleted": list(sorted(gone))})


def _annotations(step: EditMachine) -> Mapping[str, str]:
    """All annotations as they are to be; a changed one without a value is taken away."""
    kept = {**step.before.annotations, **step.annotations}
    return {name: value for name, value in kept.items() if value or name not in step.annotations}


def _trust(store: Store, step: TrustMachine, current: dict[str, Record], now: float) -> tuple[Event, ...]:
    name = step.target.name
    record = current.get(name) or store.get(MACHINE, name)
    if record is None:
        raise TalosError("RecordChanged", f"Machine {name} is gone since it was read.", "Run again.")
    if dict(record.spec) != dict(step.spec) or dict(record.annotations) != dict(step.annotations):
        record = store.update(record, step.spec, annotations=step.annotations, override=step.override)
    current[name] = record
    # An edit of the identity just before this has given the record another uid.
    return write_change(store, replace(step.change, uid=record.uid), now) if step.change is not None else ()


async def _unsettled(request: Request, ports: Ports, granted: Plan, decided: Mapping[str, Edited]) -> Mapping[str, Refusal]:
    """Machines whose certificate is another one at the second reading (section 5)."""
    waiting = {step.target.name: step for step in granted.steps if isinstance(step, TrustMachine) and step.waits_for}
    homes = {name: known_endpoints(record)[0] for name in waiting if (record := decided[name].record) is not None}
    if not homes:
        return {}
    await ports.clock.sleep(request.timing.settle)
    shown = await certificates_of(ports, homes.values(), request.timing.call)
    found: dict[str, Refusal] = {}
    for name, endpoint in homes.items():
        certificate = shown.get(endpoint)
        if certificate is None or not certificate.matches(waiting[name].fingerprint):
            found[name] = Refusal(waiting[name].target, "MaintenanceIdentityChanged",
                                  f"The certificate at {endpoint} was another one {request.timing.settle:g} s later: nothing was accepted.",
                                  "Run again once the node has settled.", "5/not-settled")
    return found


def _after(edited: Edited, now: float) -> Record | None:
    record = edited.record
    for step in edited.plan.steps:
        if record is not None and isinstance(step, TrustMachine) and step.change is not None:
            record = changed_record(record, step.change, now)
    return record


def _differences(decided: Mapping[str, Edited], plan: Plan) -> tuple[Difference, ...]:
    befores = {step.target.name: step.before for step in plan.steps if isinstance(step, (EditMachine, DeleteRecord))}
    found = []
    for name, before in befores.items():
        after = decided[name].record
        found.append(Difference({"annotations": dict(before.annotations), "spec": dict(before.spec)},
                                {"annotations": dict(after.annotations), "spec": dict(after.spec)} if after is not None else {}, f"TalosMachine/{name}"))
    return tuple(found)
