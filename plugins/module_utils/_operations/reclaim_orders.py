# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A MachineReclaim carried out, once, however many run (design sections 3 and 16).

What it was asked for and how far it came stands in its status: one that was killed goes on from there, one that has ended is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .._decide.reclaim import Verdict, decide_reclaim
from .._decide.reclaim_order import (
    FINAL, begun_identity, begun_lease, begun_volumes, decide_begun, is_begun, is_over, order_refusal, started_event, target_of, wish_of, with_begin,
    with_outcome, with_refusal,
)
from .._decide.reclaim_page import lines, page
from .._decide.reclaim_words import Reclaiming, RegisterMachine
from .._model.errors import LOCK_REASONS, TalosError
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Step
from .._model.ports import Gate, Ports
from .._model.records import RECLAIM, Record, text_at
from .lease import held
from .reclaim_reads import Entry, Terms, observe
from .reclaim_waiting import Waiting
from .reclaiming import Went, reclaim, resume
from .record_reads import need_store


@dataclass(frozen=True)
class Looked:
    """An order, what was seen of its machine (None where it was not looked at), and what that calls for."""

    order: Record
    verdict: Verdict
    entry: Entry | None = None
    seen: Reclaiming | None = None


@dataclass
class _Done:
    went: Went = field(default_factory=Went)
    elsewhere: bool = False


def read_order(ports: Ports, name: str) -> Record:
    """Raises TalosError `RecordNotFound` or `StoreMissing`."""
    store = need_store(ports)
    order = store.get(RECLAIM, name)
    if order is None:
        raise TalosError("RecordNotFound", f"There is no MachineReclaim {name} in {store.description}.", "Check the name.")
    return order


async def look(ports: Ports, name: str, terms: Terms) -> Looked:
    """The order and what it calls for now. Nothing is written."""
    order = read_order(ports, name)
    if is_over(order):
        return Looked(order, Verdict(Plan(), f"The order {name} was carried out already: {text_at(order.status, 'outcome')}"))
    refusal = order_refusal(order, need_store(ports).events(order.ref), ports.clock.now())
    if refusal is not None:
        return Looked(order, Verdict(Plan(refusals=(refusal,))))
    try:
        entry = entry_of(ports, order)
        seen = await observe(ports, entry, terms)
    except TalosError as error:
        return Looked(order, Verdict(Plan(refusals=(Refusal(target_of(order), error.reason, error.message, error.hint, "16/order-look"),))))
    verdict = decide_reclaim(seen)
    if is_begun(order):
        verdict = decide_begun(order, seen, verdict, ports.clock.now(), terms.timing.wait_for_maintenance)
    return Looked(order, verdict, entry, seen)


def entry_of(ports: Ports, order: Record) -> Entry:
    """What the order asks for, with the credential that it names. Raises TalosError."""
    name = text_at(order.spec, "talosconfigRef", "name")
    text = need_store(ports).bundle(name).decode("utf-8", "replace") if name else ""
    return Entry(wish_of(order), talosconfig=text, source=f"talosconfig {name}", order=order.name)


async def run(name: str, terms: Terms, ports: Ports, gate: Gate) -> Outcome:
    """Look, show, and carry out what the gate gave back, under a lease of the order."""
    looked = await look(ports, name, terms)
    if looked.seen is not None:
        for line in lines(looked.seen, looked.verdict):
            ports.progress(line)
    granted = gate(looked.verdict.plan)
    done = _Done()
    if granted.steps:
        try:
            await _act(ports, looked, terms, granted.steps, done)
        except TalosError as error:
            rule = "13/lock" if error.reason in LOCK_REASONS else "16/failed"
            done.went.refusal = Refusal(target_of(looked.order), error.reason, error.message, error.hint, rule)
            done.went.error = error
    if not done.elsewhere and not ports.check:
        try:
            _tell(ports, looked, done, bool(granted.steps))
        except TalosError as error:
            if not done.went.done:
                raise
            ports.progress(f"{name}: what came of it could not be written down: {error.message}")
    return _outcome(ports, looked, done)


async def _act(ports: Ports, looked: Looked, terms: Terms, granted: tuple[Step, ...], done: _Done) -> None:
    order, entry, seen = looked.order, looked.entry, looked.seen
    if entry is None or seen is None:
        return
    try:
        async with held(ports, f"reclaim.{order.name}", f"the order {order.name}", replace(terms.timing, lock_wait=0.0)):
            again = read_order(ports, order.name)
            if (again.uid, again.status_version, again.resource_version) != (order.uid, order.status_version, order.resource_version):
                done.elsewhere = True
                return
            done.went = await _carry_out(ports, looked, entry, seen, terms, granted)
            _close(ports, again, done.went)
    except TalosError as error:
        if error.reason != "LockHeld" or done.went.done:
            raise
        done.elsewhere = True  # another run carries it out at this moment


async def _carry_out(ports: Ports, looked: Looked, entry: Entry, seen: Reclaiming, terms: Terms, granted: tuple[Step, ...]) -> Went:
    order, store = looked.order, need_store(ports)
    register = next((step for step in granted if isinstance(step, RegisterMachine)), None)
    if looked.verdict.under_way and is_begun(order) and register is not None:
        waiting = Waiting(entry, terms, seen, begun_identity(order), begun_volumes(order), (), text_at(order.status, "inspection", "bootID"))
        return await resume(ports, waiting, begun_lease(order), register)

    def sending(latest: Reclaiming) -> None:
        now = ports.clock.now()
        store.patch_status(order.ref, order.uid, lambda status: with_begin(status, order, latest, page(latest, looked.verdict), now))
        store.record_event(started_event(order, latest, now))

    return await reclaim(ports, entry, terms, seen, granted, sending)


def _close(ports: Ports, order: Record, went: Went) -> None:
    """What it came to, in its status."""
    now = ports.clock.now()
    if went.refusal is None or went.refusal.rule in FINAL:
        need_store(ports).patch_status(order.ref, order.uid, lambda status: with_outcome(status, order, went.machine, went.refusal, now))


def _tell(ports: Ports, looked: Looked, done: _Done, acted: bool) -> None:
    """What holds an order that is not over; nothing is written where its condition says so already."""
    order, now = looked.order, ports.clock.now()
    refusal = done.went.refusal or (looked.verdict.refusal if not acted else None)
    store = need_store(ports)
    if refusal is not None and is_begun(order) and refusal.rule in FINAL and not acted:
        store.patch_status(order.ref, order.uid, lambda status: with_outcome(status, order, "", refusal, now))
    elif refusal is not None and refusal.rule not in FINAL:
        if with_refusal(dict(order.status), order, refusal, now) != dict(order.status):
            store.patch_status(order.ref, order.uid, lambda status: with_refusal(status, order, refusal, now))
    elif looked.verdict.done and looked.seen is not None and not acted:
        store.patch_status(order.ref, order.uid, lambda status: with_outcome(status, order, "", None, now))


def _outcome(ports: Ports, looked: Looked, done: _Done) -> Outcome:
    refusal = done.went.refusal or looked.verdict.refusal
    plan = looked.verdict.plan.refused(done.went.refusal)
    machine = done.went.machine
    if refusal is not None:
        told = f"{refusal.message} {refusal.hint}".strip()
    elif done.elsewhere:
        told = "Another run carries the order out."
    else:
        told = looked.verdict.done or (f"The machine is pending as {machine}. Approve it with talos_machine_approval, machine: {machine}." if machine else "")
    silent = refusal is not None and refusal.reason == "NodeUnreachable"
    name = str(looked.seen.target) if looked.seen is not None else looked.order.name
    row = MachineRow(machine or name, text_at(looked.order.spec, "clusterRef"), "", False, refusal.reason if refusal else "", told, bool(plan.steps))
    waits = tuple(f"{wait.target}: {wait.what}" for step in plan.steps for wait in step.waits_for)
    pages = [page(looked.seen, looked.verdict)] if looked.seen is not None else []
    uuid = pages[0].get("uuid") if pages else None
    return Outcome(
        plan=plan, executed=tuple(done.went.done), machines=(row,), events=tuple(done.went.events), refused=refusal is not None,
        reason=refusal.reason if refusal else "", message=told, blocked=(name,) if refusal is not None and not silent else (),
        unreachable=(name,) if silent else (), waiting_for=waits if ports.check else (), found_done=done.elsewhere,
        failure=done.went.error.failure if done.went.error is not None else None,
        extra={"inspections": list(pages), "registered": [{"address": name, "uuid": uuid, "machine": machine}] if machine else []})
