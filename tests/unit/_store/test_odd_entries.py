# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What does not belong into a store costs the one record whose name it has: no hang, no crash, no refusal of all others."""

from __future__ import annotations

import os

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE, Event, Ref
from ansible_collections.ichor.talos.plugins.module_utils._store import files
from tests.unit._store.store_world import machine, made


@pytest.fixture
def store(tmp_path):
    return made(tmp_path / "ichor")


def folder(path):
    path.mkdir()


def loop(path):
    path.symlink_to(path.name)


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def large(path):
    with path.open("wb") as stream:
        stream.truncate(40 << 20)


ODD = [folder, loop, pipe, device, large]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_entry_among_the_records_is_one_broken_record(store, odd):
    store.create(machine(1))
    path = store.layout.tree / "machines" / "m2.yaml"
    odd(path)
    listing = store.list(MACHINE)
    assert [record.name for record in listing.records] == ["m1"]
    assert [(entry.name, entry.source) for entry in listing.broken] == [("m2", str(path))]
    assert listing.broken[0].message.startswith("it ")
    with pytest.raises(TalosError) as caught:
        store.get(MACHINE, "m2")
    assert caught.value.reason == "RecordBroken"


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_entry_among_the_statuses_is_one_broken_record(store, odd):
    store.create(machine(1))
    path = store.layout.state / "machines" / "m2.json"
    store.create(machine(2))
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    odd(path)
    listing = store.list(MACHINE)
    assert [record.name for record in listing.records] == ["m1"]
    assert [(entry.name, entry.source) for entry in listing.broken] == [("m2", str(path))]
    with pytest.raises(TalosError) as caught:
        store.patch_status(Ref(MACHINE, "m2"), "x", dict)
    assert caught.value.reason == "RecordBroken"


def test_a_file_that_may_not_be_read_is_one_broken_record(store, monkeypatch):
    store.create(machine(1))
    store.create(machine(2))
    read = files.read_plain

    def refusing(path, largest):
        if path.name == "m2.yaml":
            raise PermissionError(13, "Permission denied")
        return read(path, largest)

    monkeypatch.setattr(files, "read_plain", refusing)
    listing = store.list(MACHINE)
    assert [record.name for record in listing.records] == ["m1"]
    assert [(entry.name, entry.message) for entry in listing.broken] == [("m2", "it cannot be read: Permission denied")]


def test_a_status_whose_name_is_none_costs_nothing(store):
    store.create(machine(1, {"stage": "maintenance"}))
    (store.layout.state / "machines" / "Not a name.json").write_text("{}")
    assert [record.name for record in store.list(MACHINE).records] == ["m1"]


ODD_JSON = [
    b"[" * 100_000, b'{"a":' * 50_000, b'{"uid": "x", "generation": 1, "revision": ' + b"9" * 5000 + b', "status": {}}',
    b'{"uid": "x", "generation": 1, "revision": ' + b"9" * 400 + b', "status": {}}',
    b'{"uid": "x", "generation": 1, "revision": 1, "status": ' + b'{"a":' * 300 + b"1" + b"}" * 301,
    b'{"uid": "x", "generation": 1, "revision": 1, "status": {"a": NaN}}', b'{"uid": "x", "generation": 1, "revision": 1, "status": {"a": 1e999}}',
]


@pytest.mark.parametrize("content", ODD_JSON, ids=range(len(ODD_JSON)))
def test_a_status_that_would_break_the_reader_is_one_broken_record(store, content):
    store.create(machine(1))
    store.create(machine(2, {"stage": "maintenance"}))
    (store.layout.state / "machines" / "m2.json").write_bytes(content)
    listing = store.list(MACHINE)
    assert [record.name for record in listing.records] == ["m1"]
    assert [entry.name for entry in listing.broken] == ["m2"]
    assert "not valid JSON" in listing.broken[0].message


@pytest.mark.parametrize("content", ODD_JSON, ids=range(len(ODD_JSON)))
def test_a_line_of_the_log_and_a_lease_that_would_break_the_reader(store, content):
    event = Event(Ref(MACHINE, "m1"), "Normal", "Approved", "It was approved.", "2026-11-30T00:00:00Z")
    files.make_folder(store.layout.state)
    files.append_line(store.layout.events, content)
    store.record_event(event)
    assert [entry for entry in store.events() if entry.ref.name] == [event]
    lease = store.layout.lease("prod")
    files.make_folder(lease.parent)
    lease.write_bytes(content)
    with pytest.raises(TalosError) as caught:
        store.leases.read("prod")
    assert caught.value.reason == "RecordBroken"
    store.layout.marker.write_bytes(content)
    assert store.leases.no_lock()


@pytest.mark.parametrize("odd", [folder, pipe, device])
def test_a_bundle_that_is_no_file(store, odd):
    path = store.layout.secret("prod")
    path.parent.mkdir()
    odd(path)
    for call in (store.bundle, store.bundle_form):
        with pytest.raises(TalosError) as caught:
            call("prod")
        assert caught.value.reason == "SecretsUnavailable"


def test_what_is_no_file_is_never_replaced_by_one(tmp_path):
    """A rename over a device would take it from everybody on the machine."""
    pipe(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(TalosError, match="nothing is put in its place"):
            files.write_atomically(tmp_path / name, b"data")
    assert (tmp_path / "pipe").is_fifo() and sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "pipe"]
