# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_reclaim`: machines of other clusters are inspected, reset with consent, and come back as pending (design section 16)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .._decide.reclaim import Verdict, as_agreed, decide_all, plan_order
from .._decide.reclaim_inspection import lease_of, uuid_of
from .._decide.reclaim_page import lines, page
from .._decide.reclaim_words import Reclaiming
from .._model.addresses import expand
from .._model.errors import LOCK_REASONS, TalosError
from .._model.outcome import MachineRow, Outcome, refused_by
from .._model.plan import Plan, Refusal, Step, Target
from .._model.ports import Gate, Ports
from .._model.records import Event, Json
from .reclaim_reads import Entry, Terms, observe
from .reclaiming import Went, reclaim


@dataclass(frozen=True)
class Request:
    """The machines, each with a person's word for it. `order`: the MachineReclaim that names the one instead."""

    entries: tuple[Entry, ...] = ()
    order: str = ""
    terms: Terms = field(default_factory=Terms)


@dataclass
class _Run:
    """What was done so far, by machine."""

    went: dict[int, Went] = field(default_factory=dict)

    def executed(self) -> tuple[str, ...]:
        return tuple(step for index in self.went for step in self.went[index].done)

    def events(self) -> tuple[Event, ...]:
        return tuple(event for went in self.went.values() for event in went.events)


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Inspect all, decide, show the pages and the plan, and act on exactly what the gate gave back, one machine after the other."""
    if ports.store is None:
        refusal = Refusal(Target(address=", ".join(entry.wish.address for entry in request.entries)), "NoLock",
                          "A reclaim needs the locks of both clusters, and without a store there is none.", "Name a store.", "13/no-store")
        plan = Plan(refusals=(refusal,))
        gate(plan)
        return refused_by(plan)
    if request.order:
        from . import reclaim_orders

        return await reclaim_orders.run(request.order, request.terms, ports, gate)
    _refuse_twice(request.entries)
    # A machine is looked for there after its reset, when it is too late to find that they are no ranges.
    expand(request.terms.ranges)
    seen = await asyncio.gather(*(observe(ports, entry, request.terms) for entry in request.entries))
    verdicts = _refused_twice(seen, decide_all(seen))
    foreseen = _refused_twice(seen, decide_all([as_agreed(one) for one in seen]))
    order = plan_order(seen)
    for index in order:
        for line in lines(seen[index], verdicts[index], foreseen[index]):
            ports.progress(line)
    plan = sum((verdicts[index].plan for index in order), Plan())
    granted = {step.id for step in gate(plan).steps}
    done = _Run()
    failed: dict[str, str] = {}
    for index in order:
        steps = tuple(step for step in verdicts[index].plan.steps if step.id in granted)
        if steps:
            done.went[index] = await _one(request, ports, index, seen[index], steps, failed)
            if done.went[index].refusal is not None:
                failed.setdefault(lease_of(seen[index]), str(seen[index].target))
    pages: list[Json] = [page(*one) for one in zip(seen, verdicts, foreseen)]
    return replace(_outcome(request, ports, plan, seen, verdicts, done), extra={"inspections": pages, "registered": _registered(seen, verdicts, done)})


async def _one(request: Request, ports: Ports, index: int, seen: Reclaiming, steps: tuple[Step, ...], failed: dict[str, str]) -> Went:
    """One machine, unless the one before it of the same cluster has not come back."""
    before = failed.get(lease_of(seen), "") if lease_of(seen) else ""
    if before:
        return Went(refusal=Refusal(seen.target, "OperationInProgress", f"{before} of the same cluster did not come to its end, so this one was left alone.",
                                    "See to that one first, then run this again.", "16/one-before"))
    try:
        return await reclaim(ports, request.entries[index], request.terms, seen, steps, lambda latest: None)
    except TalosError as error:
        rule = "13/lock" if error.reason in LOCK_REASONS else "16/failed"
        return Went(refusal=Refusal(seen.target, error.reason, error.message, error.hint, rule), error=error)


def _refuse_twice(entries: Sequence[Entry]) -> None:
    """Raises TalosError `InvalidInput` for nobody, or an address that is named twice."""
    endpoints = [entry.endpoint for entry in entries]
    if not entries:
        raise TalosError("InvalidInput", "It is not said which machine is reclaimed.", "Set address, nodes, or order.")
    for endpoint in endpoints:
        if endpoints.count(endpoint) > 1:
            raise TalosError("InvalidInput", f"{endpoint} is named twice.", "Name each machine once.")


def _refused_twice(seen: Sequence[Reclaiming], verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """One machine that answers at two of the addresses is wiped by neither name."""
    uuids = [uuid_of(one) for one in seen]
    found = []
    for one, verdict in zip(seen, verdicts):
        uuid = uuid_of(one)
        if uuid and uuids.count(uuid) > 1 and verdict.plan.steps:
            verdict = Verdict(Plan(refusals=(Refusal(one.target, "TwinIdentity", f"Two of the addresses answer with the UUID {uuid}.",
                                                     "Find out which machine it is, and name one address.", "16/twin"),)))
        found.append(verdict)
    return tuple(found)


def _outcome(request: Request, ports: Ports, plan: Plan, seen: Sequence[Reclaiming], verdicts: Sequence[Verdict], done: _Run) -> Outcome:
    rows, refusals, told = [], [], []
    for index, (one, verdict) in enumerate(zip(seen, verdicts)):
        went = done.went.get(index, Went())
        refusal = went.refusal or verdict.refusal
        message = f"{refusal.message} {refusal.hint}".strip() if refusal is not None else _told(one, verdict, went, len(seen) > 1)
        rows.append(MachineRow(went.machine or verdict.machine or str(one.target), one.wish.cluster, "", False, refusal.reason if refusal else "", message,
                               bool(verdict.plan.steps)))
        if went.refusal is not None:
            plan = plan.refused(went.refusal)
        if refusal is not None:
            refusals.append(refusal)
        told.append(message if len(seen) == 1 else f"{one.target}: {message}")
    failed = next(((index, went.error) for index, went in done.went.items() if went.error is not None), None)
    refused = tuple(str(refusal.target) for refusal in refusals)
    silent = tuple(str(refusal.target) for refusal in refusals if refusal.reason == "NodeUnreachable")
    waits = tuple(dict.fromkeys(f"{wait.target}: {wait.what}" for wait in (*plan.waits, *(wait for step in plan.steps for wait in step.waits_for))))
    return Outcome(
        plan=plan, executed=done.executed(), machines=tuple(rows), events=done.events(), refused=bool(refusals),
        reason=refusals[0].reason if refusals else "", message=" ".join(told), blocked=tuple(name for name in refused if name not in silent),
        unreachable=silent, waiting_for=waits if ports.check else (), found_done=bool(done.went) and all(went.told for went in done.went.values()),
        failure=replace(failed[1].failure, step=verdicts[failed[0]].plan.steps[0].id) if failed is not None else None)


def _registered(seen: Sequence[Reclaiming], verdicts: Sequence[Verdict], done: _Run) -> list[Json]:
    """What is pending now, whoever has written it down."""
    names = [done.went.get(index, Went()).machine or verdict.machine for index, verdict in enumerate(verdicts)]
    return [{"address": str(one.target), "uuid": uuid_of(one), "machine": name} for one, name in zip(seen, names) if name]


def _told(seen: Reclaiming, verdict: Verdict, went: Went, several: bool) -> str:
    if verdict.done or went.told:
        return verdict.done or went.told
    if went.machine:
        return f"{seen.target} is pending as {went.machine}. Approve it with talos_machine_approval, machine: {went.machine}."
    if went.done:
        return f"{seen.target} is in maintenance mode; its record stays as it is."
    return "It is ready to be done." if verdict.plan.steps and several else ""
