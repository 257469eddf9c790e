# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carrying out the reclaim of one machine: under the leases, reset, maintenance mode, registered (design sections 13 and 16)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from .._decide.lock import Disruption, disruption_of
from .._decide.reclaim import Verdict, decide_reclaim
from .._decide.reclaim_gates import reclaim_name
from .._decide.reclaim_inspection import inspection, lease_of, own_cluster, uuid_of
from .._decide.reclaim_order import SILENT
from .._decide.reclaim_words import Reclaiming, ReclaimMachine, RegisterMachine
from .._decide.same_machine import other_machine
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.moments import moment
from .._model.observed import Present
from .._model.plan import Refusal, Step
from .._model.ports import Ports
from .._model.records import CLUSTER, Event, Record
from . import reclaim_waiting
from .disruption import announce, withdraw
from .lease import Held, held
from .reclaim_reads import Entry, Terms, credentials_of, observe
from .resetting import LOST

#: Called when the reset is about to go out, with the observation that it was decided on.
Sending = Callable[[Reclaiming], None]


@dataclass
class Went:
    """How it went: the steps that were done, the record that it is pending as, events, and why not the rest. `told`: why nothing was left to be
    done when the leases were had."""

    done: list[str] = field(default_factory=list)
    machine: str = ""
    told: str = ""
    events: list[Event] = field(default_factory=list)
    refusal: Refusal | None = None
    error: TalosError | None = None


async def reclaim(ports: Ports, entry: Entry, terms: Terms, seen: Reclaiming, granted: tuple[Step, ...], sending: Sending) -> Went:
    """Under the leases of the node's own cluster and of the one that it goes to, decided again there, exactly the steps that were granted."""
    went = Went()
    deadline = ports.clock.monotonic() + terms.timing.lock_wait
    wanted, first = {step.id for step in granted}, decide_reclaim(seen)
    with _kept(seen, went):
        while True:
            async with _leases(ports, lease_of(seen), entry, terms) as leases:
                now = await observe(ports, entry, terms, strict=True)
                verdict = decide_reclaim(now)
                if first.under_way and verdict.refusal is not None and verdict.refusal.rule in SILENT:
                    now, verdict = seen, first  # it was on its way down, and is down
                refusal = verdict.refusal
                waits = refusal is not None and refusal.rule == "16/own-disruption" and ports.clock.monotonic() < deadline
                if not waits:
                    if lease_of(now) != lease_of(seen) and verdict.reset is not None:
                        went.refusal = _changed(now)
                    elif refusal is not None:
                        went.refusal = refusal
                    elif verdict.done:
                        went.told, went.machine = verdict.done, verdict.machine
                    elif any(step.id not in wanted for step in verdict.plan.steps):
                        went.refusal = _changed(now)
                    else:
                        await _carry_out(ports, entry, terms, now, verdict, leases, sending, went)
                    return went
            ports.progress(f"{entry.endpoint}: {refusal.message if refusal is not None else ''} Waiting for it.")
            await ports.clock.sleep(terms.timing.follow)
    return went


@contextmanager
def _kept(seen: Reclaiming, went: Went) -> Iterator[None]:
    """What was done counts, whatever fails after it; where nothing was done the error goes on."""
    try:
        yield
    except TalosError as error:
        if not went.done:
            raise
        went.refusal, went.error = Refusal(seen.target, error.reason, error.message, error.hint, "16/failed"), error


def _changed(seen: Reclaiming) -> Refusal:
    return Refusal(seen.target, "RecordChanged", "The machine, its cluster or the records changed since the plan was made.",
                   "Run this again and read the new plan.", "16/changed")


@asynccontextmanager
async def _leases(ports: Ports, own: str, entry: Entry, terms: Terms) -> AsyncIterator[tuple[Held, ...]]:
    """Both leases, in the order of their names, so that two runs never wait for each other."""
    async with AsyncExitStack() as stack:
        found = []
        for name in sorted({own, entry.wish.cluster} - {""}):
            found.append(await stack.enter_async_context(held(ports, name, f"reclaiming the machine at {entry.endpoint}", terms.timing)))
        yield tuple(found)


async def resume(ports: Ports, reset: reclaim_waiting.Waiting, own: str, register: RegisterMachine) -> Went:
    """A reset that went out before, of which only the end is awaited. `own`: the lease of the node's own cluster."""
    went = Went()
    with _kept(reset.seen, went):
        async with _leases(ports, own, reset.entry, reset.terms):
            await _await_end(ports, reset, (register,), went)
    return went


async def _carry_out(ports: Ports, entry: Entry, terms: Terms, seen: Reclaiming, verdict: Verdict, leases: tuple[Held, ...], sending: Sending,
                     went: Went) -> None:
    look = inspection(seen)
    identity = look.identity.value if isinstance(look.identity, Present) else Identity(uuid_of(seen))
    partitions = look.partitions.value if isinstance(look.partitions, Present) else ()
    step = verdict.reset
    reset = reclaim_waiting.Waiting(entry, terms, seen, identity, step.partitions if step is not None else (), partitions,
                                    look.boot_id.value if isinstance(look.boot_id, Present) else "")
    if step is not None:
        sending(seen)
        if not await _send(ports, reset, step, leases, went):
            return
    await _await_end(ports, reset, verdict.plan.steps, went)


async def _await_end(ports: Ports, reset: reclaim_waiting.Waiting, steps: tuple[Step, ...], went: Went) -> None:
    """Maintenance mode, then the steps: what was reset is done by that, what is to be registered is registered."""
    found = await reclaim_waiting.until_maintenance(ports, reset)
    if isinstance(found, Refusal):
        went.refusal = found
        return
    went.done += [step.id for step in steps if isinstance(step, ReclaimMachine)]
    _end_disruption(ports, reset.seen)
    for step in steps:
        if isinstance(step, RegisterMachine):
            await reclaim_waiting.register(ports, reset, found, step, went)


async def _send(ports: Ports, reset: reclaim_waiting.Waiting, step: ReclaimMachine, leases: tuple[Held, ...], went: Went) -> bool:
    """Whether the node may have heard. Raises nothing: what fails before it left is the refusal."""
    entry, seen = reset.entry, reset.seen
    own = own_cluster(seen)
    disruption = Disruption(reclaim_name(seen), "reset", moment(ports.clock.now()), reset.boot_id)
    credentials = credentials_of(ports, entry, seen.cluster)
    begun = False
    try:
        if not isinstance(credentials, Present):
            raise TalosError("SecretsUnavailable", "There are no credentials for the node any more.", "Run this again.")
        if isinstance(own, Present):
            for lease in leases:
                lease.confirm()  # who lost one has nothing to announce
            announce(ports, own.value, disruption)
        async with ports.nodes.authenticated(entry.endpoint, credentials.value) as session:
            other = other_machine(reset.identity, await session.identity())
            if other:
                raise TalosError("EndpointIdentityMismatch", f"Another machine answers: {other}.", "Check the address.")
            for lease in leases:
                lease.confirm()
            ports.progress(f"{entry.endpoint}: resetting it; {step.why}")
            begun = True
            await session.reset(step.partitions, graceful=step.graceful)
    except TalosError as error:
        if begun and error.reason in LOST and error.failure.code != "NOT_SENT":
            ports.progress(f"{entry.endpoint}: the answer was lost ({error.message}); maintenance mode tells whether it heard")
            return True
        if isinstance(own, Present):
            withdraw(ports, own.value, disruption)
        went.refusal, went.error = Refusal(seen.target, error.reason, error.message, error.hint, "16/not-sent"), error
        return False
    return True


def _end_disruption(ports: Ports, seen: Reclaiming) -> None:
    """The evidence of a reset is maintenance mode; also that of one which an earlier run made."""
    for record in _managed_records(ports):
        found = disruption_of(record)
        if found is not None and found.machine == reclaim_name(seen):
            withdraw(ports, record, found)


def _managed_records(ports: Ports) -> tuple[Record, ...]:
    return ports.store.list(CLUSTER).records if ports.store is not None else ()
