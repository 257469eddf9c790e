# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to a store in Kubernetes between two requests of one run, on a real API server: answers are lost, objects vanish, the namespace goes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import Api, ApiRefused, ApiSilent
from ansible_collections.ichor.talos.plugins.module_utils._kube.paging import pages
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CONFIG_PATCH, MACHINE, Event, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.objects import path_of
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.refusals import store_error
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.store import KubernetesStore

from tests.parts.apiserver import ApiServer
from tests.unit._store.store_world import StillClock, machine, reason, stage

GONE: Any = {"apiVersion": "v1", "kind": "DeleteOptions"}
TOLD = Event(Ref(MACHINE, "m1"), "Warning", "NodeReinstalled", "Ichor re-installed this node")


@pytest.fixture
def namespace() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def api(apiserver: ApiServer) -> Iterator[Api]:
    found = open_api(Access(kubeconfig=str(apiserver.kubeconfig)))
    yield found
    found.close()


@pytest.fixture
def store(apiserver: ApiServer, namespace: str) -> Iterator[KubernetesStore]:
    found = open_store(Access(kubeconfig=str(apiserver.kubeconfig)), namespace, clock=StillClock(), create=True)
    yield found
    found.close()


def before(api: Api, method: str, act: Callable[[], object]) -> None:
    """Right before the next request of that method something happens."""
    plain = api.request

    def request(verb: str, path: str, body: Any = None, **options: Any) -> Any:
        if verb == method:
            api.request = plain  # type: ignore[method-assign]
            act()
        return plain(verb, path, body, **options)

    api.request = request  # type: ignore[method-assign]


def lost(api: Api, method: str) -> None:
    """The answer of the next request of that method is lost."""
    plain = api.request

    def request(verb: str, path: str, body: Any = None, **options: Any) -> Any:
        found = plain(verb, path, body, **options)
        if verb == method:
            api.request = plain  # type: ignore[method-assign]
            raise ApiSilent("the connection was lost", True)
        return found

    api.request = request  # type: ignore[method-assign]


def test_a_lock_whose_answers_are_lost_is_held_and_given_back(store: KubernetesStore) -> None:
    api, leases = store._api, store.leases
    lost(api, "POST")
    lease = leases.acquire("prod", "ada", "a reboot", 60.0)
    assert lease.holder == "ada"
    lost(api, "PUT")
    leases._clock.move(20)  # type: ignore[attr-defined]
    renewed = leases.renew(lease)
    assert renewed.version != lease.version
    lost(api, "PUT")
    leases.release(renewed)
    found = leases.read("prod")
    assert found is not None and found.holder == ""
    lost(api, "PUT")
    assert leases.acquire("prod", "bob", "another", 60.0).holder == "bob"


def test_a_lock_is_given_back_after_a_renewal_that_nobody_heard_of(store: KubernetesStore) -> None:
    """Neither the answer came nor could it be looked at: the lease in hand is the one before."""
    lease = store.leases.acquire("prod", "ada", "a reboot", 60.0)
    api = store._api
    lost(api, "PUT")
    get = api.get

    def silent(path: str, query: Any = None) -> Any:
        asked.append(path)
        if len(asked) > 1:
            raise ApiSilent("gone", True)
        return get(path, query)

    asked: list[str] = []
    api.get = silent  # type: ignore[method-assign]
    assert reason(store.leases.renew, lease) == "StoreUnreachable"
    api.get = get  # type: ignore[method-assign]
    store.leases.release(lease)
    found = store.leases.read("prod")
    assert found is not None and found.holder == ""


def test_a_lock_that_another_one_took_meanwhile_is_left(store: KubernetesStore) -> None:
    clock = StillClock()
    lease = store.leases.acquire("prod", "ada", "a reboot", 60.0)
    store.leases.release(lease)
    clock.move(5)
    store.leases._clock = clock  # type: ignore[attr-defined]
    store.leases.acquire("prod", "bob", "another", 60.0)
    store.leases.release(lease)
    found = store.leases.read("prod")
    assert found is not None and found.holder == "bob"


def test_a_record_that_vanishes_meanwhile_was_changed_and_is_no_missing_store(store: KubernetesStore, api: Api, namespace: str) -> None:
    for number, write in enumerate((lambda made: store.update(made, {**made.spec, "hostname": "a"}),
                                    lambda made: store.patch_status(made.ref, made.uid, stage("maintenance")))):
        made = store.create(machine(number))
        before(store._api, "PATCH", lambda made=made: api.request("DELETE", path_of(namespace, MACHINE, made.name), GONE))  # type: ignore[misc]
        with pytest.raises(TalosError, match="It was deleted while this run was to change") as caught:
            write(made)
        assert caught.value.reason == "RecordChanged"
    patch = store.create(Record(CONFIG_PATCH, "p", {"clusterRef": "prod", "layer": "cluster", "priority": 1, "documents": [{"machine": {}}]}))
    before(store._api, "DELETE", lambda: api.request("DELETE", path_of(namespace, CONFIG_PATCH, "p"), GONE))
    assert reason(store.delete, patch) == "RecordChanged"


def test_an_event_that_is_forgotten_between_two_requests_is_told_anew(store: KubernetesStore, api: Api, namespace: str) -> None:
    events = f"/api/v1/namespaces/{namespace}/events"

    def forget() -> None:
        for item in api.request("GET", events)["items"]:  # type: ignore[union-attr]
            api.request("DELETE", f"{events}/{item['metadata']['name']}", GONE)  # type: ignore[index, call-overload]

    store.record_event(TOLD)
    before(store._api, "PATCH", forget)
    store.record_event(TOLD)
    assert [event.message for event in store.events()] == [TOLD.message]


def test_a_namespace_that_is_deleted_is_told_as_that(store: KubernetesStore, api: Api, namespace: str) -> None:
    made = store.create(machine(1))
    api.request("DELETE", f"/api/v1/namespaces/{namespace}", GONE)
    for write in (lambda: store.create(machine(2)), lambda: store.record_event(TOLD), lambda: store.leases.acquire("prod", "ada", "x", 60.0),
                  lambda: store.write_bundle("prod", b"x")):
        with pytest.raises(TalosError, match="deletes the store's namespace") as caught:
            write()
        assert caught.value.reason == "StoreMissing" and "Wait until" in caught.value.hint
    assert store.patch_status(made.ref, made.uid, stage("maintenance")).status["stage"] == "maintenance"


def test_a_namespace_that_is_not_there_is_a_missing_store(apiserver: ApiServer, store: KubernetesStore) -> None:
    other = open_store(Access(kubeconfig=str(apiserver.kubeconfig)), f"{store.namespace}-x", clock=StillClock())
    assert {reason(other.create, machine(1)), reason(other.record_event, TOLD), reason(other.leases.acquire, "prod", "ada", "x", 60.0)} == {"StoreMissing"}
    other.close()


def test_definitions_of_another_version_and_an_object_too_large_are_told_as_that(store: KubernetesStore, api: Api, namespace: str) -> None:
    made = store.create(machine(1))
    path = path_of(namespace, MACHINE, made.name)
    for part, body in (("", {"spec": {"newer": 1}}), ("/status", {"status": {"newer": 1}})):
        with pytest.raises(ApiRefused) as caught:
            api.request("PATCH", f"{path}{part}", body, query={"fieldValidation": "Strict"}, content_type="application/merge-patch+json")
        error = store_error(caught.value, "change it", api.host)
        assert error.reason == "RecordInvalid" and "of another version of this collection" in error.message and "runner_install" in error.hint
    for size in (2 << 20, 4 << 20):
        with pytest.raises(TalosError) as large:
            store.write_bundle(f"b{size}", b"x" * size)
        assert large.value.reason == "RecordInvalid" and len(large.value.message) < 1000


def test_an_answer_that_is_no_list_is_no_empty_one(store: KubernetesStore, api: Api) -> None:
    with pytest.raises(ApiSilent, match="its answer is no list"):
        list(pages(api, "/version"))
    store._api.request = lambda *unused, **options: {}  # type: ignore[method-assign]
    assert reason(store.list, MACHINE) == "StoreUnreachable"
