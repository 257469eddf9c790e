# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container network of one cluster: looked at, decided, and carried out object by object (design section 15)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

from .._decide.cni import choose
from .._decide.cni_objects import decide_network, laid_over, shown, still
from .._decide.cni_values import for_render
from .._decide.cni_words import Branch, Choice, ChangeObject, CniCase, CreateObject, NetworkPlan
from .._model.container_network import KubeAccess, NetworkSeen, Place, place_of
from .._model.errors import TalosError
from .._model.observed import Absent, Observed, Present, Unknown
from .._model.outcome import Difference
from .._model.plan import Plan, Step
from .._model.ports import Networks, Ports, Progress
from .._model.records import Json, JsonMap
from .._model.timing import Timing
from .in_thread import in_thread
from .lease import Held, held

#: How often an object is read again that its controller writes at the same time.
_TRIES = 5


async def look(networks: Networks, access: KubeAccess | None, case: CniCase) -> CniCase:
    """The case with what the cluster's Kubernetes says, where that has to be asked. Raises nothing: silence is Unknown."""
    if case.wish.preset != "managed" or access is None:
        return case
    known = access
    try:
        seen: Observed[NetworkSeen] = Present(await in_thread(lambda: networks.look(known)))
    except TalosError as error:
        seen = Unknown(error.reason, error.message, error.hint)
    return replace(case, seen=seen)


async def plan_network(networks: Networks, access: KubeAccess | None, case: CniCase, progress: Progress) -> tuple[Choice, NetworkPlan]:
    """Which branch applies, and its steps. Raises TalosError where helm does not render, or the API server does not tell an object."""
    seen = await look(networks, access, case)
    choice = choose(seen)
    if choice.branch is None or access is None:
        return choice, NetworkPlan(Plan(refusals=choice.refusals, warnings=choice.warnings))
    branch, known = choice.branch, access
    progress(f"{case.cluster}: rendering {branch.chart}")
    first, second = await render_twice(networks, branch)
    objects = await in_thread(lambda: networks.live(known, first))
    found = decide_network(seen, branch, first, second, objects)
    tried = await in_thread(lambda: _tried(networks, known, found))
    if tried:
        found = decide_network(seen, branch, first, second, tuple(replace(one, tried=tried.get(one.place, Absent())) for one in objects))
    return choice, replace(found, plan=replace(found.plan, warnings=(*choice.warnings, *found.plan.warnings)))


def _tried(networks: Networks, access: KubeAccess, found: NetworkPlan) -> dict[Place, Observed[JsonMap]]:
    """Each object that would be changed as the API server would have it then: it, or a webhook, may put its own back."""
    changed = [(place_of(step.wanted), laid_over(step, found.live)) for step in found.plan.steps if isinstance(step, ChangeObject)]
    return {place: networks.tried(access, laid) for place, laid in changed if laid is not None}


async def render_twice(networks: Networks, branch: Branch) -> tuple[tuple[dict[str, Json], ...], tuple[dict[str, Json], ...]]:
    """Two renders of the branch's chart, which tell what is made anew each time. Raises TalosError where helm does not render."""
    values = for_render(branch.values)
    return (await networks.render(branch.chart, values, branch.kubernetes, branch.apis),
            await networks.render(branch.chart, values, branch.kubernetes, branch.apis))


class Writer:
    """Writes the objects of a network under the lock of its cluster, which is held from the first of them until `stack` is left."""

    def __init__(self, ports: Ports, access: KubeAccess, timing: Timing, stack: AsyncExitStack) -> None:
        self._ports = ports
        self._access = access
        self._timing = timing
        self._stack = stack
        self._lease: Held | None = None

    async def write(self, step: Step) -> None:
        """One object. Raises TalosError, `LockHeld` and `NoLock` too."""
        if self._ports.networks is None:
            return
        if self._lease is None:
            self._lease = await self._stack.enter_async_context(held(self._ports, self._access.cluster, "its container network", self._timing))
        self._ports.progress(f"{step.target.name}: {step.why}")
        self._lease.confirm()
        await carry_out(step, self._ports.networks, self._access)


async def carry_out(step: Step, networks: Networks, access: KubeAccess) -> None:
    """Make or change one object. Raises TalosError `RecordChanged` where somebody else did so meanwhile."""
    if isinstance(step, CreateObject):
        wanted = step.wanted
        await in_thread(lambda: networks.create(access, wanted))
    elif isinstance(step, ChangeObject):
        await in_thread(lambda: _change(step, networks, access))


def _change(step: ChangeObject, networks: Networks, access: KubeAccess) -> None:
    """A controller may write its status in between, which changes the version of the object and nothing that was planned with."""
    for left in range(_TRIES - 1, -1, -1):
        now = networks.live(access, (dict(step.wanted),))[0].now
        found = still(step, now.value) if isinstance(now, Present) else None
        if found is None:
            raise TalosError("RecordChanged", f"{place_of(step.wanted)} is no longer as it was when this was planned.",
                             "Run this again, and look at what would be changed now.")
        try:
            networks.replace(access, found)
            return
        except TalosError as error:
            if error.reason != "RecordChanged" or not left:
                raise


def differences(found: NetworkPlan) -> tuple[Difference, ...]:
    """What each object comes to, by kind, name and path, with secrets masked."""
    wanted = {one.place: one.wanted for one in found.live}
    return tuple(Difference(before, after, str(entry[0])) for entry in found.differences for before, after in (shown(entry, wanted),))


def told(found: NetworkPlan) -> dict[str, Json]:
    """The network for a result: which branch, which chart, and which places of which objects. No value is in it."""
    if found.branch is None:
        return {}
    objects: list[Json] = [{"object": str(place), "there": there, "paths": [change.path for change in changes]}
                           for place, changes, there in found.differences]
    return {"branch": found.branch.what, "chart": str(found.branch.chart), "objects": objects}
