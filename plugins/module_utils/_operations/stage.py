# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`talos_stage`: where machines are in their life, once or followed to the end (design section 9, "Following")."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .._decide.following import Life, is_settled
from .._decide.lock import disruption_of
from .._decide.stage import life_of
from .._model.errors import TalosError
from .._model.identity import Identity
from .._model.machine import cluster_of
from .._model.observations import Endpoint
from .._model.outcome import MachineRow, Outcome
from .._model.plan import Plan, Refusal, Target, Wait
from .._model.ports import Gate, Ports
from .._model.timing import Timing
from .disruption import end_of
from .followed import look_by_record
from .life_reads import look
from .machine_effects import Effects
from .record_reads import check_names, credentials_for, need_store, rules_for
from .selecting import selected
from .teller import Teller

#: How many machines are looked at at once.
_AT_ONCE = 128


@dataclass(frozen=True)
class Request:
    """Machines by record name, or `endpoints` without a store. `follow`: look until all are settled (or `until_running`),
    at most `timeout` seconds. `single`: one named machine, whose refusal fails the task."""

    machines: tuple[str, ...] = ()
    select: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    uuid: str = ""
    cluster: str = ""
    follow: bool = False
    until_running: bool = False
    timeout: float = 1800.0
    single: bool = True
    timing: Timing = field(default_factory=Timing)
    allow_loopback: bool = False


@dataclass(frozen=True)
class _Seen:
    """The last look at one machine."""

    name: str
    cluster: str = ""
    life: Life | None = None
    error: TalosError | None = None
    settled: bool = False


async def run(request: Request, ports: Ports, gate: Gate) -> Outcome:
    """Look at all machines at once, each at its own pace. Stages and conditions are effects: the plan has no step."""
    effects = Effects(ports)
    limit = asyncio.Semaphore(_AT_ONCE)
    deadline = ports.clock.monotonic() + request.timeout
    names = request.machines + (selected(need_store(ports), request.select) if request.select else ())
    if names:
        check_names(need_store(ports), names)
    followers = [_Follower(request, ports, effects, limit, deadline, name=name) for name in names]
    followers += [_Follower(request, ports, effects, limit, deadline, endpoint=endpoint) for endpoint in request.endpoints]
    seen = await asyncio.gather(*(follower.run() for follower in followers))
    goal = "running" if request.until_running else "settled"
    waits = tuple(Wait(goal, request.timeout, one.name) for one in seen if not one.settled) if request.follow else ()
    refusals = tuple(refusal for one in seen if (refusal := _refusal(request, one, ports.check)) is not None)
    plan = Plan(refusals=refusals, waits=waits)
    gate(plan)
    return _outcome(request, seen, plan, effects)


class _Follower:
    """Looks at one machine until it is settled or the time is over."""

    def __init__(self, request: Request, ports: Ports, effects: Effects, limit: asyncio.Semaphore, deadline: float, *,
                 name: str = "", endpoint: Endpoint | None = None) -> None:
        self._request, self._ports, self._effects, self._limit, self._deadline = request, ports, effects, limit, deadline
        self._record, self._endpoint = name, endpoint
        self._name = name or str(endpoint)
        self._teller = Teller(ports, self._name)

    async def run(self) -> _Seen:
        while True:
            async with self._limit:
                try:
                    seen = await (self._look_by_record() if self._record else self._look_by_address())
                except TalosError as error:
                    seen = _Seen(self._name, error=error, settled=True)
            self._tell(seen)
            left = self._deadline - self._ports.clock.monotonic()
            if seen.settled or not self._request.follow or self._ports.check or left <= 0:
                return seen
            await self._ports.clock.sleep(min(self._request.timing.follow, left))

    def _tell(self, seen: _Seen) -> None:
        if not self._request.follow or seen.life is None or self._ports.check:
            return
        self._teller(f"{seen.life.stage} ({seen.life.reason}): {seen.life.message}", f"{seen.life.stage} {seen.life.reason}")

    async def _look_by_address(self) -> _Seen:
        request, ports = self._request, self._ports
        if self._endpoint is None:
            raise ValueError("a follower has a record or an address")
        rules_for(None, request.allow_loopback, self._endpoint)
        credentials = credentials_for(ports, request.cluster, None)
        following = await look(ports, self._endpoint, credentials, Identity(request.uuid), request.timing)
        life = life_of(following, ports.clock.now())
        return _Seen(self._name, request.cluster, life, settled=life.wrong or is_settled(life, None, request.until_running))

    async def _look_by_record(self) -> _Seen:
        request, ports = self._request, self._ports
        seen = await look_by_record(ports, self._record, request.timing, self._effects, request.allow_loopback)
        life, machine = seen.life, seen.machine
        settled = life.wrong or is_settled(life, machine, request.until_running) or life.rule.startswith(("9/never-sent", "9/pending", "9/rejected"))
        if life.joined and settled and request.follow:
            disruption = disruption_of(seen.view.cluster)
            if disruption is not None and disruption.machine == self._record:
                settled = await end_of(ports, seen.view, request.timing, request.allow_loopback)
        return _Seen(self._name, cluster_of(machine), life, settled=settled)


def _refusal(request: Request, seen: _Seen, check: bool) -> Refusal | None:
    target = Target(name=seen.name, cluster=seen.cluster)
    if seen.error is not None:
        return Refusal(target, seen.error.reason, seen.error.message, seen.error.hint, "9/stage-error")
    life = seen.life
    if life is None or check:
        return None
    if life.wrong or (request.follow and life.rule in ("9/never-sent", "9/pending")):
        return Refusal(target, life.reason, life.message, "", life.rule)
    if request.follow and not seen.settled:
        return Refusal(target, "TimedOut", f"It is {life.stage} ({life.reason}) after {request.timeout:g} s: {life.message}",
                       "Run this again to follow it further, or raise timeout; following itself never gives up.", "9/stage-timeout")
    return None


def _outcome(request: Request, seen: list[_Seen], plan: Plan, effects: Effects) -> Outcome:
    rows = tuple(_row(one) for one in seen)
    silent = tuple(one.name for one in seen if one.life is not None and one.life.silent)
    held = {str(refusal.target) for refusal in plan.refusals}
    refused = request.single and bool(plan.refusals)
    only = rows[0] if len(rows) == 1 else None
    first = plan.refusals[0] if refused else None
    waiting = tuple(f"{one.name}: {one.life.message}" for one in seen if one.life is not None and not one.settled)
    return Outcome(
        plan=plan, machines=rows, transitions=tuple(effects.transitions), events=tuple(effects.events),
        blocked=tuple(one.name for one in seen if one.name in held and one.name not in silent), unreachable=silent,
        waiting_for=waiting, requeue_after=request.timing.follow if waiting else None, refused=refused,
        reason=first.reason if first else only.reason if only else "",
        message=f"{first.message} {first.hint}".strip() if first else only.message if only else _summary(seen),
        extra={"settled": all(one.settled for one in seen)})


def _row(seen: _Seen) -> MachineRow:
    if seen.life is None:
        return MachineRow(seen.name, seen.cluster, "", False, seen.error.reason if seen.error else "", seen.error.text if seen.error else "")
    life = seen.life
    return MachineRow(seen.name, seen.cluster, life.stage, life.joined, life.reason, life.message)


def _summary(seen: list[_Seen]) -> str:
    running = sum(1 for one in seen if one.life is not None and one.life.joined)
    return f"{running} of {len(seen)} machines run." if seen else "There is no machine to look at."
