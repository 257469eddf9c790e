# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Approve or reject machines by name (design section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .._decide.approval import decide_approval, nothing_to_say
from .._decide.approval_words import ApproveMachine, Candidate, Decision, RejectMachine, Wanted
from .._model.approval import status_lost
from .._model.dialling import DialRules, dial_rules
from .._model.errors import TalosError
from .._model.machine import cluster_of, known_endpoints
from .._model.observations import Endpoint, NodeFacts
from .._model.observed import Absent, Observed, Unknown
from .._model.outcome import Difference, Outcome, refused_by
from .._model.plan import Plan, Refusal
from .._model.ports import Gate, Ports, Store
from .._model.records import CLUSTER, MACHINE, Event, Json, Listing, Record
from .._model.timing import Timing
from .machine_rows import machine_row
from .node_reads import read_maintenance
from .probing import certificates_of, each
from .record_reads import need_store
from .status_writing import changed_record, write_change


@dataclass(frozen=True)
class Request:
    """One decision for one or several machines; `wanted.name` is overwritten by each name.

    Host name, network and fingerprint belong to one machine, so that several names with one of them are refused.
    """

    machines: tuple[str, ...]
    wanted: Wanted = field(default_factory=lambda: Wanted(""))
    timing: Timing = field(default_factory=Timing)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Read the records and the nodes, decide all of them, show the plan, and write it; all or nothing."""
    store = need_store(ports)
    _check(request)
    machines = store.list(MACHINE)
    seen = await each(request.machines, lambda name: _observe(request, ports, store, machines, name))
    decisions: list[Decision] = []
    records = {machine.name: machine for machine in machines.records}
    for name, candidate in zip(request.machines, seen):
        decision = decide_approval(_wanted(request, name), replace(candidate, machines=tuple(records.values())), ports.clock.now())
        decisions.append(decision)
        if decision.record is not None:
            records[name] = decision.record
    plan = sum((decision.plan for decision in decisions), Plan())
    if plan.refusals:
        plan = replace(plan, steps=())
        gate(plan)
        return replace(refused_by(plan),
                       machines=tuple(machine_row(decision.record) for decision in decisions if decision.record is not None),
                       blocked=tuple(sorted({refusal.target.name for refusal in plan.refusals})))
    return await _act(request, ports, store, plan, gate(plan), decisions)


def _check(request: Request) -> None:
    if not request.machines:
        raise TalosError("InvalidInput", "No machine is named.", "Give machine or machines.")
    single = [name for name, value in (("hostname", request.wanted.hostname), ("network", request.wanted.network),
                                       ("fingerprint", request.wanted.fingerprint)) if value]
    if len(request.machines) > 1 and single:
        raise TalosError("InvalidInput", f"{' and '.join(single)} can only be given for one machine.", "Approve the machines one by one.")


def _wanted(request: Request, name: str) -> Wanted:
    return replace(request.wanted, name=name, settle=request.timing.settle)


async def _observe(request: Request, ports: Ports, store: Store, machines: Listing, name: str) -> Candidate:
    machine = next((record for record in machines.records if record.name == name), None)
    broken = next((entry for entry in machines.broken if entry.name == name), None)
    cluster = store.get(CLUSTER, cluster_of(machine)) if machine is not None else None
    candidate = Candidate(machine, ports.actor, cluster, machines.records, broken)
    wanted = _wanted(request, name)
    if machine is None or wanted.state != "approved" or nothing_to_say(wanted, machine) or status_lost(machine) or ports.actor.schedule:
        return candidate
    rules = dial_rules(cluster.spec if cluster else None, wanted.allow_loopback)
    known = known_endpoints(machine)
    if not known:
        return replace(candidate, node=Unknown("EndpointRefused", "it has no address that can be read"))
    ports.progress(f"{name}: reading {known[0]}")
    node = await _facts(ports, known[0], rules)
    home = await _facts(ports, known[1], rules) if len(known) > 1 else Absent()
    return replace(candidate, node=node, home=home)


async def _facts(ports: Ports, endpoint: Endpoint, rules: DialRules) -> Observed[NodeFacts]:
    why = rules.problem(endpoint.host)
    return Unknown("EndpointRefused", f"The address {endpoint} is not dialled: {why}.") if why else await read_maintenance(ports, endpoint)


async def _act(request: Request, ports: Ports, store: Store, plan: Plan, granted: Plan, decisions: list[Decision]) -> Outcome:
    now = ports.clock.now()
    steps = [step for step in granted.steps if isinstance(step, (ApproveMachine, RejectMachine))]
    unsettled = await _unsettled(request, ports, steps)
    executed: list[str] = []
    events: list[Event] = []
    written: dict[str, Record] = {}
    for step in steps:
        if step.target.name in unsettled:
            continue
        record = store.update(step.before, step.spec, override=step.override)
        executed.append(step.id)
        if step.change is not None:
            events.extend(write_change(store, step.change, now))
        written[record.name] = store.get(MACHINE, record.name) or record
    if not ports.check:
        for decision in decisions:
            if decision.left_over is not None:
                write_change(store, decision.left_over, now)
    refusals = tuple(unsettled.values())
    would_be = tuple(_would_be(step, now) for step in plan.steps) if ports.check else ()
    fresh = {record.name: record for record in would_be if record is not None} | written
    rows = [machine_row(fresh.get(decision.record.name, decision.record), changed=decision.record.name in fresh)
            for decision in decisions if decision.record is not None]
    waiting = tuple(f"{step.target}: {wait.what}" for step in plan.steps for wait in step.waits_for) if ports.check else ()
    return Outcome(
        plan=replace(plan, refusals=refusals), executed=tuple(executed), machines=tuple(rows), events=tuple(events),
        refused=bool(refusals), reason=refusals[0].reason if refusals else "",
        message=f"{refusals[0].message} {refusals[0].hint}" if refusals else _message(plan, ports.check),
        blocked=tuple(sorted(unsettled)), waiting_for=waiting, differences=_differences(plan),
        would_be=tuple(record for record in would_be if record is not None), extra=_extra(decisions))


async def _unsettled(request: Request, ports: Ports, steps: list[ApproveMachine | RejectMachine]) -> Mapping[str, Refusal]:
    """Machines whose certificate is another one at the second reading: nothing is accepted of them (section 5)."""
    waiting = {step.target.name: step for step in steps if isinstance(step, ApproveMachine) and step.waits_for}
    if not waiting:
        return {}
    homes = {name: known_endpoints(step.before)[0] for name, step in waiting.items()}
    await ports.clock.sleep(request.timing.settle)
    shown = await certificates_of(ports, homes.values(), request.timing.call)
    found: dict[str, Refusal] = {}
    for name, step in waiting.items():
        certificate = shown.get(homes[name])
        if certificate is None or not certificate.matches(step.fingerprint):
            told = certificate.fingerprint if certificate is not None else "none"
            found[name] = Refusal(step.target, "MaintenanceIdentityChanged", (
                f"The certificate at {homes[name]} was {step.fingerprint} and {request.timing.settle:g} s later {told}: nothing was accepted."),
                "Run again once the node has settled.", "5/not-settled")
    return found


def _would_be(step: object, now: float) -> Record | None:
    if not isinstance(step, (ApproveMachine, RejectMachine)):
        return None
    record = replace(step.before, spec=step.spec)
    return changed_record(record, step.change, now) if step.change is not None else record


def _differences(plan: Plan) -> tuple[Difference, ...]:
    return tuple(Difference(dict(step.before.spec), dict(step.spec), f"TalosMachine/{step.target.name}")
                 for step in plan.steps if isinstance(step, (ApproveMachine, RejectMachine)))


def _extra(decisions: list[Decision]) -> dict[str, Json]:
    """The fingerprints that were accepted, by machine, and that of a single one by itself."""
    accepted: dict[str, Json] = {decision.record.name: decision.fingerprint for decision in decisions
                                 if decision.record is not None and decision.fingerprint}
    only = next(iter(accepted.values())) if len(accepted) == 1 else ""
    return {"fingerprints": accepted, "fingerprint": only}


def _message(plan: Plan, check: bool) -> str:
    if not plan.steps:
        return "Every machine is as wanted already."
    done = [f"{step.target} {'approved' if isinstance(step, ApproveMachine) else 'rejected'}" for step in plan.steps]
    return f"{'Would be: ' if check else ''}{', '.join(done)}."
