# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory store as the port promises it (design section 4)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.approval import status_missing
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Store
from ansible_collections.ichor.talos.plugins.module_utils._model.record_uid import record_uid
from ansible_collections.ichor.talos.plugins.module_utils._model.records import (
    BACKUP, CLUSTER, CONFIG_PATCH, KINDS, MACHINE, RECLAIM, Event, Record, Ref,
)

from tests.unit._store.store_world import APPROVAL, NOW, cluster, machine, made, opened, reason, snapshot, stage


@pytest.fixture
def store(tmp_path):
    return made(tmp_path / "ichor")


def test_it_is_the_port(store):
    port: Store = store
    assert port.description == f"directory {store.layout.tree}"


# Opening.


def test_a_store_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(TalosError, match="There is no store in") as caught:
        opened(tmp_path / "ichor")
    assert caught.value.reason == "StoreMissing"
    (tmp_path / "ichor").mkdir()
    assert reason(opened, tmp_path / "ichor") == "StoreMissing"
    assert snapshot(tmp_path) == {}


def test_it_is_made_only_when_asked_for(tmp_path):
    made(tmp_path / "ichor")
    first = snapshot(tmp_path)
    assert sorted(first) == ["ichor/.ichor-store", "ichor/.state/.gitignore", "ichor/.state/lock", "ichor/.state/store.json"]
    made(tmp_path / "ichor")
    assert snapshot(tmp_path) == first
    assert opened(tmp_path / "ichor").list(MACHINE).records == ()


def test_a_store_whose_making_was_cut_off_is_made_whole(tmp_path):
    made(tmp_path / "whole")
    whole = {name.removeprefix("whole/") for name in snapshot(tmp_path)}
    for left in ((), ("lock",), ("lock", ".gitignore"), ("lock", ".gitignore", "store.json")):
        folder = tmp_path / f"left-{len(left)}"
        (folder / ".state").mkdir(parents=True)
        for name in left:
            (folder / ".state" / name).write_bytes((tmp_path / "whole" / ".state" / name).read_bytes())
        made(folder).leases.acquire("prod", "ada", "x", 60.0)
        assert set(snapshot(folder)) - {".state/leases/prod.json"} == whole


def test_the_state_may_stand_elsewhere(tmp_path):
    store = made(tmp_path / "ichor", state_path=str(tmp_path / "state"))
    store.create(machine(1, {"stage": "maintenance"}))
    assert sorted(snapshot(tmp_path / "ichor")) == [".ichor-store", "machines/m1.yaml"]
    assert not (tmp_path / "state" / ".gitignore").exists()


def test_a_check_run_sees_an_empty_store_where_one_would_be_made(tmp_path):
    store = opened(tmp_path / "ichor", create=True, check=True)
    assert [store.list(kind).records for kind in KINDS] == [()] * 5
    assert store.get(CLUSTER, "prod") is None
    assert store.events() == ()
    assert store.leases.read("prod") is None
    assert snapshot(tmp_path) == {}


def test_a_tree_that_a_person_wrote_is_a_store(tmp_path):
    folder = tmp_path / "ichor" / "clusters"
    folder.mkdir(parents=True)
    folder.joinpath("prod.yaml").write_text(
        "apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosCluster\nmetadata: {name: prod}\nspec: {endpoint: 'https://192.0.2.1:6443'}\n")
    assert opened(tmp_path / "ichor").get(CLUSTER, "prod").spec == {"endpoint": "https://192.0.2.1:6443"}


# Writing and reading.


def test_a_record_comes_back_as_it_was_written(store):
    written = store.create(machine(1, {"stage": "maintenance"}, {"rack": "7"}, {"ichor.maesh.dev/hold-apply": "true"}))
    found = opened(store.layout.tree).get(MACHINE, "m1")
    assert found == written
    assert (found.spec, found.labels, found.annotations) == (machine(1).spec, {"rack": "7"}, {"ichor.maesh.dev/hold-apply": "true"})
    assert found.status == {"stage": "maintenance", "recordUID": found.uid}
    assert (found.generation, found.status_set_aside, found.source) == (1, False, str(store.layout.tree / "machines" / "m1.yaml"))
    assert store.get(MACHINE, "m2") is None


def test_all_kinds_have_a_folder_and_are_listed_by_name(store):
    records = [
        cluster(), machine(2), machine(1),
        Record(CONFIG_PATCH, "p", {"clusterRef": "prod", "layer": "cluster", "documents": [{"kind": "SysctlConfig"}]}),
        Record(RECLAIM, "r", {
            "address": "192.0.2.9", "clusterRef": "prod", "confirmUUID": machine(9).spec["identity"]["uuid"], "notAfter": "2026-10-01T00:00:00Z",
        }),
        Record(BACKUP, "b", {"clusterRef": "prod", "destination": {"file": {"path": "/backups"}}}),
    ]
    for record in records:
        store.create(record)
    assert [[record.name for record in store.list(kind).records] for kind in KINDS] == [["prod"], ["m1", "m2"], ["p"], ["r"], ["b"]]
    tree = {name for name in snapshot(store.layout.tree) if name.endswith(".yaml")}
    assert tree == {"clusters/prod.yaml", "machines/m1.yaml", "machines/m2.yaml", "patches/p.yaml", "reclaims/r.yaml", "backups/b.yaml"}


def test_a_name_that_is_taken_or_none(store):
    store.create(cluster())
    assert reason(store.create, cluster()) == "RecordExists"
    assert reason(store.create, cluster("../up")) == "RecordInvalid"
    assert reason(store.get, MACHINE, "../clusters/prod") == "InvalidInput"
    assert reason(store.get, "Pod", "x") == "InvalidInput"
    assert reason(store.create, cluster("x" + ".x" * 126)) == "InvalidInput"  # 253 characters and an ending: no file's name


def test_an_invalid_record_is_not_written(store):
    before = snapshot(store.layout.tree)
    with pytest.raises(TalosError, match="spec.role is 'boss'; .*spec.rolle is not known") as caught:
        store.create(machine(1, rolle="worker", role="boss"))
    assert caught.value.reason == "RecordInvalid"
    assert snapshot(store.layout.tree) == before


def test_an_update_over_an_outdated_read_is_refused(store):
    read = store.create(machine(1))
    store.update(read, {**read.spec, "endpoint": "192.0.2.20"})
    assert reason(store.update, read, {**read.spec, "endpoint": "192.0.2.30"}) == "RecordChanged"
    assert reason(store.delete, read) == "RecordChanged"
    assert store.get(MACHINE, "m1").spec["endpoint"] == "192.0.2.20"


def test_an_update_keeps_what_the_person_wrote(store):
    store.create(machine(1))
    path = store.layout.tree / "machines" / "m1.yaml"
    text = "\ufeff# the one in the corner\r\napiVersion: 'ichor.maesh.dev/v1alpha1'\r\nkind: TalosMachine\r\nmetadata: {name: m1}  # me\r\nspec:\r\n" \
           "  endpoint: 192.0.2.1   # DHCP\r\n  identity:\r\n    uuid: 4C4C4544-0042-3010-8047-000000000001\r\n  clusterRef: prod\r\n"
    path.write_bytes(text.encode())
    path.chmod(0o640)
    read = store.get(MACHINE, "m1")
    store.update(read, {**read.spec, "endpoint": "192.0.2.2"}, annotations={"ichor.maesh.dev/hold-apply": "true"})
    expected = text.replace("192.0.2.1 ", "192.0.2.2 ").replace("{name: m1}", '{name: m1, annotations: {ichor.maesh.dev/hold-apply: "true"}}')
    assert path.read_bytes().decode() == expected
    assert path.stat().st_mode & 0o7777 == 0o640


def test_an_update_that_changes_nothing_writes_nothing(store):
    read = store.create(machine(1, {"stage": "maintenance"}, {"a": "b"}))
    before = snapshot(store.layout.tree)
    assert store.update(read, dict(read.spec), labels={"a": "b"}, annotations={}) == read
    assert snapshot(store.layout.tree) == before


def test_labels_and_annotations_come_and_go(store):
    read = store.create(machine(1, labels={"a": "b"}))
    read = store.update(read, read.spec, labels={}, annotations={"x": "y"})
    assert (read.labels, read.annotations) == ({}, {"x": "y"})
    read = store.update(read, read.spec)
    assert (read.labels, read.annotations) == ({}, {"x": "y"})
    assert "labels" not in (store.layout.tree / "machines" / "m1.yaml").read_text()


def test_a_change_that_would_touch_other_bytes_is_refused(store):
    path = store.layout.tree / "machines" / "m1.yaml"
    store.create(machine(1))
    text = path.read_text().replace("clusterRef: prod", "clusterRef: &c prod") + "  hostname: *c\n"
    path.write_text(text)
    read = store.get(MACHINE, "m1")
    with pytest.raises(TalosError, match="line 6: this change cannot be made") as caught:
        store.update(read, {**read.spec, "clusterRef": "lab"})
    assert caught.value.reason == "RecordInvalid"
    assert path.read_text() == text
    assert store.update(read, {**read.spec, "hostname": "a"}).spec["hostname"] == "a"


@pytest.mark.parametrize(("labels", "annotations", "tool"), [
    ({"argocd.argoproj.io/instance": "fleet"}, {}, "Argo CD"),
    ({}, {"argocd.argoproj.io/tracking-id": "fleet:x"}, "Argo CD"),
    ({"kustomize.toolkit.fluxcd.io/name": "fleet"}, {}, "Flux"),
    ({"helm.toolkit.fluxcd.io/name": "fleet"}, {}, "Flux"),
])
def test_what_a_gitops_tool_keeps_is_edited_only_when_overridden(store, labels, annotations, tool):
    read = store.create(machine(1, labels=labels, annotations=annotations))
    with pytest.raises(TalosError, match=f"kept in step with git by {tool}.*Change it in git") as caught:
        store.update(read, {**read.spec, "hostname": "a"})
    assert caught.value.reason == "RecordTracked"
    assert store.update(read, {**read.spec, "hostname": "a"}, override=True).spec["hostname"] == "a"


def test_immutable_fields(store):
    read = store.create(cluster(secretsRef={"name": "prod"}, cni={"preset": "none"}))
    read = store.update(read, {**read.spec, "secretsRef": {"name": "other"}, "cni": {"preset": "managed"}})
    store.create(machine(1))
    assert reason(store.update, read, {**read.spec, "secretsRef": {"name": "prod"}}) == "Immutable"
    assert reason(store.update, read, {**read.spec, "cni": {"preset": "none"}}) == "Immutable"
    approved = store.update(store.get(MACHINE, "m1"), {**machine(1).spec, **APPROVAL})
    assert reason(store.update, approved, {**approved.spec, "clusterRef": "lab"}) == "Immutable"


# Generation and versions.


def test_generation_grows_with_the_spec_and_with_nothing_else(store):
    read = store.create(machine(1, {"stage": "maintenance"}))
    path = store.layout.tree / "machines" / "m1.yaml"
    path.write_text("# a comment\n" + path.read_text())
    assert store.get(MACHINE, "m1").generation == 1
    read = store.update(store.get(MACHINE, "m1"), read.spec, labels={"a": "b"})
    assert read.generation == 1
    read = store.update(read, {**read.spec, "hostname": "a"})
    assert read.generation == 2
    path.write_text(path.read_text().replace("hostname: a", "hostname: b"))
    assert store.get(MACHINE, "m1").generation == 3
    assert store.patch_status(read.ref, read.uid, stage("booting")).generation == 3
    assert opened(store.layout.tree).get(MACHINE, "m1").generation == 3


def test_versions_change_with_what_they_stand_for(store):
    first = store.create(machine(1, {"stage": "maintenance"}))
    second = store.patch_status(first.ref, first.uid, stage("booting"))
    third = store.patch_status(first.ref, first.uid, stage("maintenance"))
    assert first.resource_version == second.resource_version == third.resource_version
    assert len({first.status_version, second.status_version, third.status_version}) == 3
    assert store.patch_status(first.ref, first.uid, stage("maintenance")) == third
    assert store.update(third, {**third.spec, "hostname": "a"}).resource_version != third.resource_version


# Status.


def test_a_status_is_written_only_over_the_versions_that_were_read(store):
    read = store.create(machine(1, {"stage": "maintenance"}))
    other = store.patch_status(read.ref, read.uid, stage("booting"))
    assert reason(store.patch_status, read.ref, read.uid, stage("x"), expect=read) == "RecordChanged"
    edited = store.update(other, {**other.spec, "hostname": "a"})
    assert reason(store.patch_status, read.ref, read.uid, stage("x"), expect=replace(edited, resource_version=other.resource_version)) == "RecordChanged"
    assert store.patch_status(read.ref, read.uid, stage("x"), expect=edited).status["stage"] == "x"
    assert reason(store.patch_status, read.ref, "another", stage("x")) == "RecordChanged"
    assert reason(store.patch_status, Ref(MACHINE, "m9"), "any", stage("x")) == "RecordNotFound"


def test_the_change_sees_the_status_as_it_is_and_cannot_reach_into_it(store):
    read = store.create(machine(1, {"conditions": [{"type": "Ready"}]}))
    seen = []

    def change(status):
        seen.append(json.loads(json.dumps(status)))
        status["conditions"][0]["type"] = "Other"
        return {**status, "stage": "booting"}

    store.patch_status(read.ref, read.uid, change)
    assert seen == [read.status]
    with pytest.raises(ZeroDivisionError):
        store.patch_status(read.ref, read.uid, lambda status: {"stage": 1 / 0})
    assert store.get(MACHINE, "m1").status["stage"] == "booting"


def test_a_status_of_other_hardware_is_set_aside_and_never_inherited(store):
    read = store.create(machine(1, {"stage": "running", "configStoredAt": "2026-09-21T14:13:20Z"}))
    path = store.layout.tree / "machines" / "m1.yaml"
    path.write_text(path.read_text().replace("SN-1", "SN-2"))
    found = store.get(MACHINE, "m1")
    assert (found.status, found.status_set_aside, found.generation) == ({}, True, 1)
    assert found.uid != read.uid
    written = store.patch_status(found.ref, found.uid, stage("maintenance"))
    assert (written.status, written.status_set_aside) == ({"stage": "maintenance", "recordUID": found.uid}, False)
    kept = list((store.layout.state / "set-aside").iterdir())
    assert [json.loads(entry.read_text())["status"]["stage"] for entry in kept] == ["running"]


def test_a_record_deleted_in_git_and_found_again_inherits_nothing(store):
    store.create(machine(1, {"stage": "running", "appliedConfigHash": "x"}, **APPROVAL))
    (store.layout.tree / "machines" / "m1.yaml").unlink()
    assert store.list(MACHINE).vanished == ("m1",)
    again = store.create(machine(1, {"stage": "maintenance"}))
    assert again.status == {"stage": "maintenance", "recordUID": again.uid}
    assert (store.list(MACHINE).vanished, again.generation) == ((), 1)
    assert store.create(machine(2)).status == {}
    (store.layout.tree / "machines" / "m2.yaml").unlink()
    assert store.list(MACHINE).vanished == ()  # it was not approved


def test_a_record_that_git_brings_back_has_its_status(store):
    read = store.create(machine(1, {"stage": "running"}, **APPROVAL))
    path = store.layout.tree / "machines" / "m1.yaml"
    text = path.read_text()
    path.unlink()
    path.write_text(text)
    assert store.get(MACHINE, "m1") == read


def test_writing_down_the_identity_of_a_weak_machine_keeps_its_status(store):
    store.create(machine(1, {"stage": "maintenance", "maintenanceFingerprint": "x"}, identity=None))
    path = store.layout.tree / "machines" / "m1.yaml"
    path.write_text(path.read_text() + "  identity: {serial: SN-1}\n")
    found = store.get(MACHINE, "m1")
    assert found.status == {"stage": "maintenance", "maintenanceFingerprint": "x", "recordUID": found.uid}
    corrected = store.update(found, {**found.spec, "identity": {"serial": "SN-2"}})
    assert corrected.status == {**found.status, "recordUID": corrected.uid}
    assert corrected.uid != found.uid


# Approval and lost status.


def test_approving_always_leaves_a_status(store):
    read = store.create(machine(1))
    approved = store.update(read, {**read.spec, **APPROVAL})
    assert approved.status == {"recordUID": read.uid}
    assert not status_missing(approved)
    assert store.create(machine(2, **APPROVAL)).status == {"recordUID": store.get(MACHINE, "m2").uid}


def test_a_lost_status_stays_missing_until_a_person_trusts(store):
    read = store.create(machine(1, {"stage": "running"}, **APPROVAL))
    (store.layout.state / "machines" / "m1.json").unlink()
    lost = store.get(MACHINE, "m1")
    assert status_missing(lost)
    assert reason(store.patch_status, lost.ref, lost.uid, stage("maintenance")) == "StatusMissing"
    assert status_missing(store.update(lost, {**lost.spec, "labels": {"a": "b"}}))
    trusted = store.patch_status(lost.ref, lost.uid, lambda status: {**status, "recordUID": lost.uid})
    assert trusted.status == {"recordUID": read.uid}
    assert not status_missing(trusted)


def test_what_was_sent_to_a_machine_without_status_is_taken_for_granted(store):
    store.create(machine(1, **APPROVAL))
    (store.layout.state / "machines" / "m1.json").unlink()
    lost = store.get(MACHINE, "m1")
    for change in ({"role": "controlplane"}, {"identity": {"serial": "x"}}, {"approvalState": "rejected"}):
        assert reason(store.update, lost, {**lost.spec, **change}) == "Immutable"


def test_a_hand_written_approval_is_status_missing_and_half_of_one_is_pending(store):
    store.create(machine(1))
    path = store.layout.tree / "machines" / "m1.yaml"
    path.write_text(path.read_text().replace("pending", "approved"))
    assert not status_missing(store.get(MACHINE, "m1"))
    path.write_text(path.read_text() + "  approvedBy: eve\n  approvedAt: 2026-09-21T14:13:20Z\n")
    assert status_missing(store.get(MACHINE, "m1"))


# Broken files.


@pytest.mark.parametrize(("text", "line", "message"), [
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1}\nspec:\n  clusterRef: prod\n  clusterRef: lab\n", 6, "is there twice"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1}\nspec:\n  clusterRef: prod\n  rol: x\n", 6, "spec.rol is not known"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1}\nspec:\n  clusterRef: 5\n", 5, "put it in quotes"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1}\nspec: {}\n", 4, "spec.clusterRef is missing"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m2}\nspec: {clusterRef: prod}\n", 3, "metadata.name has to be 'm1'"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosCluster\nmetadata: {name: m1}\nspec: {}\n", 2, "kind has to be TalosMachine"),
    ("apiVersion: v1\nkind: TalosMachine\nmetadata: {name: m1}\nspec: {}\n", 1, "apiVersion has to be"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1}\n", 1, "'spec' is missing"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1}\nspec: {clusterRef: prod}\nstatus: {}\n", 5, "'status' does not belong"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1, note: x}\nspec: {clusterRef: prod}\n", 3, "metadata.note is not known"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: {name: m1, annotations: {a: true}}\nspec: {clusterRef: "
     "prod}\n", 3, "put it in quotes"),
    ("apiVersion: ichor.maesh.dev/v1alpha1\nkind: TalosMachine\nmetadata: [m1]\nspec: {clusterRef: prod}\n", 1, "metadata and spec have to be mappings"),
    ("apiVersion: ichor.ma", 1, "'kind' is missing"),
    ("", 1, "the file is empty"),
    ("- a\n", 1, "no mapping"),
])
def test_a_broken_file_is_told_by_name_and_line_and_left_alone(store, text, line, message):
    read = store.create(machine(1))
    store.create(machine(2))
    path = store.layout.tree / "machines" / "m1.yaml"
    path.write_text(text)
    listing = store.list(MACHINE)
    assert [record.name for record in listing.records] == ["m2"]
    assert [(entry.name, entry.source, entry.line) for entry in listing.broken] == [("m1", str(path), line)]
    assert message in listing.broken[0].message
    for call in (lambda: store.get(MACHINE, "m1"), lambda: store.update(read, read.spec), lambda: store.delete(read),
                 lambda: store.patch_status(read.ref, read.uid, stage("x"))):
        with pytest.raises(TalosError, match=f"m1.yaml, line {line}: ") as caught:
            call()
        assert caught.value.reason == "RecordBroken"
    assert reason(store.create, machine(1)) == "RecordExists"
    assert path.read_text() == text


def test_a_broken_status_is_told_and_left_alone(store):
    read = store.create(machine(1, {"stage": "maintenance"}))
    path = store.layout.state / "machines" / "m1.json"
    for text, line in (('{"uid": "x",\n "gener', 2), ("[]", 1), ("{}", 1), ("\udcff", 1)):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        broken = store.list(MACHINE).broken
        assert [(entry.source, entry.line) for entry in broken] == [(str(path), line)]
        assert reason(store.get, MACHINE, "m1") == "RecordBroken"
        assert reason(store.patch_status, read.ref, read.uid, stage("x")) == "RecordBroken"
        assert path.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_files_that_are_no_records(store):
    store.create(machine(1))
    folder = store.layout.tree / "machines"
    for name in (".hidden.yaml", "m1.yaml~", "README.md", ".m1.yaml.swp"):
        (folder / name).write_text("x")
    (folder / "m3.yml").write_text("x")
    (folder / "Upper.yaml").write_text("x")
    listing = store.list(MACHINE)
    assert [record.name for record in listing.records] == ["m1"]
    assert [(entry.name, entry.message) for entry in listing.broken] == [
        ("Upper", "'Upper' cannot name a record."), ("m3", "the file has to be called m3.yaml")]


def test_a_reader_between_the_two_files_of_a_writer_looks_again(store, monkeypatch):
    read = store.create(machine(1, {"stage": "maintenance"}))
    reader = opened(store.layout.tree)
    real = reader._read_state
    acts = [lambda: store.update(read, {**read.spec, "identity": {"serial": "other"}}), lambda: store.delete(store.get(MACHINE, "m1"))]

    def read_state(kind, name):
        if acts:
            acts.pop(0)()
        return real(kind, name)

    monkeypatch.setattr(reader, "_read_state", read_state)
    acts.insert(1, lambda: None)
    found = reader.get(MACHINE, "m1")
    assert (found.spec["identity"], found.status["stage"], found.status_set_aside) == ({"serial": "other"}, "maintenance", False)
    assert reader.get(MACHINE, "m1") is None
    assert acts == []


# Events, deletion, moving.


def test_events_are_appended_and_never_rewritten(store):
    ref = Ref(MACHINE, "m1")
    store.record_event(Event(ref, "Normal", "ConfigApplied", "sent\nover \u2028 lines"))
    first = store.layout.events.read_bytes()
    store.record_event(Event(Ref(CLUSTER, "prod"), "Warning", "AlreadyConfigured", "x", "2026-01-01T00:00:00Z"))
    assert store.layout.events.read_bytes().startswith(first)
    assert store.events(ref) == (Event(ref, "Normal", "ConfigApplied", "sent\nover \u2028 lines", "2026-09-21T14:13:20Z"),)
    assert [event.reason for event in store.events()] == ["ConfigApplied", "AlreadyConfigured"]
    assert all(json.loads(line) for line in store.layout.events.read_text().splitlines())
    assert NOW == 1_790_000_000.0


def test_a_torn_line_of_the_log_costs_that_line_only(store):
    ref = Ref(MACHINE, "m1")
    store.record_event(Event(ref, "Normal", "ConfigApplied", "one"))
    with store.layout.events.open("ab") as log:
        log.write(b'{"time": "2026')
    store.record_event(Event(ref, "Normal", "NodeJoined", "two"))
    assert [event.message for event in store.events()] == ["one", "two"]


def test_deleting_removes_record_and_status(store):
    read = store.create(machine(1, {"stage": "maintenance"}))
    store.delete(read)
    assert store.get(MACHINE, "m1") is None
    assert reason(store.delete, read) == "RecordNotFound"
    assert [name for name in snapshot(store.layout.tree) if "m1" in name] == []


def test_a_store_that_moved_away_is_only_read(store):
    read = store.create(machine(1, {"stage": "maintenance"}))
    store.layout.marker.write_text(json.dumps({"id": "x", "movedTo": "kubernetes ichor-system"}))
    assert reason(store.patch_status, read.ref, read.uid, stage("x")) == "StoreMoved"
    assert reason(store.create, machine(2)) == "StoreMoved"
    assert store.get(MACHINE, "m1") == read


def test_what_a_killed_writer_left_is_swept_by_the_next(store):
    left = store.layout.tree / "machines" / ".m1.yaml.ichor-tmp"
    left.parent.mkdir()
    left.write_text("half")
    opened(store.layout.tree).create(cluster())
    assert not left.exists()


def test_a_linked_file_is_written_where_it_is(store, tmp_path):
    read = store.create(machine(1))
    path = store.layout.tree / "machines" / "m1.yaml"
    path.rename(tmp_path / "elsewhere.yaml")
    path.symlink_to(tmp_path / "elsewhere.yaml")
    store.update(read, {**read.spec, "hostname": "a"})
    assert path.is_symlink()
    assert "hostname: a" in (tmp_path / "elsewhere.yaml").read_text()


# Uids.


def test_what_makes_a_record_itself():
    one = machine(1)
    identity = one.spec["identity"]
    same = {**one.spec, "identity": {"uuid": identity["uuid"].upper(), "serial": " SN-1 ", "macs": [identity["macs"][0].upper().replace(":", "-")]}}
    assert record_uid(MACHINE, "m1", one.spec) == record_uid(MACHINE, "other", same)
    for part in ("uuid", "serial", "macs"):
        assert record_uid(MACHINE, "m1", {**one.spec, "identity": {**identity, part: machine(2).spec["identity"][part]}}) != record_uid(MACHINE, "m1", one.spec)
    assert record_uid(MACHINE, "a", {"clusterRef": "x"}) != record_uid(MACHINE, "b", {"clusterRef": "x"})
    assert record_uid(CLUSTER, "prod", {"endpoint": "a"}) == record_uid(CLUSTER, "prod", {"endpoint": "b"})
    assert record_uid(RECLAIM, "r", {"address": "a"}) != record_uid(RECLAIM, "r", {"address": "b"})
    assert record_uid(CONFIG_PATCH, "p", {"clusterRef": "a", "priority": 1}) == record_uid(CONFIG_PATCH, "p", {"clusterRef": "a"})
    assert record_uid(BACKUP, "p", {"clusterRef": "a"}) != record_uid(BACKUP, "p", {"clusterRef": "b"})
    assert record_uid(BACKUP, "p", {"clusterRef": "a"}) != record_uid(CONFIG_PATCH, "p", {"clusterRef": "a"})


def test_a_thousand_machines_are_parsed_once(store, monkeypatch):
    folder = store.layout.tree / "machines"
    store.create(machine(1))
    text = (folder / "m1.yaml").read_text()
    for number in range(2, 1001):
        (folder / f"m{number}.yaml").write_text(text.replace("name: m1", f"name: m{number}").replace("SN-1", f"SN-{number}"))
    listing = store.list(MACHINE)
    assert (len(listing.records), listing.broken) == (1000, ())
    monkeypatch.setattr("ansible_collections.ichor.talos.plugins.module_utils._store.record_file.parse", None)
    assert store.list(MACHINE) == listing
