# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An adoption that is killed with SIGKILL at every boundary at which its store changes, and run again: the same end, and no machine is let go
while its node runs anything else (design laws 4 and 8, section 15).

An adoption only reads nodes, so between two changes of the store there is one state, whichever call it dies at.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import AFTER, BEFORE, CALL, INSIDE, STRAY, WRITE, Boundary, read_trace
from tests.crash.life import HOOK, Place, differences, end_of, events_of
from tests.lab.control import Lab
from tests.nursery.client import Ended, Nursery
from tests.nursery.network import Network
from tests.scenarios.adopting import Running, configuration, named

SHARED = "machine:\n  sysctls:\n    net.core.somaxconn: 4096\n"
BY_HAND = {"machine": {"sysctls": {"kernel.panic": "1"}}}
READS = {"Get", "List", "Version", "EtcdMemberList"}
AS_BEFORE = {"machine": {"sysctls": {"kernel.panic": None}}}
NODES = {"cp-1": configuration("1.13", "controlplane", named("cp-1"), SHARED), "w-1": configuration("1.13", "worker", named("w-1"), SHARED)}


@dataclass
class Adopting:
    """Two nodes of somebody's cluster, and what an adoption that nobody disturbed came to and through."""

    running: Running
    nursery: Nursery
    folder: Path
    trace: tuple[Boundary, ...] = ()
    end: dict[str, Any] | None = None
    number: int = 0

    def place(self) -> Place:
        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir()
        return Place("", "no address", folder, "no fingerprint")

    def run(self, place: Place, kill: Boundary | None = None, *, check: bool = False, **more: Any) -> Ended:
        trace = place.folder / "trace"
        trace.unlink(missing_ok=True)
        options = self.running.options(store_path=str(place.store), consent_class_b=True, **more)
        told = {"trace": str(trace), "store": str(place.store), "kill": vars(kill) if kill else None}
        return self.nursery.run("talos_adopt", check=check, hook=HOOK, told=told, **options)

    def reasons(self, place: Place) -> dict[str, str]:
        """The reason of Ready of each record of a machine, '' where there is no status yet."""
        found = {}
        for path in sorted(place.store.glob("machines/*.yaml")):
            state = place.store / ".state" / "machines" / f"{path.stem}.json"
            conditions = json.loads(state.read_text(encoding="utf-8"))["status"].get("conditions", []) if state.exists() else []
            found[path.stem] = next((str(one["reason"]) for one in conditions if one["type"] == "Ready"), "")
        return found


@pytest.fixture(scope="module")
def adopting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopting]:
    folder = tmp_path_factory.mktemp("adopting")
    with Lab.start({"nodes": {}}, speed=50) as lab, Nursery() as nursery, closing(Network()) as network:
        running = Running(lab, folder / "project", f"{network.prefix}.0", NODES).start()
        found = Adopting(running, nursery, folder)
        place = found.place()
        ended = found.run(place)
        assert ended.result.get("changed"), ended
        found.trace, found.end = tuple(read_trace(place.folder / "trace")), end_of(place)
        assert set(found.reasons(place).values()) == {"Converged"}
        yield found


def test_nothing_is_written_but_at_a_boundary(adopting: Adopting) -> None:
    assert not [boundary for boundary in adopting.trace if boundary.kind == STRAY]
    calls = {boundary.what.rpartition("/")[2] for boundary in adopting.trace if boundary.kind == CALL}
    assert calls and calls <= READS, calls - READS


def test_killed_at_every_change_of_the_store_and_run_again(adopting: Adopting, record_property: Callable[[str, object], None]) -> None:
    mark = adopting.running.lab.mark()
    boundaries = _states(adopting.trace)
    assert any(boundary.what.startswith("make_folder secrets") for boundary in boundaries)
    for boundary in boundaries:
        place = adopting.place()
        assert adopting.run(place, boundary).status == -signal.SIGKILL, boundary
        assert set(adopting.reasons(place).values()) <= {"", "AdoptionHeld", "Converged"}, boundary
        _same_end(adopting, place, str(boundary))
    assert adopting.running.lab.writes(since=mark) == {} and len(boundaries) > 20
    record_property("told", f"crashes: talos_adopt: killed at {len(boundaries)} boundaries of its writes")


def test_what_was_changed_by_hand_after_a_kill_is_not_let_go(adopting: Adopting) -> None:
    """From the moment at which the worker's record is there until it is released; a saved plan is refused for it."""
    worker = adopting.running.record("w-1")
    lab, edits = adopting.running.lab, 0
    # The second time it is written it is approved; until then the next run takes the machine as it finds it.
    first = adopting.trace.index(Boundary(WRITE, f"write_atomically machines/{worker}.yaml", AFTER, 2))
    planned = adopting.folder / "plan.json"
    assert adopting.run(adopting.place(), check=True, save_plan=str(planned)).result["changed"]
    for boundary in (one for one in adopting.trace[first:] if one.kind == WRITE and one.side == AFTER and "machines/" in one.what):
        place = adopting.place()
        assert adopting.run(place, boundary).killed
        released = adopting.reasons(place)[worker] == "Converged"
        lab.edit(node="w-1", patch=BY_HAND)
        try:
            if not released:
                saved = adopting.run(place, plan_file=str(planned)).result
                assert saved["reason"] == "PlanChanged" or "kernel.panic" in str(saved["refusals"]), saved
                assert adopting.reasons(place)[worker] == "AdoptionHeld", boundary
            ended = adopting.run(place).result
            assert adopting.reasons(place)[worker] == ("Converged" if released else "AdoptionHeld"), boundary
            assert released or "kernel.panic" in str(ended["refusals"]), ended
        finally:
            lab.edit(node="w-1", patch=AS_BEFORE)
        _same_end(adopting, place, str(boundary))
        edits += not released
    assert edits > 2


def _states(trace: tuple[Boundary, ...]) -> list[Boundary]:
    """Before the first write and after each, and inside the first of each function in each folder. Making an empty store is left to the
    first life of a cluster."""
    begun = next((number for number, boundary in enumerate(trace) if boundary.kind == CALL), 0)
    writes = [boundary for boundary in trace[begun:] if boundary.kind == WRITE]
    inside = {boundary.what.rpartition("/")[0]: boundary for boundary in reversed(writes) if boundary.side == INSIDE}
    return [boundary for number, boundary in enumerate(writes)
            if boundary.side == AFTER or boundary.side == BEFORE and not number or boundary in inside.values()]


def _same_end(adopting: Adopting, place: Place, where: str) -> None:
    ended = adopting.run(place)
    assert ended.status == 0 and not ended.errors, f"{where}: {ended}"
    differing = differences(end_of(place), adopting.end)
    assert not differing, f"{where}: {differing}"
    assert not list(place.store.rglob("*.ichor-tmp")), where
    assert sorted(events_of(place)) == sorted(set(events_of(place))), where
    shutil.rmtree(place.folder)
