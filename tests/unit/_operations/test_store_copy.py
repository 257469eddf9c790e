# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records move between a folder and a real API server, there and back, and a run that is killed leaves at most one store in use."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._ansible.no_nodes import NoNodes
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Actor, Ports
from ansible_collections.ichor.talos.plugins.module_utils._model.records import BACKUP, CLUSTER, CONFIG_PATCH, KINDS, MACHINE, RECLAIM, Event, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._operations.store_copy import Request, run
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store as open_kubernetes

from tests.unit._store.store_world import APPROVAL, StillClock, cluster, machine, made, reason, snapshot, stage

SENT = {"stage": "running", "configStoredAt": "2026-09-21T14:13:20Z", "appliedConfigHash": "h", "nodeName": "cp-1"}
RECORDS = (
    cluster("prod", secretsRef={"name": "prod"}, certSANs=["api.example.org"]),
    replace(machine(1, **APPROVAL), status=SENT, labels={"rack": "a"}, annotations={"note": "x"}),
    machine(2, {"stage": "maintenance"}),
    machine(3),
    Record(CONFIG_PATCH, "p", {"clusterRef": "prod", "layer": "cluster", "priority": 1, "documents": [{"machine": {"sysctls": {"a": "1"}}}]}),
    Record(RECLAIM, "r", {"address": "192.0.2.9", "clusterRef": "prod", "confirmUUID": "4c4c4544-0042-3010-8047-000000000001",
                          "notAfter": "2027-12-01T00:00:00Z"}, {"outcome": "Refused"}),
    Record(BACKUP, "nightly", {"clusterRef": "prod", "destination": {"file": {"path": "/backups"}}, "keep": 3}),
)
EVENTS = (Event(Ref(MACHINE, "m1"), "Normal", "ConfigApplied", "sent", "2026-09-21T14:13:20Z"),
          Event(Ref(MACHINE, "m1"), "Normal", "NodeJoined", "joined", "2026-09-21T14:20:00Z"))


def filled(store):
    for record in RECORDS:
        store.create(record)
    for event in EVENTS:
        store.record_event(event)
    store.write_bundle("prod", b"keys")
    return store


def content(store):
    """Everything that a move takes along, without what each store says in its own way."""
    records = {}
    for kind in KINDS:
        for record in store.list(kind).records:
            spec = {name: value for name, value in record.spec.items() if name != "approvedVia"}
            status = {name: value for name, value in record.status.items() if name != "recordUID"}
            records[kind, record.name] = (spec, status, dict(record.labels), dict(record.annotations))
    return records, set(store.events()), store.bundle("prod")


def move(source, target, clock=None, check=False, actor="ada"):
    lines = []
    ports = Ports(NoNodes(), source, clock or StillClock(), lines.append, Actor(actor, actor), check=check, holder="the mover")
    gate = (lambda plan: replace(plan, steps=())) if check else (lambda plan: plan)
    return asyncio.run(run(Request(source, target), ports, gate))


@pytest.fixture
def folder(tmp_path):
    return filled(made(tmp_path / "a"))


@pytest.fixture
def kube(apiserver):
    opened = open_kubernetes(Access(kubeconfig=str(apiserver.kubeconfig)), f"t-{uuid.uuid4().hex[:12]}", clock=StillClock(), create=True)
    yield opened
    opened.close()


def live(*stores):
    return [store.description for store in stores if store.place().live]


def test_there_and_back_gives_equal_records(folder, kube):
    path = folder.layout.spec(MACHINE, "m1")
    path.write_text("# rack 7, bottom\n" + path.read_text())
    before, files = content(folder), snapshot(folder.layout.tree)
    there = move(folder, kube)
    assert [step.action for step in there.plan.steps] == ["MoveStore"] and there.executed
    assert content(kube) == before and live(folder, kube) == [kube.description]
    assert kube.get(MACHINE, "m1").spec["approvedVia"] == "admin" and folder.get(MACHINE, "m1").spec["approvedVia"] == "ada"

    # Runs on what was moved are refused, by name of the other store.
    old = folder.get(MACHINE, "m1")
    for write in (lambda: folder.patch_status(old.ref, old.uid, stage("x")), lambda: folder.leases.acquire("prod", "eve", "x", 60.0),
                  lambda: folder.create(machine(9))):
        with pytest.raises(TalosError, match=kube.namespace) as caught:
            write()
        assert caught.value.reason == "StoreMoved"
    again = move(folder, kube)
    assert not again.plan.steps and "already" in again.message

    # What happens meanwhile comes back too; files whose record is as it was keep every byte.
    joined = kube.get(MACHINE, "m2")
    kube.update(joined, {**joined.spec, "hostname": "w-2"})
    kube.delete(kube.get(MACHINE, "m3"))
    kube.create(machine(4, {"stage": "maintenance"}))
    kube.record_event(replace(EVENTS[0], message="more"))
    meanwhile = content(kube)
    move(kube, folder, actor="ada")
    assert content(folder) == meanwhile and live(folder, kube) == [folder.description]
    assert snapshot(folder.layout.tree)["machines/m1.yaml"] == files["machines/m1.yaml"]
    now = kube.get(MACHINE, "m1")
    assert reason(kube.patch_status, now.ref, now.uid, stage("x")) == "StoreMoved"
    assert reason(kube.leases.acquire, "prod", "eve", "x", 60.0) == "StoreMoved" and reason(kube.create, machine(9)) == "StoreMoved"
    assert reason(kube.update, now, {**now.spec, "hostname": "x"}) == "StoreMoved" and reason(kube.delete, now) == "StoreMoved"
    assert reason(kube.record_event, EVENTS[0]) == "StoreMoved" and reason(kube.write_bundle, "x", b"x") == "StoreMoved"
    # And there once more, over what was left.
    move(folder, kube)
    assert content(kube) == meanwhile and live(folder, kube) == [kube.description]


@pytest.mark.parametrize("lock", ["prod", "backup.nightly", "reclaim.r", "leader:runner"])
def test_no_move_while_somebody_holds_a_lock(folder, tmp_path, lock):
    folder.leases.acquire(lock, "eve", "a reboot", 60.0)
    target = made(tmp_path / "b")
    before = snapshot(folder.layout.tree)
    refused = move(folder, target)
    assert refused.refused and refused.reason == "LockHeld" and "eve" in refused.message
    assert snapshot(folder.layout.tree) == before and len(live(folder, target)) == 2 and target.list(MACHINE).records == ()


def test_what_records_name_among_the_secrets_comes_along(folder, tmp_path):
    folder.create(Record(BACKUP, "far", {"clusterRef": "prod", "destination": {"s3": {"bucket": "b", "credentialsRef": {"name": "bucket-keys"}}}, "keep": 3}))
    folder.create(Record(RECLAIM, "s", {"address": "192.0.2.8", "clusterRef": "prod", "confirmUUID": "4c4c4544-0042-3010-8047-000000000002",
                                        "notAfter": "2027-12-01T00:00:00Z", "talosconfigRef": {"name": "old-cluster"}}))
    folder.write_bundle("bucket-keys", b"accessKeyId: a")
    folder.write_bundle("old-cluster", b"context: old")
    target = made(tmp_path / "b")
    assert move(folder, target).executed
    assert target.bundle("bucket-keys") == b"accessKeyId: a" and target.bundle("old-cluster") == b"context: old"


def test_a_check_run_writes_nothing(folder, kube):
    before = snapshot(folder.layout.tree)
    checked = move(folder, kube, check=True)
    assert [step.action for step in checked.plan.steps] == ["MoveStore"] and not checked.executed
    assert snapshot(folder.layout.tree) == before and kube.list(MACHINE).records == ()


def test_an_approved_machine_without_its_status_is_not_made_a_new_one(folder, tmp_path):
    folder.layout.status(MACHINE, "m1").unlink()
    assert move(folder, made(tmp_path / "b")).reason == "StatusMissing"


class Killed(BaseException):
    """The end of the process."""


class Dying:
    """A store whose process is killed before or after one write of many; `count` is shared by both stores."""

    WRITES = ("create", "update", "patch_status", "delete", "record_event", "write_bundle", "set_place")

    def __init__(self, inner, count, at):
        self.__dict__.update(inner=inner, count=count, at=at)

    def __setattr__(self, name, value):
        setattr(self.inner, name, value)

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if name not in self.WRITES:
            return found

        def write(*arguments, **options):
            self.count[0] += 1
            if self.count[0] == self.at[0] and not self.at[1]:
                raise Killed
            answer = found(*arguments, **options)
            if self.count[0] == self.at[0]:
                raise Killed
            return answer
        return write


def killed_everywhere(ends, steps):
    """Kill a move at each write, see what is left, and run it again with nobody killed."""
    number, begun = 0, None
    while begun is None or begun[0] >= number:
        number += steps
        for after in (False, True):
            source, target = ends()
            before, begun = content(source), [0]
            try:
                move(Dying(source, begun, (number, after)), Dying(target, begun, (number, after)))
            except Killed:
                source.copying = target.copying = False  # as in the next process
            assert len(live(source, target)) <= 1 or content(source) == before and not target.list(MACHINE).records, (number, after)
            assert len(live(source, target)) <= 1 or begun[0] <= 1, (number, after)
            move(source, target)
            assert content(target) == before and live(source, target) == [target.description], (number, after)
    return number


def test_killed_at_any_write_at_most_one_store_is_live(tmp_path):
    rounds = iter(range(10_000))

    def ends():
        place = tmp_path / str(next(rounds))
        return filled(made(place / "a")), made(place / "b")

    assert killed_everywhere(ends, 1) > 12


def test_killed_on_the_way_to_an_api_server_and_back(tmp_path, apiserver):
    rounds, opened = iter(range(10_000)), []

    def ends():
        number = next(rounds)
        source = filled(made(tmp_path / str(number)))
        target = open_kubernetes(Access(kubeconfig=str(apiserver.kubeconfig)), f"t-{uuid.uuid4().hex[:12]}", clock=StillClock(), create=True)
        opened.append(target)
        if number % 4 < 2:
            return source, target
        move(source, target)
        return target, source

    killed_everywhere(ends, 4)
    for store in opened:
        store.close()


def test_it_is_one_cluster_s_records_and_not_two_stores_mixed(folder, tmp_path):
    target = made(tmp_path / "b")
    target.create(cluster("other"))
    assert move(folder, target).reason == "RecordExists" and len(live(folder, target)) == 2
    assert {record.name for record in target.list(CLUSTER).records} == {"other"}
