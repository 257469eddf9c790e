# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""After the reset of a foreign node: maintenance mode, wherever it answers then, and the pending record (design sections 6 and 16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._decide.reclaim_inspection import still_there
from .._decide.reclaim_words import Reclaiming, RegisterMachine
from .._decide.same_machine import difference
from .._model.addresses import expand
from .._model.approval import approval_state
from .._model.dialling import dial_rules
from .._model.endpoint import Endpoint
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.machine import identity_of
from .._model.observations import NodeFacts, Partition
from .._model.observed import Observed, Present, Unknown
from .._model.plan import Plan, Refusal
from .._model.ports import Ports
from .._model.records import MACHINE
from . import discover
from .node_reads import read_maintenance, told_boot_id
from .probing import Pace, answers_of
from .reclaim_reads import Entry, Terms, credentials_of, registered
from .teller import Teller

if TYPE_CHECKING:
    from .reclaiming import Went

#: How often a certificate that is not settled yet is looked at again.
_TRIES = 5


@dataclass(frozen=True)
class Waiting:
    """What is waited for: the machine of this identity, in maintenance mode, without the volumes `labels` that it had among `before`."""

    entry: Entry
    terms: Terms
    seen: Reclaiming
    identity: Identity
    labels: tuple[str, ...]
    before: tuple[Partition, ...]
    boot_id: str


async def until_maintenance(ports: Ports, waiting: Waiting) -> Endpoint | Refusal:
    """Where it answers in maintenance mode, or why it does not: the only proof of a reset."""
    entry, terms, target = waiting.entry, waiting.terms, waiting.seen.target
    timing, clock = terms.timing, ports.clock
    teller = Teller(ports, str(entry.endpoint))
    deadline, looked = clock.monotonic() + timing.wait_for_maintenance, clock.monotonic()
    while True:
        where, found = entry.endpoint, await read_maintenance(ports, entry.endpoint)
        if not _is_it(waiting, found):
            boot = await _boot_id(ports, waiting) if isinstance(found, Unknown) and found.reason not in ("ConnectionRefused", "NotListening") else ""
            if boot and waiting.boot_id and boot != waiting.boot_id:
                return Refusal(target, "ResetFailed", f"{entry.endpoint} restarted and kept its data: the reset failed after its OK.",
                               "Look at the node's console (leaving etcd may have failed), then run this again.", "16/restarted-unwiped")
            if clock.monotonic() - looked >= timing.discovery_after_reset:
                looked = clock.monotonic()
                where, found = await _moved(ports, waiting, found)
        if isinstance(found, Present) and _is_it(waiting, found):
            partitions = found.value.partitions
            kept = still_there(waiting.labels, waiting.before, partitions.value) if isinstance(partitions, Present) else ()
            if kept:
                return Refusal(target, "ResetFailed", f"{where} is in maintenance mode, and {', '.join(kept)} is still on its disk.",
                               "Look at the node's console; wipe the disk by hand.", "16/kept")
            if where != entry.endpoint:
                ports.progress(f"{entry.endpoint}: the machine answers at {where} now")
            return where
        left = deadline - clock.monotonic()
        if left <= 0:
            return Refusal(
                target, "ResetFailed", f"{entry.endpoint} was told to reset and has not reached maintenance mode within {timing.wait_for_maintenance:g} s"
                f"{_another(waiting, found)}.",
                "Look at the node's console; send nothing else to it. It may have another address now: name it, or ranges, and run this again.",
                "16/no-maintenance")
        teller(f"waiting for maintenance mode ({found.message or found.reason})" if isinstance(found, Unknown) else "waiting for maintenance mode",
               gist="waiting for maintenance mode")
        await clock.sleep(min(timing.follow, left))


def _is_it(waiting: Waiting, found: Observed[NodeFacts]) -> bool:
    return isinstance(found, Present) and not difference(waiting.identity, found.value.identity)


def _another(waiting: Waiting, found: Observed[NodeFacts]) -> str:
    """Who answers there instead, as a clause."""
    return f"; another machine waits there now: {difference(waiting.identity, found.value.identity)}" if isinstance(found, Present) else ""


async def _moved(ports: Ports, waiting: Waiting, found: Observed[NodeFacts]) -> tuple[Endpoint, Observed[NodeFacts]]:
    """The machine at another address of the ranges, where it is there."""
    entry, terms, cluster = waiting.entry, waiting.terms, waiting.seen.cluster
    rules = dial_rules(cluster.spec if cluster is not None else None, terms.allow_loopback)
    problem = rules.screen()
    try:
        ranges = expand(terms.ranges or registered(cluster))
    except TalosError as error:
        ports.progress(f"{entry.endpoint}: it is looked for nowhere else: {error.message}")
        return entry.endpoint, found
    targets = [one for one in ranges if one != entry.endpoint and not problem(one.host)]
    for answer in await answers_of(ports, targets, Pace(connect=terms.timing.connect)) if targets else ():
        if answer.facts is not None and not difference(waiting.identity, answer.facts.identity):
            return answer.probe.endpoint, Present(answer.facts, str(answer.probe.endpoint))
    return entry.endpoint, found


async def _boot_id(ports: Ports, waiting: Waiting) -> str:
    return await told_boot_id(ports, waiting.entry.endpoint, credentials_of(ports, waiting.entry, waiting.seen.cluster), waiting.identity)


async def register(ports: Ports, waiting: Waiting, endpoint: Endpoint, step: RegisterMachine, went: Went) -> None:
    """Discover this one address, as any pass would; a certificate that is not settled yet is looked at again."""
    entry, terms = waiting.entry, waiting.terms
    request = discover.Request(entry.wish.cluster, addresses=(str(endpoint),), allow_loopback=terms.allow_loopback, timing=terms.timing)
    for attempt in range(_TRIES):
        outcome = await discover.run(request, ports, _all)
        went.events.extend(outcome.events)
        now = _known(ports, waiting.identity.uuid)
        if now and (outcome.executed or not outcome.plan.steps and _answered(outcome.extra.get("found"))):
            went.machine = now
            went.done.append(step.id)
            return
        if attempt + 1 < _TRIES:
            await ports.clock.sleep(terms.timing.settle)
    told = _told(outcome.extra.get("found")) or "; ".join(outcome.waiting_for) or f"{endpoint} does not answer in maintenance mode any more."
    went.refusal = Refusal(waiting.seen.target, "NotInMaintenance", f"The machine was not registered: {told}", "Run talos_discover for its address.",
                           "16/not-registered")


def _all(plan: Plan) -> Plan:
    return plan


def _known(ports: Ports, uuid: str) -> str:
    """The pending record of that UUID, or ''."""
    machines = ports.store.list(MACHINE).records if ports.store is not None else ()
    return next((machine.name for machine in machines if uuid and identity_of(machine).uuid == uuid and approval_state(machine) == "pending"), "")


def _answered(found: object) -> bool:
    return isinstance(found, list) and any(isinstance(entry, dict) and entry.get("kind") == "Maintenance" for entry in found)


def _told(found: object) -> str:
    return " ".join(str(entry.get("message")) for entry in found if isinstance(entry, dict) and entry.get("message")) if isinstance(found, list) else ""
