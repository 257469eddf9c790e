# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adoption carried out on a real folder: held, released, killed at every write and run again (design section 15)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._ansible.gate import RunGate
from ansible_collections.ichor.talos.plugins.module_utils._ansible.saved_plan import of_plan
from ansible_collections.ichor.talos.plugins.module_utils._decide import adoption_members
from ansible_collections.ichor.talos.plugins.module_utils._decide.adoption_words import AdoptCluster, AdoptWish, LiveNode
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.credentials import Credentials
from ansible_collections.ichor.talos.plugins.module_utils._model.endpoint import Endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import EtcdMember, StageReading
from ansible_collections.ichor.talos.plugins.module_utils._model.observed import Present
from ansible_collections.ichor.talos.plugins.module_utils._model.outcome import Outcome
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import (
    ALLOW_DELETE, CLUSTER, CONFIG_PATCH, HOLD_APPLY, MACHINE, Record, condition_of,
)
from ansible_collections.ichor.talos.plugins.module_utils._operations import adopt
from ansible_collections.ichor.talos.plugins.module_utils._operations.reconcile import HELD, phase_of
from ansible_collections.ichor.talos.plugins.module_utils._store.directory import DirectoryStore
from ansible_collections.ichor.talos.plugins.module_utils._store.opening import open_store
from tests.unit._decide import adoption_world as w
from tests.unit._operations.world import JumpingClock, Killed, OpenGate

PLANE, WORKER, OTHER = "c1-5a1f0c01", "c1-5a1f0c04", "c1-5a1f0c05"
WRITES = frozenset({"create", "update", "patch_status", "write_bundle", "record_event", "delete"})


class Session:
    """Only what adoption may ask of a node; whatever else is asked of it fails."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node

    async def facts(self) -> Any:
        return self._node.facts

    async def machine_config(self, persistent: bool = False) -> Present[bytes]:
        return Present(self._node.kept if persistent and self._node.kept is not None else self._node.text)

    async def etcd_members(self, local: bool) -> tuple[EtcdMember, ...]:
        return (EtcdMember("1", "n-1"),)


class Watched:
    """A store that tells of each write before and after it."""

    def __init__(self, store: Any, hook: Callable[[str], None]) -> None:
        self._store, self._hook = store, hook

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in WRITES:
            return found

        def write(*arguments: Any, **more: Any) -> Any:
            first = arguments[0] if arguments else ""
            self._hook(f"{name} {getattr(first, 'name', first)}")
            done = found(*arguments, **more)
            self._hook(f"{name} {getattr(first, 'name', first)} done")
            return done

        return write


@dataclass
class Place:
    """A folder, and nodes by address."""

    folder: Path
    nodes: dict[Endpoint, LiveNode]
    clock: JumpingClock = field(default_factory=JumpingClock)
    lines: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    hook: Callable[[str], None] = lambda what: None
    silent: tuple[Endpoint, ...] = ()

    @asynccontextmanager
    async def authenticated(self, endpoint: Endpoint, credentials: Credentials) -> AsyncIterator[Session]:
        if endpoint not in self.nodes:
            raise TalosError("ConnectionRefused", f"Nothing listens at {endpoint}.", "Look at it.")
        yield Session(self.nodes[endpoint])

    def change(self, number: int, **values: Any) -> None:
        endpoint = Endpoint(f"192.0.2.{number}")
        self.nodes[endpoint] = replace(self.nodes[endpoint], **values)

    def store(self) -> Any:
        return open_store(str(self.folder), clock=self.clock, create=True)

    def run(self, *, check: bool = False, gate: Any = None, **wish: Any) -> Outcome:
        def told(what: str) -> None:
            self.trace.append(what)
            self.hook(what)

        ports = Ports(self, Watched(self.store(), told), self.clock, self.lines.append, w.ADA, check=check,  # type: ignore[arg-type]
                      credentials=lambda cluster, bundle: Credentials("CA", "CERT", "KEY", "talosconfig"))
        gate = gate or OpenGate(check)
        request = adopt.Request(AdoptWish(w.CLUSTER, tuple(str(endpoint) for endpoint in (*self.nodes, *self.silent)), **wish))
        return asyncio.run(adopt.run(request, ports, gate))

    def machine(self, name: str) -> Record:
        found = self.store().get(MACHINE, name)
        assert found is not None
        return found

    def ready(self, name: str) -> tuple[str, str]:
        found = condition_of(self.machine(name), "Ready")
        assert found is not None
        return found.status, found.reason

    def everything(self) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        return [(record.kind, record.name, dict(record.spec), dict(record.status)) for kind in (CLUSTER, CONFIG_PATCH, MACHINE)
                for record in self.store().list(kind).records]


def place(folder: Path, *nodes: LiveNode) -> Place:
    found = nodes or (w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL), w.worker(5, w.SYSCTL, "machine:\n  sysctls:\n    vm.swappiness: 1\n"))
    return Place(folder / "ichor", {parse_endpoint(one.address): one for one in found})


def test_a_run_is_what_its_check_showed(tmp_path: Path) -> None:
    here = place(tmp_path)
    check = here.run(check=True)
    assert not here.trace and check.plan.changed and not check.executed
    run = here.run()
    assert [step.id for step in run.plan.steps] == [step.id for step in check.plan.steps] == list(run.executed)
    written = {(kind, name): spec for kind, name, spec, dummy in here.everything()}
    shown = {(one["kind"], one["metadata"]["name"]): one["spec"] for one in check.extra["records"]}  # type: ignore[union-attr,index,call-overload]
    assert written == shown
    assert [here.ready(name) for name in (PLANE, WORKER, OTHER)] == [("True", "Converged")] * 3
    assert here.store().get(CLUSTER, w.CLUSTER).status["bootstrappedAt"]
    assert (here.folder / "secrets" / f"{w.CLUSTER}.yaml").stat().st_mode & 0o777 == 0o600
    before = list(here.trace)
    assert not here.run().plan.steps and here.trace == before, "a second run writes nothing"
    assert "3 of 3 nodes" in " ".join(here.lines)


def test_killed_at_every_boundary_and_run_again(tmp_path: Path) -> None:
    nodes = w.plane(1, w.SYSCTL), w.worker(4, w.SYSCTL)
    whole = place(tmp_path / "whole", *nodes)
    whole.run()
    kills = 0
    for number, where in enumerate(whole.trace):
        here = place(tmp_path / str(number), *nodes)
        here.hook = lambda what, here=here, number=number: _kill(len(here.trace) - 1 == number)  # type: ignore[misc]
        with pytest.raises(Killed):
            here.run()
        kills += 1
        for record in here.store().list(MACHINE).records:
            assert phase_of(record) in ("undecided", HELD, "converged"), f"{where}: a loop beside would act on {record.name}"
        here.hook = lambda what: None
        here.run()
        assert here.everything() == whole.everything(), where
    assert kills == len(whole.trace) > 20


def _kill(now: bool) -> None:
    if now:
        raise Killed


def test_a_node_that_is_changed_before_its_release_stays_held(tmp_path: Path) -> None:
    here = place(tmp_path)
    before = here.nodes[Endpoint("192.0.2.4")].text

    def by_hand(what: str) -> None:
        if what == f"update {WORKER} done":
            here.change(4, text=w.config("worker", w.SYSCTL, "machine:\n  sysctls:\n    kernel.panic: 1\n").encode())

    here.hook = by_hand
    first = here.run()
    assert here.ready(WORKER) == ("False", "AdoptionHeld") and here.ready(OTHER) == ("True", "Converged")
    assert [(one.rule, one.reason) for one in first.plan.refusals] == [("15/drift-at-release", "Drifted")] and WORKER in first.blocked
    assert "kernel.panic" in first.plan.refusals[0].message and phase_of(here.machine(WORKER)) == HELD
    here.hook = lambda what: None
    again = here.run()
    assert not again.plan.steps and again.message == f"Nothing to adopt: {WORKER} blocked." and not again.refused
    here.change(4, text=before)
    assert here.run().executed and here.ready(WORKER) == ("True", "Converged")


def test_a_persons_own_hold_stays(tmp_path: Path) -> None:
    here = place(tmp_path)
    here.run(release=False)
    assert here.ready(PLANE) == ("False", "AdoptionHeld")
    store = here.store()
    held = here.machine(WORKER)
    store.update(held, held.spec, annotations={HOLD_APPLY: "true"})
    here.run()
    assert here.ready(WORKER) == ("True", "Converged") and here.machine(WORKER).annotations == {HOLD_APPLY: "true"}
    assert not here.machine(OTHER).annotations


def test_control_planes_are_released_first(tmp_path: Path) -> None:
    here = place(tmp_path)
    running = here.nodes[Endpoint("192.0.2.1")].facts
    here.change(1, facts=replace(running, stage=Present(StageReading("booting", False))))
    first = here.run()
    assert {here.ready(name) for name in (PLANE, WORKER, OTHER)} == {("False", "AdoptionHeld")}
    assert any(PLANE in told for told in first.waiting_for) and any("waits for" in told for told in first.waiting_for)
    here.change(1, facts=running)
    here.trace.clear()
    here.run()
    assert [what.split()[1] for what in here.trace if what.startswith("patch_status") and what.endswith("done")] == [PLANE, WORKER, OTHER]


def test_a_pending_record_keeps_its_name_and_a_cluster_that_was_recorded_counts_as_bootstrapped(tmp_path: Path) -> None:
    here = place(tmp_path)
    store = here.store()
    known = w.cluster()
    store.create(replace(known, status={}))
    pending = w.record(4, "pending", name="found-by-discovery")
    store.create(pending)
    here.run()
    assert here.store().get(CLUSTER, w.CLUSTER).status["bootstrappedAt"]
    written = [what.split()[1] for what in here.trace if what.startswith("patch_status") and what.endswith("done")]
    assert written.count(w.CLUSTER) == 1 and written.index(w.CLUSTER) == 3, "it is told when all are held, before anybody is let go"
    assert here.ready("found-by-discovery") == ("True", "Converged") and here.store().get(MACHINE, WORKER) is None


def test_a_pending_record_that_knows_its_machine_by_its_macs_is_completed(tmp_path: Path) -> None:
    """Also where the run is killed anywhere between."""
    nodes = w.plane(1), w.worker(4)
    pending = w.record(4, "pending", name="by-hand", identity={"macs": ["3c:ec:ef:00:00:04"]})
    whole = place(tmp_path / "whole", *nodes)
    whole.store().create(pending)
    whole.run()
    assert whole.machine("by-hand").spec["identity"]["uuid"] == w.UUID.format(4, 4)  # type: ignore[index,call-overload]
    for number in range(len(whole.trace)):
        here = place(tmp_path / str(number), *nodes)
        here.store().create(pending)
        here.hook = lambda what, here=here, number=number: _kill(len(here.trace) - 1 == number)  # type: ignore[misc]
        with pytest.raises(Killed):
            here.run()
        assert all(phase_of(record) in ("undecided", HELD, "converged") for record in here.store().list(MACHINE).records), whole.trace[number]
        here.hook = lambda what: None
        here.run()
        assert here.everything() == whole.everything(), whole.trace[number]


@pytest.mark.parametrize("silent", [True, False], ids=["gives no answer", "is not named"])
def test_a_held_control_plane_that_cannot_be_looked_at_keeps_the_workers_held(tmp_path: Path, silent: bool) -> None:
    here = place(tmp_path, w.plane(1), w.plane(2), w.worker(4))
    here.run(release=False)
    assert here.run(release=False).message == f"Nothing to adopt: {PLANE}, c1-5a1f0c02, {WORKER} held."
    gone = Endpoint("192.0.2.2")
    node = here.nodes.pop(gone)
    here.silent = (gone,) if silent else ()
    run = here.run()
    assert [here.ready(name) for name in (PLANE, WORKER)] == [("True", "Converged"), ("False", "AdoptionHeld")]
    assert [one.message for one in run.plan.warnings if one.rule == "15/control-plane-held"] == [
        "No worker is let go while a control plane is held: c1-5a1f0c02. Name it too, or delete its record if it is gone."]
    left = f"{WORKER} held{'; 192.0.2.2:50000 not read' if silent else ''}"
    assert here.run().message == f"Nothing to adopt: {left}."
    here.nodes[gone], here.silent = node, ()
    here.run()
    assert {here.ready(name) for name in (PLANE, "c1-5a1f0c02", WORKER)} == {("True", "Converged")}


def test_etcd_is_asked_at_the_next_control_plane_where_the_first_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a configuration is no text to search: a role may be quoted."""
    asked: list[str] = []

    async def members(session: Session, local: bool) -> tuple[EtcdMember, ...]:
        asked.append(session._node.address)
        if len(asked) == 1:
            raise TalosError("TimedOut", "It gave no answer.", "Look at it.")
        return tuple(EtcdMember(str(number), f"n-{number}") for number in range(3))

    monkeypatch.setattr(Session, "etcd_members", members)
    quoted = [replace(node, text=node.text.replace(b"type: controlplane", b'type: "controlplane"')) for node in (w.plane(1), w.plane(2))]
    told = w.config("worker").replace("debug: false", "debug: false # not type: controlplane")
    here = place(tmp_path, w.node(4, told), *quoted)
    run = here.run(check=True)
    assert asked == ["192.0.2.1:50000", "192.0.2.2:50000"]
    assert "etcd has 3 members, and 2 control planes" in " ".join(one.message for one in run.plan.warnings)
    assert next(step.record.spec for step in run.plan.steps if isinstance(step, AdoptCluster))["controlPlane"] == {"count": 3}


def test_a_patch_that_was_edited_is_a_persons(tmp_path: Path) -> None:
    """The patch of a machine whose record was deleted is written anew, unless somebody changed it: then it is taken as given, and nothing is
    adopted where it does not fit the node."""
    here = place(tmp_path)
    here.run()
    store, own = here.store(), f"{OTHER}-adopted"
    machine = here.machine(OTHER)
    store.update(machine, machine.spec, annotations={ALLOW_DELETE: "true"})
    store.delete(here.machine(OTHER))
    here.run()
    assert here.ready(OTHER) == ("True", "Converged")
    for value, taken in ((1, True), ("2", False)):
        machine = here.machine(OTHER)
        store.update(machine, machine.spec, annotations={ALLOW_DELETE: "true"})
        store.delete(here.machine(OTHER))
        patch = store.get(CONFIG_PATCH, own)
        edited = {**patch.spec, "documents": [{"machine": {"sysctls": {"vm.swappiness": value}}}]}
        store.update(patch, edited, annotations={**patch.annotations, "note": "mine"})
        here.run()
        assert dict(here.store().get(CONFIG_PATCH, own).spec) == edited
        assert taken == (here.store().get(MACHINE, OTHER) is not None)


def test_a_machine_may_have_the_name_of_its_cluster(tmp_path: Path) -> None:
    here = place(tmp_path)
    here.store().create(w.record(5, "pending", name=w.CLUSTER))
    here.run()
    assert {record.name for record in here.store().list(CONFIG_PATCH).records} == {f"{w.CLUSTER}-adopted", f"{w.CLUSTER}-adopted-machine"}
    assert {here.ready(name) for name in (PLANE, WORKER, w.CLUSTER)} == {("True", "Converged")}


def test_a_saved_plan_is_consent_and_another_node_is_another_plan(tmp_path: Path) -> None:
    """An approved plan that was stopped goes on; once the node was changed by hand it is refused with the difference."""
    here = place(tmp_path)
    planned = here.run(check=True).plan

    def gate() -> RunGate:
        return RunGate("talos_adopt", check=False, show=here.lines.append, saved=[of_plan("talos_adopt", planned)])

    here.hook = lambda what: _kill(what == f"update {WORKER} done")
    with pytest.raises(Killed):
        here.run(gate=gate())
    here.hook = lambda what: None
    here.change(5, text=w.config("worker", "machine:\n  sysctls:\n    kernel.panic: 1\n").encode())
    before = list(here.trace)
    with pytest.raises(TalosError, match="PlanChanged"):
        here.run(gate=gate())
    assert here.trace == before
    here.nodes.update(place(tmp_path).nodes)
    here.run(gate=gate())
    assert [here.ready(name) for name in (PLANE, WORKER, OTHER)] == [("True", "Converged")] * 3


def test_without_consent_nothing_is_written(tmp_path: Path) -> None:
    image = "machine:\n  kubelet:\n    image: registry.example.org/kubelet:v1.35.0\n"
    here = place(tmp_path, w.plane(1, image))
    for check in (True, False):
        outcome = here.run(check=check)
        assert outcome.refused and outcome.reason == "ConfirmationMissing" and "consent_class_b" in outcome.message and outcome.plan.steps
    assert not here.trace and not here.everything()
    assert here.run(consent=True).executed and here.ready(PLANE) == ("True", "Converged")


def test_fifty_machines_cost_fifty_times_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    inner = adoption_members.render

    def counted(given: Any) -> Any:
        rendered.append(given.machine_name)
        return inner(given)

    listed: list[str] = []
    lists = DirectoryStore.list

    def list_counted(store: Any, kind: str) -> Any:
        listed.append(kind)
        return lists(store, kind)

    monkeypatch.setattr(adoption_members, "render", counted)
    monkeypatch.setattr(DirectoryStore, "list", list_counted)
    here = place(tmp_path, w.plane(1), *(w.worker(number, w.SYSCTL) for number in range(10, 59)))
    run = here.run()
    assert listed.count(MACHINE) <= 3, "all records are read for each machine"
    assert len(run.executed) == len(run.plan.steps) and len(here.store().list(MACHINE).records) == 50
    assert max(rendered.count(name) for name in set(rendered)) <= 3
    assert "50 of 50 nodes" in " ".join(here.lines) and sum("released" in line for line in here.lines) == 50
