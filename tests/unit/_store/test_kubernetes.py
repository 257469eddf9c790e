# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Kubernetes store as the port promises it, on a real API server (design section 4)."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH, ApiRefused, ApiSilent
from ansible_collections.ichor.talos.plugins.module_utils._model.custom_resources import definitions
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.ports import Store
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, RECLAIM, Event, Record, Ref
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import validate
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_rules import RULES
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.objects import merge_patch, object_of, path_of, record_of
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store

from tests.unit._store.store_world import APPROVAL, StillClock, cluster, machine, reason, stage


@pytest.fixture(scope="session")
def access(apiserver):
    return Access(kubeconfig=str(apiserver.kubeconfig))


@pytest.fixture
def namespace():
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def store(access, namespace, clock):
    opened = open_store(access, namespace, clock=clock, create=True)
    yield opened
    opened.close()


@pytest.fixture
def api(access):
    opened = open_api(access)
    yield opened
    opened.close()


def asked(number=1, **spec):
    """A machine whose spec has these fields too; None takes one away."""
    record = machine(number)
    return replace(record, spec={name: value for name, value in {**record.spec, **spec}.items() if value is not None})


class Between:
    """An API that lets something else happen once, right before a write reaches the server."""

    def __init__(self, inner, act, lose=False):
        self.inner, self.act, self.lose = inner, act, lose
        self.host, self.requests = inner.host, []

    def get(self, path, query=None):
        return self.inner.get(path, query)

    def close(self):
        self.inner.close()

    def request(self, method, path, body=None, **options):
        self.requests.append(method)
        act, self.act = (self.act, None) if method in ("PATCH", "POST", "PUT") else (None, self.act)
        if act is not None:
            act()
            if self.lose:
                self.inner.request(method, path, body, **options)
                raise ApiSilent("the connection was lost", True)
        return self.inner.request(method, path, body, **options)


def test_it_is_the_port(store, namespace):
    port: Store = store
    assert port.description.startswith(f"namespace {namespace} of https://127.0.0.1:")


def test_a_record_comes_back_as_it_was_written(store, namespace):
    made = store.create(machine(1, labels={"rack": "a"}, annotations={"note": "x"}))
    assert made == store.get(MACHINE, "m1") == store.list(MACHINE).records[0]
    assert (made.spec, made.status) == (machine(1).spec, {}) and made.source == f"{namespace}/m1"
    assert (made.labels, made.annotations) == ({"rack": "a"}, {"note": "x"})
    assert store.get(MACHINE, "m2") is None and store.list(CLUSTER).records == ()
    assert reason(store.create, machine(1)) == "RecordExists"


def test_specs_and_statuses_have_versions_of_their_own(store):
    made = store.create(machine(1))
    told = store.patch_status(made.ref, made.uid, stage("maintenance"))
    assert told.resource_version == made.resource_version and told.status_version != made.status_version
    assert told.status == {"stage": "maintenance", "recordUID": made.uid}
    changed = store.update(made, {**made.spec, "hostname": "cp-1"})
    assert changed.status == told.status and changed.status_version == told.status_version
    assert (changed.generation, changed.spec["hostname"]) == (2, "cp-1")
    assert reason(store.update, made, {**made.spec, "hostname": "cp-2"}) == "RecordChanged"
    assert store.update(changed, changed.spec).generation == 2


def test_a_write_claims_only_the_fields_that_it_changes(store, api, namespace):
    made = store.create(machine(1))
    path = path_of(namespace, MACHINE, "m1")
    api.request("PATCH", path, {"spec": {"labels": {"rack": "b"}}}, query={"fieldManager": "kubectl"}, content_type=MERGE_PATCH)
    now = store.get(MACHINE, "m1")
    store.update(now, {**now.spec, "hostname": "cp-1"})
    managers = {entry["manager"]: entry["fieldsV1"] for entry in api.get(path)["metadata"]["managedFields"] if not entry.get("subresource")}
    assert "f:rack" in managers["kubectl"]["f:spec"]["f:labels"]
    assert "f:labels" not in managers["ichor.talos"]["f:spec"] and "f:hostname" in managers["ichor.talos"]["f:spec"]
    assert made.spec["endpoint"] == "192.0.2.1"


def test_a_field_that_is_left_out_goes(store):
    made = store.create(machine(1, hostname="cp-1", install={"disk": "/dev/sda"}))
    changed = store.update(made, {key: value for key, value in made.spec.items() if key != "install"}, labels={"a": "1"})
    assert "install" not in changed.spec and changed.labels == {"a": "1"}
    assert "install" not in store.get(MACHINE, "m1").spec


def test_a_status_is_decided_anew_when_something_came_between(store, access, namespace, clock):
    made = store.create(machine(1))
    other = open_store(access, namespace, clock=clock)
    store._api = Between(store._api, lambda: other.patch_status(made.ref, made.uid, lambda status: {**status, "nodeName": "n"}))
    seen = []
    after = store.patch_status(made.ref, made.uid, lambda status: seen.append(dict(status)) or {**status, "stage": "running"})
    assert after.status["nodeName"] == "n" and after.status["stage"] == "running"
    assert [entry.get("nodeName") for entry in seen] == [None, "n"]
    other.close()


def test_what_was_observed_is_what_is_written_over(store, access, namespace, clock):
    made = store.create(machine(1))
    other = open_store(access, namespace, clock=clock)
    store._api = Between(store._api, lambda: other.patch_status(made.ref, made.uid, stage("booting")))
    assert reason(store.patch_status, made.ref, made.uid, stage("running"), expect=made) == "RecordChanged"
    assert other.get(MACHINE, "m1").status["stage"] == "booting"
    other.close()


@pytest.mark.parametrize("write", ["spec", "status"])
def test_a_write_whose_answer_was_lost_is_looked_at_and_counts(store, write):
    made = store.create(machine(1))
    store._api = Between(store._api, lambda: None, lose=True)
    if write == "spec":
        assert store.update(made, {**made.spec, "hostname": "cp-1"}).spec["hostname"] == "cp-1"
    else:
        assert store.patch_status(made.ref, made.uid, stage("running")).status["stage"] == "running"
    assert store._api.requests.count("PATCH") == 1


def test_a_status_that_is_equal_is_not_written(store):
    made = store.create(machine(1, {"stage": "running"}))
    store._api = Between(store._api, None)
    assert store.patch_status(made.ref, made.uid, stage("running")) == made
    assert "PATCH" not in store._api.requests


def test_a_record_made_anew_inherits_nothing(store):
    made = store.create(machine(1, {"stage": "running"}))
    store.delete(made)
    again = store.create(machine(1))
    assert again.uid != made.uid and again.status == {}
    assert reason(store.patch_status, made.ref, made.uid, stage("booting")) == "RecordChanged"
    assert reason(store.delete, made) == "RecordChanged"


def test_a_status_of_another_record_is_set_aside(store, api, namespace):
    made = store.create(machine(1, **APPROVAL))
    assert made.status == {"recordUID": made.uid}
    api.request("PATCH", path_of(namespace, MACHINE, "m1", "status"), {"status": {"recordUID": "another", "stage": "running"}}, content_type=MERGE_PATCH)
    now = store.get(MACHINE, "m1")
    assert now.status == {} and now.status_set_aside
    assert reason(store.patch_status, now.ref, now.uid, stage("booting")) == "StatusMissing"
    trusted = store.patch_status(now.ref, now.uid, lambda status: {"recordUID": now.uid, "stage": "booting"})
    assert trusted.status == {"recordUID": now.uid, "stage": "booting"} and not trusted.status_set_aside


def test_approving_always_leaves_a_status(store):
    made = store.create(machine(1))
    approved = store.update(made, {**made.spec, **APPROVAL})
    assert approved.status == {"recordUID": made.uid}


def test_gitops_tools_are_left_alone(store):
    made = store.create(machine(1, labels={"argocd.argoproj.io/instance": "fleet"}))
    assert reason(store.update, made, {**made.spec, "hostname": "a"}) == "RecordTracked"
    assert store.update(made, {**made.spec, "hostname": "a"}, override=True).spec["hostname"] == "a"


def test_what_is_overridden_in_a_record_of_a_gitops_tool_is_ours_and_the_rest_stays_its(store, api, namespace):
    """It applies on the server's side, and so sees by our field manager what is no longer as in git, instead of writing over it."""
    path, applied = path_of(namespace, MACHINE, "m1"), object_of(machine(1, labels={"kustomize.toolkit.fluxcd.io/name": "fleet"}, hostname="a"), namespace)
    apply = {"query": {"fieldManager": "kustomize-controller"}, "content_type": "application/apply-patch+yaml"}
    api.request("PATCH", path, applied, **apply)
    now = store.get(MACHINE, "m1")
    assert reason(store.update, now, {**now.spec, "hostname": "b"}) == "RecordTracked"
    assert store.update(now, {**now.spec, "hostname": "b"}, override=True).spec["hostname"] == "b"
    managers = {entry["manager"]: entry["fieldsV1"] for entry in api.get(path)["metadata"]["managedFields"]}
    assert set(managers["ichor.talos"]["f:spec"]) == {"f:hostname"} and "f:hostname" not in managers["kustomize-controller"]["f:spec"]
    assert "f:endpoint" in managers["kustomize-controller"]["f:spec"]
    with pytest.raises(ApiRefused, match='conflict with "ichor.talos".*hostname') as caught:
        api.request("PATCH", path, applied, **apply)
    assert caught.value.status == 409
    # What it keeps to itself it goes on changing.
    applied["spec"] = {name: value for name, value in {**applied["spec"], "labels": {"rack": "c"}}.items() if name != "hostname"}
    api.request("PATCH", path, applied, **apply)
    assert (store.get(MACHINE, "m1").spec["hostname"], store.get(MACHINE, "m1").spec["labels"]) == ("b", {"rack": "c"})


def test_kubectl_shows_what_an_operator_asks(store, api, namespace):
    store.create(cluster())
    made = store.create(machine(1, hostname="w-1", **APPROVAL))
    ready = {"type": "Ready", "status": "False", "reason": "NodeUnreachable", "message": "It is silent.", "lastTransitionTime": "2026-09-21T14:13:20Z"}
    store.patch_status(made.ref, made.uid, lambda status: {**status, "stage": "running", "conditions": [ready]})
    shown = tables(api, path_of(namespace, MACHINE))
    assert {"prod", "worker", "approved", "running", "False", "NodeUnreachable"} <= set(map(str, shown[0].values())), shown
    assert tables(api, path_of(namespace, CLUSTER))[0]["Name"] == "prod"
    served = {entry["name"]: entry for entry in api.get("/apis/ichor.maesh.dev/v1alpha1")["resources"]}
    for name in ("talosclusters", "talosmachines", "talosconfigpatches", "machinereclaims", "talosetcdbackups"):
        assert served[name]["shortNames"] and served[name]["categories"]
    assert all(f"{name}/status" in served for name in ("talosclusters", "talosmachines", "machinereclaims", "talosetcdbackups"))


def tables(api, path):
    """What kubectl prints of a listing, a row by its columns."""
    headers = {**api._authorize(), "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = json.loads(api._pool.request("GET", f"{api.host}{path}", body=None, headers=headers, timeout=10, retries=False, preload_content=True).data)
    return [dict(zip((column["name"] for column in table["columnDefinitions"]), row["cells"])) for row in table["rows"]]


def test_many_records_come_in_pages(store, monkeypatch):
    monkeypatch.setattr("ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.store.PAGE", 3)
    for number in range(1, 9):
        store.create(machine(number))
    assert [record.name for record in store.list(MACHINE).records] == [f"m{number}" for number in range(1, 9)]


# Locks.


def test_a_lock_is_one_holder_s(store, clock):
    lease = store.leases.acquire("prod", "ada", "a reboot", 60.0)
    assert (lease.holder, lease.purpose, lease.acquired_at) == ("ada", "a reboot", clock.now())
    assert reason(store.leases.acquire, "prod", "bob", "a reboot", 60.0) == "LockHeld"
    clock.move(20)
    renewed = store.leases.renew(lease)
    assert (renewed.acquired_at, renewed.renewed_at) == (lease.acquired_at, clock.now())
    store.leases.release(renewed)
    assert store.leases.read("prod").holder == ""
    assert store.leases.acquire("prod", "bob", "x", 60.0).holder == "bob"


def test_a_lock_runs_out_by_the_readers_own_clock(store, access, namespace):
    lease = store.leases.acquire("prod", "ada", "x", 60.0)
    late = StillClock(now=1.0)
    other = open_store(access, namespace, clock=late)
    assert reason(other.leases.acquire, "prod", "bob", "y", 60.0) == "LockHeld"
    late.move(59)
    assert reason(other.leases.acquire, "prod", "bob", "y", 60.0) == "LockHeld"
    late.move(1)
    assert other.leases.acquire("prod", "bob", "y", 60.0).holder == "bob"
    assert reason(store.leases.renew, lease) == "LockHeld"
    store.leases.release(lease)
    assert other.leases.read("prod").holder == "bob"
    other.close()


def test_of_two_who_take_a_free_lock_at_once_one_gets_it(store, access, namespace, clock):
    other = open_store(access, namespace, clock=clock)
    store.leases._api = Between(store.leases._api, lambda: other.leases.acquire("prod", "bob", "y", 60.0))
    with pytest.raises(TalosError, match="held by bob") as caught:
        store.leases.acquire("prod", "ada", "x", 60.0)
    assert caught.value.reason == "LockHeld"
    other.close()


def test_a_lock_of_an_id_that_is_no_name(store):
    foreign = "PoBHwHBNzFJyMqN5WkXNuZ2fk_Yv1c6YxQ8jD0Vn2Ls="
    assert store.leases.acquire(foreign, "ada", "x", 60.0).name == foreign
    assert store.leases.read(foreign).holder == "ada" and store.leases.read("other") is None
    assert store.leases.no_lock() == ""


# Events and the bundle.


def test_the_same_event_again_is_counted_up(store, api, namespace, clock):
    event = Event(Ref(MACHINE, "m1"), "Warning", "NodeReinstalled", "Ichor re-installed this node")
    store.record_event(event)
    clock.move(60)
    store.record_event(event)
    store.record_event(replace(event, message="another"))
    store.record_event(replace(event, ref=Ref(MACHINE, "m2")))
    items = api.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    assert sorted(item["count"] for item in items) == [1, 1, 2]
    assert [found.message for found in store.events(Ref(MACHINE, "m1"))] == ["Ichor re-installed this node", "another"]
    assert len(store.events()) == 3


def test_the_bundle_is_a_secret(store):
    assert store.bundle_form("prod") == "absent" and reason(store.bundle, "prod") == "SecretsUnavailable"
    store.write_bundle("prod", b"cluster: {}\n")
    assert store.bundle("prod") == b"cluster: {}\n" and store.bundle_form("prod") == "clear"
    assert reason(store.write_bundle, "prod", b"x") == "RecordExists"
    store.write_bundle("prod", b"x", replace=True)
    assert store.bundle("prod") == b"x"


# Whoever is not let in, and what is not there.


def test_a_store_that_is_not_there_is_an_error(api, namespace, clock, access):
    class Bare:
        """An API server that knows none of the kinds."""

        host = "https://bare"

        def request(self, method, path, body=None, **options):
            assert method == "GET"
            raise ApiRefused(404, "NotFound", "the server could not find the requested resource")

    with pytest.raises(TalosError, match="does not know talosclusters, talosmachines") as caught:
        open_store(access, namespace, clock=clock, api=Bare())
    assert caught.value.reason == "StoreMissing"
    would_be = open_store(access, namespace, clock=clock, api=Bare(), create=True, check=True)
    assert would_be.list(MACHINE).records == () and would_be.get(CLUSTER, "prod") is None and would_be.bundle_form("prod") == "absent"


def test_a_token_that_nobody_has_is_told(apiserver, store, namespace, clock):
    with pytest.raises(TalosError) as caught:
        open_store(Access(content=apiserver.kubeconfig_for("nobody-s-token")), namespace, clock=clock)
    assert caught.value.reason == "CredentialsInvalid"


@pytest.mark.parametrize("text, told", [
    ("", "it is no kubeconfig"), ("a: [", "cannot be used"), ("kind: Config\n", "it has no context ''; it has none"),
    ("current-context: a\ncontexts: [{name: b, context: {}}]\n", "it has no context 'a'; it has b. Name a kubeconfig that can be read"),
])
def test_a_kubeconfig_that_is_none_is_told(tmp_path, text, told):
    path = tmp_path / "kubeconfig"
    path.write_text(text or "[]")
    with pytest.raises(TalosError, match=told) as caught:
        open_api(Access(kubeconfig=str(path)))
    assert caught.value.reason == "CredentialsInvalid"
    assert reason(open_api, Access(kubeconfig=str(tmp_path / "none"))) == "CredentialsInvalid"


# The API server itself refuses what we refuse.

BAD = {
    "unknown field": {"colour": "red"}, "role": {"role": "boss"}, "uuid": {"identity": {"uuid": "1234"}}, "mac": {"identity": {"macs": ["zz"]}},
    "mac twice": {"identity": {"macs": ["3c:ec:ef:00:00:01", "3c:ec:ef:00:00:01"]}}, "endpoint": {"endpoint": "192.0.2.300"},
    "endpoint port": {"endpoint": "host:port"}, "endpoint empty": {"endpoint": ""}, "host name": {"hostname": "Up Per"},
    "label value": {"labels": {"a": "b c"}}, "taint": {"taints": [{"key": "a", "effect": "Never"}]},
    "disk and selector": {"install": {"disk": "/dev/sda", "diskSelector": {"model": "x"}}},
    "interface and mac": {"network": {"primary": {"interface": "eth0", "mac": "3c:ec:ef:00:00:01"}}},
    "dhcp and static": {"network": {"primary": {"dhcp": True, "addresses": ["192.0.2.9/24"]}}},
    "address without prefix": {"network": {"primary": {"addresses": ["192.0.2.9"]}}}, "gateway alone": {"network": {"primary": {"gateway": "192.0.2.1"}}},
    "vlan": {"network": {"primary": {"vlan": 5000}}}, "wipe as text": {"install": {"wipe": "yes"}}, "approved by nobody": {"approvalState": "approved"},
    "approved without role": {key: value for key, value in APPROVAL.items() if key != "role"}, "no cluster": {"clusterRef": None},
}


@pytest.mark.parametrize("case", BAD)
def test_the_api_server_refuses_what_the_directory_store_refuses(store, api, namespace, case):
    bad = asked(**BAD[case])
    assert reason(store.create, bad) == "RecordInvalid"
    with pytest.raises(ApiRefused) as caught:
        api.request("POST", path_of(namespace, MACHINE), object_of(bad, namespace), query={"fieldValidation": "Strict"})
    assert caught.value.status in (400, 422), caught.value.message


BAD_CLUSTERS = {
    "talos version": {"talosVersion": "1.13"}, "endpoint": {"endpoint": "http://x"}, "endpoint path": {"endpoint": "https://192.0.2.5:6443/a"},
    "network": {"network": {"podSubnets": ["10.0.0.1/8"]}}, "range": {"discovery": {"ranges": ["192.0.2.1-x"]}},
    "count": {"controlPlane": {"count": 2}}, "values without managed": {"cni": {"preset": "none", "cilium": {"values": {}}}},
    "preset": {"cni": {"preset": "x"}},
    "san": {"certSANs": ["a b"]}, "hold": {"hold": "lunch"},
}


@pytest.mark.parametrize("case", BAD_CLUSTERS)
def test_bad_clusters_are_refused_by_the_api_server_too(store, api, namespace, case):
    bad = cluster("prod", **BAD_CLUSTERS[case])
    assert reason(store.create, bad) == "RecordInvalid"
    with pytest.raises(ApiRefused) as caught:
        api.request("POST", path_of(namespace, CLUSTER), object_of(bad, namespace), query={"fieldValidation": "Strict"})
    assert caught.value.status in (400, 422), caught.value.message


GOOD = {
    "endpoints": [{"endpoint": text} for text in ("192.0.2.1", "192.0.2.1:50001", "2001:db8::1", "[2001:db8::1]:50000", "node.example.org", "Node1:50000")],
    "macs": [{"identity": {"macs": [text]}} for text in ("3c:ec:ef:00:00:01", "3C-EC-EF-00-00-01", "3cec.ef00.0001", "3cecef000001")],
    "static": [{"network": {"primary": {"addresses": ["192.0.2.9/24", "2001:db8::9/64"], "gateway": "192.0.2.1", "nameservers": ["2001:db8::53"], "vlan": 7}}}],
    "approved": [{**APPROVAL, "taints": [{"key": "a.example/b", "value": "", "effect": "NoExecute"}], "labels": {"a.example/b": ""}}],
}


@pytest.mark.parametrize("case", GOOD)
def test_what_is_right_is_taken_by_both(store, case):
    for number, spec in enumerate(GOOD[case], 1):
        record = asked(number, **spec)
        assert validate(record) == ()
        made = store.create(record)
        assert {name: made.spec[name] for name in spec} == spec


def test_ranges_and_urls_that_are_right(store):
    spec = {"endpoint": "https://[2001:db8::5]:6443/", "certSANs": ["api.example.org", "192.0.2.5"],
            "discovery": {"ranges": ["192.0.2.0/24", "192.0.2.10-192.0.2.20", "192.0.2.10-20", "2001:db8::/120"], "addresses": ["node:50000"]}}
    assert store.create(cluster("prod", **spec)).spec == spec


def test_each_rule_has_an_expression_or_needs_another_record():
    told = [entry["message"] for definition in definitions() for entry in
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].get("x-kubernetes-validations", ())]
    silent = {rule.id for rule in RULES if not any(f"({rule.id})" in message for message in told)}
    assert silent == {"3/secrets-ref-immutable"}


@pytest.mark.parametrize("field, value", [("role", "controlplane"), ("identity", {"uuid": "4c4c4544-0042-3010-8047-0000000000ff"}),
                                          ("clusterRef", "other"), ("approvalState", "rejected")])
def test_the_api_server_holds_what_may_not_change(store, api, namespace, field, value):
    made = store.create(machine(1, {"configStoredAt": "2026-09-21T14:13:20Z"}, **APPROVAL))
    assert reason(store.update, made, {**made.spec, field: value}) == "Immutable"
    with pytest.raises(ApiRefused) as caught:
        api.request("PATCH", path_of(namespace, MACHINE, "m1"), {"spec": {field: value}}, content_type=MERGE_PATCH)
    assert caught.value.status == 422 and "cannot be" in caught.value.message


def test_a_network_preset_stays_and_none_becomes_managed(store, api, namespace):
    store.create(cluster("prod", cni={"preset": "none"}))
    path = path_of(namespace, CLUSTER, "prod")
    with pytest.raises(ApiRefused, match="3/cni-preset-immutable"):
        api.request("PATCH", path, {"spec": {"cni": {"preset": "unmanaged"}}}, content_type=MERGE_PATCH)
    api.request("PATCH", path, {"spec": {"cni": {"preset": "managed"}}}, content_type=MERGE_PATCH)
    with pytest.raises(ApiRefused, match="3/cni-preset-immutable"):
        api.request("PATCH", path, {"spec": {"cni": None}}, content_type=MERGE_PATCH)


def test_an_order_to_wipe_cannot_be_changed(store, api, namespace):
    order = Record(RECLAIM, "r1", {"address": "192.0.2.9", "clusterRef": "prod", "confirmUUID": "4c4c4544-0042-3010-8047-000000000001",
                                   "notAfter": "2026-12-01T00:00:00Z"})
    store.create(order)
    with pytest.raises(ApiRefused, match="3/reclaim-immutable"):
        api.request("PATCH", path_of(namespace, RECLAIM, "r1"), {"spec": {"address": "192.0.2.10"}}, content_type=MERGE_PATCH)


def test_every_field_is_described_and_nothing_has_a_default():
    def walk(schema, path):
        assert "default" not in schema, path
        for name, inner in schema.get("properties", {}).items():
            if path.count(".") >= 1:
                assert inner.get("description"), f"{path}.{name}"
            walk(inner, f"{path}.{name}")
        for inner in (schema.get("items"), schema.get("additionalProperties")):
            if isinstance(inner, dict):
                walk(inner, f"{path}[]")

    for definition in definitions():
        root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for part in ("spec", "status"):
            walk(root["properties"][part], f"{definition['spec']['names']['kind']}.{part}")
        json.dumps(definition)


# Objects and patches, without a server.


@pytest.mark.parametrize("before, after, patch", [
    ({"a": 1}, {"a": 1}, {}), ({"a": 1}, {}, {"a": None}), ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
    ({}, {"a": {}}, {"a": {}}), ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}), ({"a": 1}, {"a": True}, {"a": True}), ({"a": [1]}, {"a": [2]}, {"a": [2]}),
    ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
])
def test_a_patch_holds_what_differs(before, after, patch):
    assert merge_patch(before, after) == patch


def test_a_status_without_a_uid_is_nobody_s():
    found = {"metadata": {"name": "m1", "namespace": "x", "uid": "u"}, "spec": {}, "status": {"stage": "running"}}
    assert record_of(MACHINE, found).status_set_aside
    assert record_of(MACHINE, {**found, "status": {"recordUID": "u", "stage": "running"}}).status["stage"] == "running"
