# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Law 8 with real processes: killed with SIGKILL at every step boundary of every module of a first life, and started again.

The boundaries come from a traced run; so a new call or a new write is killed at from then on. What the trace may have
missed is asked of somebody else: the node's own log for the calls, the interpreter's audit events for the writes.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._store.holder_process import of_json, provably_gone, this_process
from tests.crash.boundaries import AFTER, BEFORE, CALL, STRAY, WRITE, Boundary
from tests.crash.life import LATER, NAMES, PATIENT, Life, Place, Step, differences, end_of, events_of
from tests.lab.control import Lab
from tests.nursery.client import Nursery
from tests.nursery.network import Network


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with Lab.start({"nodes": {}}, speed=50) as lab, Nursery() as nursery, closing(Network()) as network:
        life = Life(lab, nursery, tmp_path_factory.mktemp("life"), network.prefix)
        life.live()
        yield life


@pytest.mark.parametrize("name", NAMES)
def test_the_trace_misses_no_call_and_no_write(life: Life, name: str) -> None:
    whole(life, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_that_is_killed_at_any_boundary_and_started_again_ends_like_one_that_was_not(
        life: Life, name: str, record_property: Callable[[str, object], None]) -> None:
    record_property("told", killed_everywhere(life, name))


def whole(life: Life, name: str) -> None:
    """The trace of a step against the nodes' own log and the interpreter's audit events."""
    trace = life.traces[name]
    assert [boundary for boundary in trace if boundary.kind == STRAY] == []
    assert Counter(boundary.what for boundary in trace if boundary.kind == CALL and boundary.side == BEFORE) == Counter(life.called[name])
    sides = {side: Counter((boundary.kind, boundary.what) for boundary in trace if boundary.side == side) for side in (BEFORE, AFTER)}
    assert sides[BEFORE] == sides[AFTER]


def killed_everywhere(life: Life, name: str) -> str:
    """A kill at each boundary of a step, and what there is to tell of it."""
    step = life.cast.steps[life.names.index(name)]
    trace = life.traces[name]
    killed = [boundary for boundary in trace if kill_and_restart(life, step, boundary)]
    calls, writes = (sum(boundary.kind == kind and boundary.side == BEFORE for boundary in trace) for kind in (CALL, WRITE))
    assert killed == trace and len(killed) >= 2 * (calls + writes)
    return f"crashes: {step.module} ({life.cast.role}, {name}): killed at {len(killed)} boundaries of {calls} calls and {writes} writes"


def kill_and_restart(life: Life, step: Step, boundary: Boundary) -> bool:
    """One kill. Whether the process came to the boundary; one that polls less often than the traced one may not, so it is tried again."""
    for unused in range(5):
        place = life.before(step)
        ended = life.run(place, step, kill=boundary)
        if ended.killed:
            assert ended.status == -signal.SIGKILL and not ended.late
            restart(life, place, step, boundary)
            life.leave(place)
            return True
        life.leave(place)
    return False


def restart(life: Life, place: Place, step: Step, boundary: Boundary) -> None:
    judge = step.judge or step.name
    position = life.names.index(step.name)
    for later in life.cast.steps[position:life.names.index(judge) + 1]:
        if later is not step:
            life.wait(place, later)
        until_done(life, place, later, f"{step.name} killed {boundary}")
    where = f"{step.name} killed {boundary}"
    differing = differences(end_of(place), life.ends[judge])
    assert not differing, f"{where}: {differing}"
    assert not list(place.store.rglob("*.ichor-tmp")), where
    for path in place.store.glob(".state/leases/*.json"):
        holder = of_json(json.loads(path.read_text(encoding="utf-8"))["process"])
        assert holder is not None and provably_gone(holder, this_process()), f"{where}: a lease is left that blocks"
    assert max(Counter(events_of(place)).values(), default=0) <= 1, where
    assert life.accepted(place, "ApplyConfiguration") == int(position >= life.names.index("apply")), where
    bootstrapped = "bootstrap" in life.names and position >= life.names.index("bootstrap")
    assert life.accepted(place, "Bootstrap") == int(bootstrapped), where


def until_done(life: Life, place: Place, step: Step, where: str) -> None:
    """Run the step's module again at once; only for the time of another run's send it may ask for patience."""
    ended = life.run(place, step)
    if ended.result.get("reason") == PATIENT:
        ended = life.run(place, step, ahead=LATER)
    assert ended.status == 0, f"{where}: {ended.output} {ended.errors}"
    assert not ended.errors, f"{where}: {ended.errors}"
