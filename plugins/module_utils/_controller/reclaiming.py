# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineReclaim records as subjects of the controller: each is carried out once, however many run (design section 3).

A look inspects the machine and writes what is no step (the condition of the record); carrying out the steps looks again, under the lease of
the record.
"""

from __future__ import annotations

from dataclasses import replace

from .._decide.reclaim_order import is_begun, is_over
from .._model.errors import TalosError
from .._model.plan import Plan, Target
from .._model.ports import Ports
from .._model.records import RECLAIM, Record, text_at
from .._operations import reclaim_orders
from .._operations.pass_store import PassStore
from .._operations.provisioning_reads import Surroundings
from .._operations.reclaim_reads import Terms
from .._operations.record_reads import need_store
from .._operations.rounds import Round
from .by_plan import Run, carried_out, done_by, planned, round_of

#: No machine has a name like this: a DNS-1123 name holds no space.
PREFIX = "reclaim "


def subject_of(record: str) -> str:
    return f"{PREFIX}{record}"


def is_order(name: str) -> bool:
    return name.startswith(PREFIX)


def is_open(record: Record) -> bool:
    """Whether there is anything to be done for it."""
    return not is_over(record)


async def look(around: Surroundings, name: str) -> Round:
    """Whether the order is to be carried out, and what that would be. Raises TalosError `RecordNotFound` where the record is gone."""
    ports, record = _ports(around), name.removeprefix(PREFIX)
    order = need_store(ports).get(RECLAIM, record)
    if order is None:
        raise TalosError("RecordNotFound", f"There is no MachineReclaim {record}.", "Check the name.")
    cluster, plan = text_at(order.spec, "clusterRef"), Plan()
    if is_open(order):
        plan = (await planned(_run(around, ports, record), Target(kind=RECLAIM, name=record, cluster=cluster), "16/order-look"))[0]
    # It takes its locks itself: the turns of the cluster's own machines are not its.
    plan = replace(plan, steps=tuple(replace(step, locked=False) for step in plan.steps), waits=())
    after = around.timing.discovery_after_reset if is_begun(order) else around.timing.reread
    return round_of(name, cluster, plan, after)


async def act(around: Surroundings, name: str, granted: frozenset[str]) -> tuple[str, ...]:
    """Carry it out, where nobody else does; gives the ids of the steps that were done. Raises TalosError."""
    return done_by(await carried_out(_run(around, _ports(around), name.removeprefix(PREFIX)), granted))


def _run(around: Surroundings, ports: Ports, record: str) -> Run:
    terms = Terms(timing=around.timing, allow_loopback=around.allow_loopback)
    return lambda gate: reclaim_orders.run(record, terms, ports, gate)


def _ports(around: Surroundings) -> Ports:
    """The ports with the store itself: an order is never read from a listing."""
    store = around.ports.store
    return replace(around.ports, store=store.inner) if isinstance(store, PassStore) else around.ports
