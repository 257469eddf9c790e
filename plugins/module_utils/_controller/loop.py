# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loop: one queue, machines concurrent, each looked at again at its own time (design section 18).

A subject is looked at or acted on, never both at once. Tasks only read and write; what follows from their answers is decided in one
place, between two sleeps. The first looks of all make the whole plan, which the gate sees once; a later look that calls for new
steps brings a plan of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace

from .._decide.turns import awaited, next_step, waits_for_others
from .._model.errors import TalosError
from .._model.plan import Plan, Step
from .._model.ports import Gate, Ports
from .._model.records import MACHINE
from .._operations import reconcile
from .._operations.machine_effects import Effects
from .._operations.reconcile import Looked
from . import backing_up, beside, discovering
from .due import Due
from .granted import Granted
from .landing import OUT_OF_REACH, Landed, failed, gist, of_another_kind, raised
from .plan_start import starting_plan
from .request import Request
from .state import State
from .telling import Teller
from .world import World

#: Subjects looked at at once, and acted on at once.
LOOKS, ACTS = 256, 64
#: How long steps that are under way may take once the time of the run is over, beyond the deadline of a send; in seconds.
_GRACE = 30.0
#: How long steps under way may take once the run was told to stop, in seconds.
_STOPPING = 1.5
#: Nothing is due more exactly than this, in seconds.
_TICK = 0.001

SETTLED, PASSES, TIME, INTERRUPTED, PLANNED = "settled", "passes", "time", "interrupted", "planned"


class Loop:
    """One run over one world."""

    def __init__(self, request: Request, ports: Ports, gate: Gate, world: World) -> None:
        self._request, self._ports, self._world, self._clock = request, ports, world, ports.clock
        self.granted = Granted(gate, request.bounded, request.timing.reread)
        self.teller = Teller(ports)
        self.state = State()
        self.due = Due()
        self.looks: dict[str, int] = {}
        self._first: set[str] = set()
        self._planned = False
        self._stale = False
        self._turned: dict[str, tuple[Step, ...]] = {}
        #: When the last look at each subject began (what landed meanwhile it may have missed), also of those under way; when anything last changed.
        self._seen: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._moved = self._clock.monotonic()
        #: Machines whose step needs a lock that cannot be had here until a person takes the store over.
        self._lockless: set[str] = set()
        self._landed: deque[Landed] = deque()
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._acting: set[str] = set()
        self._looking, self._doing = asyncio.Semaphore(LOOKS), asyncio.Semaphore(ACTS)
        self._wake = asyncio.Event()
        self._failure: BaseException | None = None
        self._deadline = self._clock.monotonic() + request.max_runtime

    @property
    def unseen(self) -> tuple[str, ...]:
        """Subjects that this run did not come to look at."""
        return tuple(sorted(self._first))

    async def run(self) -> str:
        """Look and act until the end, and say which end it was. Raises TalosError where the plan or the store ends the run."""
        try:
            end = await self._run()
            await self._finish(end)
            return end
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            await self._stop()
            self._land()
            return INTERRUPTED
        except BaseException:
            await self._stop()
            raise

    async def _run(self) -> str:
        machines = self._world.renew()
        self._first = {*machines, *map(discovering.subject_of, self._world.discovering()), *self._world.beside()}
        for name in sorted(self._first):
            self.due.put(name, self._clock.monotonic())
        if machines:
            self.teller.line(f"looking at {len(machines)} machine{'' if len(machines) == 1 else 's'}")
        while True:
            if self._failure is not None:
                raise self._failure
            self._land()
            now = self._clock.monotonic()
            self._renew(now)
            end = self._end(now)
            if end:
                return end
            for name in self.due.take(now + _TICK):
                self._start(name, self._look(name))
            if not self._landed:
                await self._sleep(now)

    def _end(self, now: float) -> str:
        if now >= self._deadline:
            return TIME
        if self._first or self._busy or self._landed:
            return ""
        if self._ports.check:
            return PLANNED
        if self._request.until_settled and all(self._stuck(name) for name in self.state.unsettled):
            return SETTLED
        return "" if len(self.due) else PASSES

    def _stuck(self, name: str) -> bool:
        """Whether a machine waits for a person: its next step is not in the saved plan, or was done under it, or waits for others on which
        nothing happens any more."""
        steps, seen = self.steps(name), self._seen.get(name, 0.0)
        if name in self._lockless:
            return True
        if steps and (steps[0] not in self.granted or self.granted.done_for_good(steps[0], seen)):
            return True
        if not (seen > self._moved and waits_for_others(steps, name)):
            return False
        # A machine that is not approved is in the hands of another run, which reclaims it and ends that by itself unless it is gone.
        return all(map(self._world.has_approved, awaited(steps))) or seen - self._moved >= self._request.timing.follow_slow

    def steps(self, name: str) -> tuple[Step, ...]:
        """What a machine's last look called for, with what it waits for in its turn."""
        looked = self.state.looked.get(name)
        return self._turned.get(name, looked.round.plan.steps if looked is not None else ())

    async def _sleep(self, now: float) -> None:
        due = self.due.next()
        until = min(self._deadline, self.teller.due, due if due is not None else self._deadline)
        self._wake.clear()
        timer = asyncio.ensure_future(self._clock.sleep(max(_TICK, until - now)))
        timer.add_done_callback(lambda ended: None if ended.cancelled() else self._wake.set())
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
        self.teller.waiting(self.state.unsettled, self._deadline - self._clock.monotonic())

    def _renew(self, now: float) -> None:
        """Read the listings anew, now and then: new records join, those that are gone leave, changed ones are looked at at once."""
        if not self._planned or not self._stale and now - self._world.renewed < 2 * self._request.timing.follow:
            return
        try:
            before, names, after = self._versions(), self._world.renew(), self._versions()
        except TalosError as error:
            self.teller.line(f"the records cannot be read now: {error.message}")
            self._world.renewed, self._stale = now, False
            return
        self._stale = False
        for name in {*names, *self._world.beside()} - self.looks.keys():
            self.looks[name] = 0
            self.due.put(name, now)
        for name in [name for name in self.looks if name not in after and not beside.is_beside(name)]:
            self._forget(name)
        for name in names:
            if name in before and before[name] != after[name]:
                self.due.sooner(name, now)
        for cluster in self._world.discovering():
            self.due.sooner(discovering.subject_of(cluster), now + self._world.discovery_after(cluster))

    def _versions(self) -> dict[str, str]:
        return {record.name: record.resource_version for record in self._world.store.list(MACHINE).records}

    def _forget(self, name: str) -> None:
        self.due.drop(name)
        for known in (self.looks, self._turned, self._seen, self._began):
            known.pop(name, None)
        self.state.forget(name)

    def _start(self, name: str, work: Coroutine[object, object, Landed]) -> None:
        self._busy[name] = asyncio.ensure_future(self._landing(name, work))

    async def _landing(self, name: str, work: Coroutine[object, object, Landed]) -> None:
        """The task of one subject: whatever happens in it is that subject's alone."""
        effects = Effects(self._world.around.ports)
        try:
            landed = await work
        except Exception as error:
            landed = raised(name, effects, error)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failure = error
            return
        finally:
            self._busy.pop(name, None)
            self._acting.discard(name)
            self._wake.set()
        self._landed.append(landed)

    async def _look(self, name: str) -> Landed:
        around = self._world.around
        effects = Effects(around.ports)
        async with self._looking:
            self._began[name] = self._clock.monotonic()
            if beside.is_beside(name):
                return Landed(name, effects, Looked(await beside.look(around, name, effects), of_another_kind))
            return Landed(name, effects, await reconcile.look(around, name, effects))

    async def _act(self, name: str, looked: Looked, step: Step) -> Landed:
        around = self._world.live if step.locked else self._world.around
        effects = Effects(around.ports)
        async with contextlib.nullcontext() if step.locked else self._doing:
            # Whoever waits for the lock of its cluster keeps nobody of another one from acting.
            acted = await looked.act(around, looked.round, step, effects)
        return Landed(name, effects, tried=True, acted=(step.id,) if acted.done else (), refusal=acted.refusal)

    async def _beside(self, name: str, cluster: str, steps: frozenset[str]) -> Landed:
        around = self._world.live if beside.is_lasting(name) else self._world.around
        effects = Effects(around.ports)
        async with self._doing:
            return Landed(name, effects, tried=True, acted=await beside.act(around, name, cluster, steps, effects))

    async def _finish(self, end: str) -> None:
        """Looks are given up; sends that are under way come to their end before the run is over."""
        acting = self._under_way()
        if acting and end == TIME:
            self.teller.line(f"the time is over; {len(acting)} step{' is' if len(acting) == 1 else 's are'} still under way")
            await self._wait(acting, self._request.timing.apply + _GRACE)
            # A snapshot of gigabytes has a time of its own, and each run would begin it anew and give it up.
            await self._wait(self._under_way(backing_up.is_backup), self._request.timing.snapshot)
        await self._stop()
        self._land()

    def _under_way(self, of: Callable[[str], bool] = lambda name: True) -> list[asyncio.Task[None]]:
        """The steps that are being carried out, of these subjects."""
        return [self._busy[name] for name in self._acting if name in self._busy and of(name)]

    async def _wait(self, acting: list[asyncio.Task[None]], seconds: float) -> None:
        """Until these tasks are over, or that long."""
        if not acting:
            return
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        ended = asyncio.ensure_future(asyncio.wait(acting))
        try:
            await asyncio.wait({timer, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            ended.cancel()

    async def _stop(self) -> None:
        """Looks are given up. A step that was sent is seen through for a moment, so that it counts as done; nothing more is sent."""
        self._ports.nodes.end_writes()
        await self._wait(self._under_way(), _STOPPING)
        tasks = list(self._busy.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _land(self) -> None:
        """Take what came back, and start what may go now."""
        moved: set[str] = set()
        changed: set[str] = set()
        while self._landed:
            landed = self._landed.popleft()
            self.state.keep(landed.effects)
            if landed.tried:
                self._did(landed)
            else:
                self._saw(landed, moved, changed)
        if self._first:
            return
        if not self._planned:
            self._planned = True
            self.granted.begin(starting_plan(self.state, self._world, self._ports, self._request.timing))
            changed = set(self.state.looked)
            moved = {looked.round.cluster for looked in self.state.looked.values()}
        if not self._ports.check and self._clock.monotonic() < self._deadline:
            try:
                self._go(changed, moved)
            except TalosError as error:
                self._later(error)

    def _later(self, error: TalosError) -> None:
        """A store that is out of reach now is read again soon; each machine is at its next look. Any other error ends the run."""
        if error.reason != OUT_OF_REACH:
            raise error
        self.teller.line(f"the records cannot be read now: {error.message}")
        self._stale = True

    def _saw(self, landed: Landed, moved: set[str], changed: set[str]) -> None:
        name, looked = landed.name, landed.looked
        self._first.discard(name)
        if looked is None and landed.refusal is None:
            self._forget(name)
            return
        if looked is None and landed.refusal is not None:
            timing = self._request.timing
            after = timing.follow if landed.refusal.reason == OUT_OF_REACH else timing.reread
            looked = failed(name, landed.refusal, self.state.looked.get(name), after)
        if looked is None:
            return
        self.looks[name] = self.looks.get(name, 0) + 1
        self._seen[name] = self._began.pop(name, self._clock.monotonic())
        before = self.state.looked.get(name)
        if before is None or gist(before.round) != gist(looked.round):
            self._moved = self._clock.monotonic()
        if self.state.take(name, looked):
            moved.add(looked.round.cluster)
        changed.add(name)
        if name in self.state.rows:
            (self.teller.row if self._planned else self.teller.known)(looked.round.row)
        self._again(name, looked.round.requeue_after)

    def _again(self, name: str, after: float) -> None:
        passes = self._request.passes
        if passes and (self.looks[name] >= passes or beside.is_beside(name)):
            return
        self.due.put(name, self._clock.monotonic() + after)

    def _did(self, landed: Landed) -> None:
        name, now = landed.name, self._clock.monotonic()
        for step in landed.acted:
            self.granted.did(step, now)
        looked = self.state.looked.get(name)
        if looked is None:
            return
        if beside.is_beside(name):
            self._stale = True
            self.state.unsettled.discard(name)
            if beside.is_lasting(name):
                self._again(name, self._request.timing.reread)
            return
        try:
            self._world.note(name)
            row = reconcile.row_now(self._world.around, looked.round)
        except TalosError as error:
            self._later(error)
            row = looked.round.row
        if landed.acted:
            self._moved = now
            self._lockless.discard(name)
            self.state.unsettled.add(name)
            self.state.rows[name] = row
        elif landed.refusal is not None:
            self.state.refusals[name] = landed.refusal
            (self._lockless.add if landed.refusal.reason == "NoLock" else self._lockless.discard)(name)
            message = f"{landed.refusal.message} {landed.refusal.hint}".strip()
            self.state.rows[name] = replace(self.state.rows[name], reason=landed.refusal.reason, message=message)
        self.teller.row(self.state.rows[name])
        self._again(name, 0.0 if landed.acted else self._request.timing.follow)

    def _go(self, changed: set[str], moved: set[str]) -> None:
        """Start the next step of each machine whose steps are granted and whose wait is over."""
        now = self._clock.monotonic()
        for name in sorted(changed):
            plan = self.state.looked[name].round.plan if name in self.state.looked else Plan()
            self.granted.ask(plan.steps, plan.warnings)
        turns: dict[str, tuple[Step, ...]] = {}
        for cluster in sorted(moved):
            if self.state.wanting(cluster):
                turns.update(self.state.steps(cluster, self._world.cluster(cluster), lambda step: self._may(step, now)))
        for name in changed:
            self._turned.pop(name, None)
        self._turned.update(turns)
        for name in sorted(changed | turns.keys()):
            looked = self.state.looked.get(name)
            if looked is None or name in self._busy:
                continue
            if beside.is_beside(name):
                granted = frozenset(step.id for step in looked.round.plan.steps if self._may(step, now))
                if granted:
                    if beside.is_lasting(name):
                        self.due.drop(name)
                        self._acting.add(name)
                    self._start(name, self._beside(name, looked.round.cluster, granted))
                continue
            step = next_step(turns.get(name, looked.round.plan.steps))
            if step is None or name not in turns and step.locked:
                continue
            if self._may(step, now):
                self.due.drop(name)
                self._acting.add(name)
                self._start(name, self._act(name, looked, step))

    def _may(self, step: Step, now: float) -> bool:
        return step in self.granted and not self.granted.rests(step, now)
