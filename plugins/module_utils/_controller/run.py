# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the controller as an operation: the loop, and what it came to (design sections 18 and 20)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from .._decide.machine_table import TableRow, table
from .._decide.moments_shown import age
from .._decide.telling import NodeNow, tell
from .._model.errors import TalosError
from .._model.machine import cluster_of
from .._model.outcome import Outcome
from .._model.ports import Gate, Ports
from .._model.records import CLUSTER, MACHINE, Json, Record
from .._operations.provision_round import would_be
from . import beside
from .leading import led, showing_life
from .loop import INTERRUPTED, PLANNED, SETTLED, Loop
from .request import Request
from .world import World


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Reconcile the machines of the scope, as the one that leads where one has to. Raises TalosError where nothing was begun: a wrong name, a
    store that cannot be read, a plan that is not the approved one; and where the lead was lost."""
    if request.alive_file and not ports.check:
        ports = showing_life(ports, request.alive_file)
    if request.leader and not ports.check:
        return await led(request, ports, lambda leading: _reconcile(request, leading, gate))
    return await _reconcile(request, ports, gate)


async def _reconcile(request: Request, ports: Ports, gate: Gate) -> Outcome:
    world = World(request, ports)
    loop = Loop(request, ports, gate, world)
    end = await loop.run()
    outcome = _outcome(request, ports, world, loop, end)
    with suppress(TalosError):  # a store that fails at the very end takes the table away and not the result
        for line in _table(ports, world, loop):
            ports.progress(line)
    return outcome


def _outcome(request: Request, ports: Ports, world: World, loop: Loop, end: str) -> Outcome:
    state, granted = loop.state, loop.granted
    plan = granted.first
    if not plan.steps:
        # Nothing was called for at first: what was done then is what later plans held.
        plan = replace(plan, steps=tuple(step for later in granted.later for step in later.steps if step.id in granted.executed))
    concerned = {step.target.name for step in plan.steps} | {step.target.name for later in granted.later for step in later.steps}
    rows = tuple(replace(row, changed=name in concerned) for name, row in sorted(state.rows.items()))
    silent = tuple(name for name in sorted(state.rows) if (found := state.looked.get(name)) is not None and found.round.silent)
    blocked = [name for name in sorted(state.rows) if name in state.refusals and name not in silent]
    late = tuple(refusal for refusal in state.refusals.values() if refusal not in plan.refusals)
    waiting = _waiting(loop, end)
    left = loop.due.next()
    later: list[Json] = [{"plan_id": one.id, "plan": [dict(step.describe()) for step in one.steps]} for one in granted.later]
    broken: list[Json] = [{"kind": entry.kind, "name": entry.name, "source": entry.source, "line": entry.line, "message": entry.message}
                          for entry in world.broken()]
    return Outcome(
        plan=replace(plan, refusals=(*plan.refusals, *late)), executed=granted.executed, machines=rows, transitions=tuple(state.transitions),
        events=tuple(state.events), blocked=(*blocked, *(entry.name for entry in world.broken() if world.concerns(entry))), unreachable=silent,
        waiting_for=waiting, requeue_after=max(0.0, left - ports.clock.monotonic()) if left is not None else None,
        differences=tuple(one for name in sorted(state.differences) for one in state.differences[name]),
        message=_message(loop, end, len(silent), len(blocked)), interrupted=end == INTERRUPTED,
        would_be=_would_be(ports, loop) if end == PLANNED else (),
        extra={"ended": end, "settled": end == SETTLED or not (state.unsettled or loop.unseen), "later_plans": later, "broken": broken})


def _would_be(ports: Ports, loop: Loop) -> tuple[Record, ...]:
    """The records as this plan would leave them (section 20)."""
    found: dict[str, Record] = {}
    for name, looked in sorted(loop.state.looked.items()):
        if beside.is_beside(name):
            carried = looked.round.carry
            found.update({record.name: record for record in carried if isinstance(record, Record)} if isinstance(carried, tuple) else {})
        elif (record := would_be(looked.round, ports.clock.now())) is not None:
            found[name] = record
    return tuple(found.values())


def _waiting(loop: Loop, end: str) -> tuple[str, ...]:
    state = loop.state
    told = []
    for name in sorted(state.unsettled):
        row = state.rows.get(name)
        waits = [f"{wait.target}: {wait.what}" if wait.target else wait.what for step in loop.steps(name)[:1] for wait in step.waits_for]
        told.append(f"{name}: {'; '.join(waits) or (row.message if row is not None else '') or 'its next look'}")
    told += [f"{name}: its first look" for name in loop.unseen]
    told += [f"{step.target}: {step.action} is not in the saved plan; save the present plan, read it, and run that" for step in loop.granted.withheld]
    return tuple(told)


def _message(loop: Loop, end: str, silent: int, blocked: int) -> str:
    rows = loop.state.rows.values()
    parts = [f"{sum(1 for row in rows if row.ready)} of {len(rows)} machine{'' if len(rows) == 1 else 's'} Ready"]
    parts += [f"{len(loop.unseen)} not looked at"] if loop.unseen else []
    parts += [f"{silent} out of reach"] if silent else []
    parts += [f"{blocked} held"] if blocked else []
    steps = len(loop.granted.executed)
    done = f"{steps} step{'' if steps == 1 else 's'} done" if end != PLANNED else f"{len(loop.granted.first.steps)} to do"
    ending = {INTERRUPTED: ", stopped before the end"}.get(end, "")
    return f"{', '.join(parts)}; {done}{ending}."


def _table(ports: Ports, world: World, loop: Loop) -> list[str]:
    """What each machine is doing, since when, what it waits for, and what a person would do now."""
    now = ports.clock.now()
    records = {record.name: record for record in world.store.list(MACHINE).records}
    clusters = {record.name: record for record in world.store.list(CLUSTER).records}
    rows = []
    for name, row in sorted(loop.state.rows.items()):
        record = records.get(name)
        if record is None:
            continue
        doing = tell(record, clusters.get(cluster_of(record)), NodeNow())
        refusal = loop.state.refusals.get(name)
        settled = name not in loop.state.unsettled
        advice = refusal.hint if refusal is not None and refusal.hint else doing.advice if settled else ""
        waits = doing.waiting_for if refusal is None else ""
        because = refusal.message if refusal is not None else row.message
        rows.append(TableRow(name, row.stage, age(doing.since, now), row.reason, waits, advice, row.ready, because))
    return table(rows)
