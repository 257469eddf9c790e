# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Listings by list and watch, and what goes wrong on the way to a real API server (design section 4)."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH
from ansible_collections.ichor.talos.plugins.module_utils._model.records import MACHINE
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.objects import path_of
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store

from tests.parts.apiserver import running
from tests.parts.proxy import proxied
from tests.unit._store.store_world import StillClock, machine, reason, stage

LISTS, WATCHES = "talosmachines?limit=", "talosmachines?watch=1"


@pytest.fixture(scope="module")
def server():
    """One of its own, since it is restarted."""
    with running() as started:
        yield started


@pytest.fixture
def proxy(server):
    with proxied(server) as made:
        yield made


@pytest.fixture
def direct(server):
    """A store that goes past the proxy: somebody else."""
    opened = open_store(Access(kubeconfig=str(server.kubeconfig)), f"t-{uuid.uuid4().hex[:12]}", clock=StillClock(), create=True)
    yield opened
    opened.close()


@pytest.fixture
def store(proxy, direct):
    opened = open_store(Access(content=proxy.kubeconfig()), direct.namespace, clock=StillClock())
    yield opened
    opened.close()


def names(store):
    return [record.name for record in store.recent(MACHINE).records]


def until(holds, what):
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


def test_it_is_listed_once_and_watched_from_then_on(store, direct, proxy):
    direct.create(machine(1))
    assert names(store) == ["m1"]
    direct.create(machine(2))
    until(lambda: names(store) == ["m1", "m2"], "another's new record")
    made = direct.get(MACHINE, "m2")
    direct.patch_status(made.ref, made.uid, stage("running"))
    until(lambda: store.recent(MACHINE).records[1].status.get("stage") == "running", "another's status")
    direct.delete(direct.get(MACHINE, "m1"))
    until(lambda: names(store) == ["m2"], "a record that is gone")
    assert proxy.count(LISTS) == 1 and proxy.count(WATCHES) == 1
    assert store.recent(MACHINE) == direct.list(MACHINE)


def test_what_this_run_wrote_is_in_its_next_listing(store, proxy):
    assert names(store) == []
    for number in range(1, 11):
        made = store.create(machine(number))
        assert f"m{number}" in names(store)
        store.patch_status(made.ref, made.uid, stage("running"))
        assert {record.name: record for record in store.recent(MACHINE).records}[made.name].status["stage"] == "running"
    assert proxy.count(LISTS) == 1


def test_a_record_that_cannot_be_read_is_told_by_the_watch_too(store, direct, server):
    direct.create(machine(1))
    assert names(store) == ["m1"]
    api = open_api(Access(kubeconfig=str(server.kubeconfig)))
    body = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": MACHINE, "metadata": {"name": "m2"},
            "spec": {"clusterRef": "prod", "approvalState": "pending", "labels": {"no key of a label": "x"}}}
    api.request("POST", path_of(direct.namespace, MACHINE), body)
    assert [entry.name for entry in direct.list(MACHINE).broken] == ["m2"]
    until(lambda: [entry.name for entry in store.recent(MACHINE).broken] == ["m2"], "the broken record")
    api.close()


def test_a_watch_that_is_dropped_goes_on_where_it_was(store, direct, proxy):
    direct.create(machine(1))
    assert names(store) == ["m1"]
    until(lambda: proxy.watches, "the watch")
    for number in range(2, 5):
        proxy.drop_watches()
        direct.create(machine(number))
        until(lambda number=number: f"m{number}" in names(store), "the record after the drop")
    assert proxy.count(WATCHES) >= 4


def test_a_watch_that_is_too_old_begins_with_a_list(store, direct, proxy):
    assert names(store) == []
    until(lambda: proxy.watches, "the watch")
    proxy.once((410, "Expired", {}), "GET", part=WATCHES)
    proxy.drop_watches()
    until(lambda: proxy.count(WATCHES) >= 2, "the second watch")
    direct.create(machine(1))
    until(lambda: names(store) == ["m1"], "the record after the listing")
    assert proxy.count(LISTS) == 2


def test_without_a_watch_records_are_listed(store, direct, proxy):
    proxy.fault = lambda method, path: (503, "ServiceUnavailable", {}) if WATCHES in path else False
    for number in range(1, 4):
        direct.create(machine(number))
        assert f"m{number}" in names(store)


def test_a_login_that_fails_once_ends_no_watch_for_good(store, direct, proxy):
    assert names(store) == []
    until(lambda: proxy.watches, "the watch")
    authorize, failed = store._api._authorize, []

    def fails_for_the_watch():
        if threading.current_thread().name.startswith("watch") and not failed:
            failed.append(True)
            raise RuntimeError("the plugin gives no token")
        return authorize()

    store._api._authorize = fails_for_the_watch
    proxy.drop_watches()
    until(lambda: failed and proxy.count(WATCHES) >= 2, "the watch after the failed login")
    direct.create(machine(1))
    until(lambda: names(store) == ["m1"], "the record after that")


@pytest.mark.parametrize("fault", [(429, "TooManyRequests", {"Retry-After": "1"}), (500, "InternalError", {}), (503, "ServiceUnavailable", {}), None])
def test_a_read_that_fails_is_tried_again(store, direct, proxy, fault):
    direct.create(machine(1))
    for read in (lambda: store.get(MACHINE, "m1"), lambda: store.list(MACHINE).records[0]):
        proxy.once(fault, "GET", part="talosmachines")
        assert read() == direct.get(MACHINE, "m1")


def test_too_many_requests_are_waited_for_and_then_the_write_is_made(store, direct, proxy):
    waited = []
    store._api.pause = waited.append
    made = store.create(machine(1))
    proxy.once((429, "TooManyRequests", {"Retry-After": "3"}), "PATCH")
    assert store.patch_status(made.ref, made.uid, stage("running")).status["stage"] == "running"
    assert waited == [3.0]


def test_a_conflict_is_decided_anew(store, direct, proxy):
    made = store.create(machine(1))
    proxy.once((409, "Conflict", {}), "PATCH")
    decided = []
    store.patch_status(made.ref, made.uid, lambda status: decided.append(1) or {**status, "stage": "running"})
    assert len(decided) == 2 and direct.get(MACHINE, "m1").status["stage"] == "running"


@pytest.mark.parametrize("fault", [(500, "InternalError", {}), (503, "ServiceUnavailable", {})])
def test_a_write_that_the_server_could_not_do_is_told_and_not_repeated(store, proxy, fault):
    made = store.create(machine(1))
    proxy.once(fault, "PATCH")
    assert reason(store.patch_status, made.ref, made.uid, stage("running")) == "StoreUnreachable"
    assert proxy.count("talosmachines", "PATCH") == 1


def test_a_write_whose_answer_never_came_is_looked_at_first(store, direct, proxy):
    made = store.create(machine(1))
    proxy.once(None, "PATCH")
    assert store.patch_status(made.ref, made.uid, stage("running")).status["stage"] == "running"
    assert [method for method, path in proxy.seen if "talosmachines/m1" in path][-4:] == ["GET", "PATCH", "GET", "PATCH"]


def test_pages_that_grew_too_old_are_begun_anew(store, direct, proxy, monkeypatch):
    monkeypatch.setattr("ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.store.PAGE", 2)
    for number in range(1, 6):
        direct.create(machine(number))
    proxy.once((410, "Expired", {}), "GET", part="continue=")
    assert [record.name for record in store.list(MACHINE).records] == [f"m{number}" for number in range(1, 6)]


def test_the_api_server_is_restarted_in_the_middle(store, direct, server):
    made = store.create(machine(1))
    assert names(store) == ["m1"]
    lease = store.leases.acquire("prod", "ada", "x", 60.0)
    server.stop()
    server.start()
    assert names(store) == ["m1"] and store.leases.renew(lease).holder == "ada"
    api = open_api(Access(kubeconfig=str(server.kubeconfig)))
    api.request("PATCH", path_of(direct.namespace, MACHINE, "m1"), {"metadata": {"labels": {"a": "1"}}}, content_type=MERGE_PATCH)
    until(lambda: dict(store.recent(MACHINE).records[0].labels) == {"a": "1"}, "the change after the restart")
    assert store.patch_status(made.ref, made.uid, stage("running")).status["stage"] == "running"
    api.close()
