# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may do what to records, tried with ServiceAccounts of each role on a real API server with the policies in force (design sections 4, 18)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._kube.access import Access, open_api
from ansible_collections.ichor.talos.plugins.module_utils._kube.api import MERGE_PATCH, ApiRefused
from ansible_collections.ichor.talos.plugins.module_utils._model.access_policies import GUARDED_STATUS, POLICIES, RUNNER, policies
from ansible_collections.ichor.talos.plugins.module_utils._model.access_roles import ROLES, RUNNER_GRANTS, cluster_roles, runner_access
from ansible_collections.ichor.talos.plugins.module_utils._model.custom_resources import GROUP
from ansible_collections.ichor.talos.plugins.module_utils._model.records import (
    ALLOW_DELETE,
    BACKUP,
    CLUSTER,
    CONFIG_PATCH,
    KINDS,
    MACHINE,
    RECLAIM,
    TRUST_FINGERPRINT,
    Event,
    Record,
)
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import SCHEMAS
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.objects import object_of, path_of
from ansible_collections.ichor.talos.plugins.module_utils._store.kubernetes.opening import open_store

from tests.parts.apiserver import running
from tests.unit._store.store_world import StillClock, cluster, machine, reason

NAMESPACE = "ichor-system"
APPLY = "application/apply-patch+yaml"
EDITOR = "editor"
PIN = "k5bTQ1QZsmJYv6VsCXyfHJsTvx0sGOTQZzHhtCNFZyo="
WITH_VERB = ("ichor-talos-operator", "ichor-talos-admin")
WITHOUT = ("ichor-talos-viewer", RUNNER, EDITOR)
ORDER = Record(RECLAIM, "order", {"address": "192.0.2.9", "clusterRef": "prod", "confirmUUID": "4c4c4544-0042-3010-8047-000000000001",
                                  "notAfter": "2027-12-01T00:00:00Z"})
NIGHTLY = Record(BACKUP, "nightly", {"clusterRef": "prod", "destination": {"file": {"path": "/backups"}}, "keep": 3})
PATCH = Record(CONFIG_PATCH, "p", {"clusterRef": "prod", "layer": "cluster", "priority": 1, "documents": [{"machine": {"sysctls": {"a": "1"}}}]})
PARTS = {"identity": {"uuid": "4c4c4544-0042-3010-8047-0000000000ff", "serial": "SN-X", "macs": ["3c:ec:ef:00:00:fe"]},
         "role": "controlplane", "endpoint": "192.0.2.200"}
STATUS = {name: "2026-09-21T14:13:20Z" if name.endswith("At") else "192.0.2.66" if name.startswith("observedEndpoint") else "x" for name in GUARDED_STATUS} | {
    "maintenanceFingerprint": PIN, "sending": {"hash": "h", "fingerprint": PIN, "time": "2026-09-21T14:13:20Z", "attempt": 1, "by": "me"},
    "wipeSeen": {"time": "2026-09-21T14:13:20Z", "fingerprint": PIN}}


@dataclass
class Account:
    """One ServiceAccount's way to the API server."""

    name: str
    api: object
    store: object

    @property
    def user(self):
        return f"system:serviceaccount:{NAMESPACE}:{self.name}"

    def patch(self, kind, name, body, part=""):
        return self.api.request("PATCH", path_of(NAMESPACE, kind, name, part), body, content_type=MERGE_PATCH)

    def create(self, record):
        return self.api.request("POST", path_of(NAMESPACE, record.kind), object_of(record, NAMESPACE))


@pytest.fixture(scope="module")
def server():
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def admin(server):
    """The administrator's store, with resources, roles and policies in force."""
    store = open_store(Access(kubeconfig=str(server.kubeconfig)), NAMESPACE, clock=StillClock(), create=True)
    api = open_api(Access(kubeconfig=str(server.kubeconfig)))
    for made in (*cluster_roles(), *runner_access(NAMESPACE), *policies(), EDITS):
        apply(api, made)
    for role, account in (*((role, role) for role in ROLES), (EDITOR, EDITOR)):
        server.token_of(account, NAMESPACE)
        apply(api, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": account, "namespace": NAMESPACE},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                    "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]})
    until(lambda: in_force(server, api))
    yield store
    store.close()
    api.close()


#: Everything with records, but not the verb: what a careless administrator gives a GitOps tool.
EDITS = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": EDITOR},
         "rules": [{"apiGroups": [GROUP], "resources": [f"{schema.plural}{part}" for schema in SCHEMAS.values() for part in ("", "/status")],
                    "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]}
PATHS = {"ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles", "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
         "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
         "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
         "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
         "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"}


def apply(api, made):
    api.request("PATCH", f"{PATHS[made['kind']]}/{made['metadata']['name']}", made, query={"fieldManager": "test", "force": "true"}, content_type=APPLY)


def until(holds):
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


def in_force(server, api):
    """Whether each policy refuses already: an API server takes a moment to see them. Dry runs go through admission too."""
    editor = opened(server, EDITOR)
    probes = {
        "ichor-talos-machines": ("POST", path_of(NAMESPACE, MACHINE), object_of(machine(99, approvalState="rejected"), NAMESPACE), None),
        "ichor-talos-machine-status": ("PATCH", path_of(NAMESPACE, MACHINE, "m98", "status"), {"status": {"recordUID": "x"}}, MERGE_PATCH),
        "ichor-talos-reclaims": ("POST", path_of(NAMESPACE, RECLAIM), object_of(ORDER, NAMESPACE), None),
        "ichor-talos-backups": ("POST", path_of(NAMESPACE, BACKUP), object_of(NIGHTLY, NAMESPACE), None),
        "ichor-talos-deletion": ("DELETE", path_of(NAMESPACE, MACHINE, "m98"), None, None),
    }
    assert set(probes) == {policy.name for policy in POLICIES}
    try:
        api.request("POST", path_of(NAMESPACE, MACHINE), object_of(machine(98), NAMESPACE))
    except ApiRefused as refused:
        assert refused.reason == "AlreadyExists"
    for method, path, body, kind in probes.values():
        try:
            editor.api.request(method, path, body, query={"dryRun": "All"}, **({"content_type": kind} if kind else {}))
            return False
        except ApiRefused as refused:
            if "4/policy-" not in refused.message:
                return False
    return True


def opened(server, account):
    access = Access(content=server.kubeconfig_for(server.token_of(account, NAMESPACE)))
    return Account(account, open_api(access), open_store(access, NAMESPACE, clock=StillClock()))


@pytest.fixture(scope="module")
def accounts(server, admin):
    found = {name: opened(server, name) for name in (*ROLES, RUNNER, EDITOR)}
    yield found
    for account in found.values():
        account.api.close()
        account.store.close()


NUMBERS = iter(range(1, 99))


@pytest.fixture
def number():
    return next(NUMBERS)


def approval(user, **more):
    return {"approvalState": "approved", "approvedBy": "ada", "approvedVia": user, "approvedAt": "2026-09-21T14:13:20Z", "role": "worker", **more}


def approved(admin, number):
    """A machine that the administrator approved."""
    return admin.create(machine(number, **approval("admin")))


def refused(call, *arguments, rule=""):
    with pytest.raises(ApiRefused) as caught:
        call(*arguments)
    assert caught.value.status == 403
    if rule:
        assert f"({rule})" in caught.value.message, caught.value.message
    return caught.value.message


# The fields of an approval.

CHANGES = {
    "approvalState": {"approvalState": "rejected"}, "approvedBy": {"approvedBy": "eve"}, "approvedVia": {"approvedVia": "eve"},
    "approvedAt": {"approvedAt": "2026-09-21T14:13:20Z"}, "acceptedFingerprint": {"acceptedFingerprint": PIN}, "approvedDisk": {"approvedDisk": {"wwid": "x"}},
    "all": approval("eve"),
}


@pytest.mark.parametrize("account", WITHOUT)
@pytest.mark.parametrize("field", CHANGES)
def test_without_the_verb_nobody_approves(admin, accounts, number, account, field):
    who, change = accounts[account], dict(CHANGES[field])
    if field == "all":
        change["approvedVia"] = who.user
    admin.create(machine(number))
    rule = "4/policy-approval" if account == EDITOR else ""
    refused(who.patch, MACHINE, f"m{number}", {"spec": change}, rule=rule)
    record = machine(number)
    if account != "ichor-talos-viewer":
        # On create as on update; the runner may make machines, but only pending ones.
        refused(who.create, replace(record, name=f"new-{number}", spec={**record.spec, **change}), rule="4/policy-approval")
        assert who.create(replace(record, name=f"new-{number}"))["spec"]["approvalState"] == "pending"


@pytest.mark.parametrize("account", WITH_VERB)
def test_with_the_verb_it_is_the_user_who_approved(admin, accounts, number, account):
    who = accounts[account]
    admin.create(machine(number))
    message = refused(who.patch, MACHINE, f"m{number}", {"spec": approval("somebody-else")}, rule="4/policy-approved-via")
    assert "approvedVia has to be the user" in message
    who.patch(MACHINE, f"m{number}", {"spec": approval(who.user)})
    assert admin.get(MACHINE, f"m{number}").spec["approvedVia"] == who.user == who.store.account()
    record = machine(number)
    refused(who.create, replace(record, name=f"new-{number}", spec={**record.spec, **approval("eve")}), rule="4/policy-approved-via")
    who.create(replace(record, name=f"new-{number}", spec={**record.spec, **approval(who.user)}))


def test_approving_through_the_store_names_the_account(accounts, number):
    who = accounts["ichor-talos-operator"]
    made = who.store.create(machine(number))
    done = who.store.update(made, {**made.spec, **approval(who.store.account())})
    assert done.spec["approvedVia"] == who.user and done.status == {"recordUID": made.uid}
    lone = accounts[EDITOR].store
    again = lone.get(MACHINE, f"m{number}")
    assert reason(lone.update, again, {**again.spec, "approvalState": "rejected"}) == "PermissionDenied"


def test_the_verb_may_be_given_for_one_machine(server, admin, accounts, number):
    admin.create(machine(number))
    admin.create(replace(machine(number), name=f"other-{number}"))
    api = open_api(Access(kubeconfig=str(server.kubeconfig)))
    apply(api, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": f"one-{number}", "namespace": NAMESPACE},
                "rules": [{"apiGroups": [GROUP], "resources": ["talosmachines/approval"], "verbs": ["approve"], "resourceNames": [f"m{number}"]}]})
    apply(api, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": f"one-{number}", "namespace": NAMESPACE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"one-{number}"},
                "subjects": [{"kind": "ServiceAccount", "name": EDITOR, "namespace": NAMESPACE}]})
    who = accounts[EDITOR]

    def may():
        try:
            return who.patch(MACHINE, f"m{number}", {"spec": approval(who.user)})
        except ApiRefused:
            return None

    until(may)
    refused(who.patch, MACHINE, f"other-{number}", {"spec": approval(who.user)}, rule="4/policy-approval")
    api.close()


# What an approval stands on.


@pytest.mark.parametrize("account", WITHOUT)
@pytest.mark.parametrize("field", PARTS)
def test_what_was_approved_stays_without_the_verb(admin, accounts, number, account, field):
    approved(admin, number)
    refused(accounts[account].patch, MACHINE, f"m{number}", {"spec": {field: PARTS[field]}}, rule="4/policy-approved-record" if account == EDITOR else "")
    if field != "role":  # which an approved machine has to have, whoever asks
        refused(accounts[account].patch, MACHINE, f"m{number}", {"spec": {field: None}}, rule="4/policy-approved-record" if account == EDITOR else "")


@pytest.mark.parametrize("account", WITH_VERB)
@pytest.mark.parametrize("field", PARTS)
def test_with_the_verb_it_can_be_changed(admin, accounts, number, account, field):
    approved(admin, number)
    assert accounts[account].patch(MACHINE, f"m{number}", {"spec": {field: PARTS[field]}})["spec"][field] == PARTS[field]


@pytest.mark.parametrize("field", PARTS)
def test_a_pending_machine_may_be_edited(admin, accounts, number, field):
    admin.create(machine(number))
    accounts[EDITOR].patch(MACHINE, f"m{number}", {"spec": {field: PARTS[field], "hostname": "a"}})


@pytest.mark.parametrize("account", (*WITHOUT, *WITH_VERB))
def test_trust_is_a_person_s(admin, accounts, number, account):
    made = approved(admin, number)
    change = {"metadata": {"annotations": {TRUST_FINGERPRINT: PIN}}}
    who = accounts[account]
    if account in WITH_VERB:
        who.patch(MACHINE, f"m{number}", change)
        return
    rule = "4/policy-trust" if account == EDITOR else ""
    refused(who.patch, MACHINE, f"m{number}", change, rule=rule)
    if account == EDITOR:
        who.patch(MACHINE, f"m{number}", {"metadata": {"annotations": {"note": "x"}}})
        refused(who.create, replace(machine(number), name=f"new-{number}", annotations={TRUST_FINGERPRINT: PIN}), rule=rule)
        now = admin.get(MACHINE, made.name)
        admin.update(now, now.spec, annotations={TRUST_FINGERPRINT: PIN})
        refused(who.patch, MACHINE, f"m{number}", {"metadata": {"annotations": {TRUST_FINGERPRINT: None}}}, rule=rule)


@pytest.mark.parametrize("field", GUARDED_STATUS)
def test_guarded_status_is_written_by_the_runner_and_holders_of_the_verb(admin, accounts, number, field):
    admin.create(machine(number))
    name, change = f"m{number}", {"status": {field: STATUS[field]}}
    refused(accounts[EDITOR].patch, MACHINE, name, change, "status", rule="4/policy-status")
    refused(accounts["ichor-talos-viewer"].patch, MACHINE, name, change, "status")
    for account in (RUNNER, *WITH_VERB):
        assert accounts[account].patch(MACHINE, name, change, "status")["status"][field] == STATUS[field]
        accounts[account].patch(MACHINE, name, {"status": {field: None}}, "status")
    accounts[RUNNER].patch(MACHINE, name, change, "status")
    refused(accounts[EDITOR].patch, MACHINE, name, {"status": {field: None}}, "status", rule="4/policy-status")
    refused(accounts[EDITOR].patch, MACHINE, name, {"status": None}, "status", rule="4/policy-status")
    accounts[EDITOR].patch(MACHINE, name, {"status": {"nodeName": "n"}}, "status")


def test_a_status_that_comes_with_a_new_record_is_dropped(accounts, number):
    made = accounts[EDITOR].api.request("POST", path_of(NAMESPACE, MACHINE), {**object_of(machine(number), NAMESPACE), "status": STATUS})
    assert "status" not in made


def test_the_runner_of_another_namespace_is_nobody_here(server, admin, number):
    api = open_api(Access(kubeconfig=str(server.kubeconfig)))
    api.request("PATCH", "/api/v1/namespaces/elsewhere", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}},
                query={"fieldManager": "test"}, content_type=APPLY)
    token = server.token_of(RUNNER, "elsewhere")
    apply(api, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "elsewhere", "namespace": NAMESPACE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": EDITOR},
                "subjects": [{"kind": "ServiceAccount", "name": RUNNER, "namespace": "elsewhere"}]})
    admin.create(machine(number))
    other = open_api(Access(content=server.kubeconfig_for(token)))
    until(lambda: other.get(path_of(NAMESPACE, MACHINE, f"m{number}")) if allowed(other, path_of(NAMESPACE, MACHINE, f"m{number}")) else None)
    who = Account(RUNNER, other, None)
    refused(who.patch, MACHINE, f"m{number}", {"status": {"maintenanceFingerprint": PIN}}, "status", rule="4/policy-status")
    api.close()
    other.close()


def allowed(api, path):
    try:
        api.get(path)
        return True
    except ApiRefused:
        return False


# Orders, backups, deletion.


def test_orders_and_backups_need_the_verb(accounts, number):
    order, nightly = replace(ORDER, name=f"order-{number}"), replace(NIGHTLY, name=f"nightly-{number}")
    refused(accounts[EDITOR].create, order, rule="4/policy-reclaim")
    refused(accounts[EDITOR].create, nightly, rule="4/policy-backup")
    refused(accounts["ichor-talos-operator"].create, nightly)
    accounts["ichor-talos-operator"].create(order)
    accounts["ichor-talos-admin"].create(replace(order, name=f"other-{number}"))
    accounts["ichor-talos-admin"].create(nightly)
    refused(accounts[EDITOR].patch, BACKUP, nightly.name, {"spec": {"destination": {"file": {"path": "/elsewhere"}}}}, rule="4/policy-backup")
    accounts[EDITOR].patch(BACKUP, nightly.name, {"metadata": {"labels": {"a": "1"}}})
    accounts["ichor-talos-admin"].patch(BACKUP, nightly.name, {"spec": {"keep": 9}})


@pytest.mark.parametrize("kind", [CLUSTER, MACHINE, CONFIG_PATCH])
def test_a_record_goes_only_when_that_is_meant(server, admin, accounts, number, kind):
    record = {CLUSTER: cluster(f"c{number}"), MACHINE: machine(number), CONFIG_PATCH: replace(PATCH, name=f"p{number}")}[kind]
    made = admin.create(record)
    root = open_api(Access(kubeconfig=str(server.kubeconfig)))
    for api in (accounts[EDITOR].api, root):
        refused(api.request, "DELETE", path_of(NAMESPACE, kind, made.name), rule="4/policy-delete")
    root.close()
    accounts[EDITOR].patch(kind, made.name, {"metadata": {"annotations": {ALLOW_DELETE: "true"}}})
    accounts[EDITOR].api.request("DELETE", path_of(NAMESPACE, kind, made.name))
    assert admin.get(kind, made.name) is None


# Each role does all of its work, and needs every verb that it has.


def works_as_runner(who, number):
    """What the loop does with its store."""
    store = who.store
    sees(who)
    made = store.create(machine(number))
    told = store.patch_status(made.ref, made.uid, lambda status: {**status, **STATUS, "stage": "maintenance", "recordUID": made.uid})
    condition = {"type": "Ready", "status": "False", "reason": "NodeUnreachable", "message": str(number), "lastTransitionTime": "2026-09-21T14:13:20Z"}
    for kind, name in ((CLUSTER, "prod"), (RECLAIM, "order"), (BACKUP, "nightly")):
        record, change = store.get(kind, name), {"conditions": [condition]}
        store.patch_status(record.ref, record.uid, lambda status, change=change: {**status, **change})
    event = Event(told.ref, "Normal", "ConfigApplied", f"sent {number}")
    store.record_event(event)
    store.record_event(event)
    lease = store.leases.acquire(f"lock-{number}", who.name, "a test", 60.0)
    store.leases.release(store.leases.renew(lease))
    assert store.bundle("prod") == b"keys"


def works_as_operator(who, number):
    works_as_runner(who, number)
    store = who.store
    now = store.get(MACHINE, f"m{number}")
    store.delete(store.update(now, {**now.spec, "hostname": "a"}))
    patch = store.create(replace(PATCH, name=f"p{number}"))
    store.delete(store.update(patch, {**patch.spec, "priority": 2}))
    store.delete(store.create(replace(ORDER, name=f"o{number}")))


def works_as_admin(who, number):
    works_as_operator(who, number)
    store = who.store
    made = store.create(cluster(f"c{number}"))
    store.delete(store.update(made, {**made.spec, "certSANs": ["api.example.org"]}))
    backup = store.create(replace(NIGHTLY, name=f"n{number}"))
    store.delete(store.update(backup, {**backup.spec, "keep": 2}))
    store.write_bundle(f"b{number}", b"keys")
    store.write_bundle(f"b{number}", b"others", replace=True)


def works_as_viewer(who, number):
    sees(who)
    who.store.leases.read("prod")


def sees(who):
    store = who.store
    for kind in KINDS:
        store.list(kind)
        store.get(kind, "nothing")
        watch(who, kind)
    store.events()


def watch(who, kind):
    """A watch that ends at once."""
    found = who.api._pool.request("GET", f"{who.api.host}{path_of(NAMESPACE, kind)}?watch=1&timeoutSeconds=1", body=None, headers=dict(who.api._authorize()),
                                  timeout=10, retries=False, preload_content=True)
    assert found.status == 200


WORK = {RUNNER: (works_as_runner, RUNNER_GRANTS), "ichor-talos-viewer": (works_as_viewer, ROLES["ichor-talos-viewer"]),
        "ichor-talos-operator": (works_as_operator, ROLES["ichor-talos-operator"]), "ichor-talos-admin": (works_as_admin, ROLES["ichor-talos-admin"])}


@pytest.fixture(scope="module")
def furnished(admin):
    admin.create(cluster("prod"))
    admin.create(ORDER)
    admin.create(NIGHTLY)
    admin.write_bundle("prod", b"keys")
    return admin


@pytest.mark.parametrize("role", WORK)
def test_each_role_can_do_its_work_and_has_no_verb_beyond_it(server, furnished, accounts, number, role):
    work, grants = WORK[role]
    since = len(server.audit.read_text().splitlines())
    work(accounts[role], number)
    done = set()
    for line in server.audit.read_text().splitlines()[since:]:
        entry = json.loads(line)
        if entry["user"]["username"] == accounts[role].user and "objectRef" in entry:
            thing = entry["objectRef"]
            assert entry["responseStatus"]["code"] not in (401, 403), entry
            done.add((thing.get("apiGroup", ""), "/".join(filter(None, (thing["resource"], thing.get("subresource")))), entry["verb"]))
    granted = {(grant.group, resource, verb) for grant in grants for resource in grant.resources for verb in grant.verbs if verb != "approve"}
    assert done >= granted, f"granted and never used: {sorted(granted - done)}"
    assert done - granted <= {("authentication.k8s.io", "selfsubjectreviews", "create")}


def test_only_people_may_approve():
    verbs = {name: {resource for grant in grants for resource in grant.resources if "approve" in grant.verbs}
             for name, grants in (*ROLES.items(), (RUNNER, RUNNER_GRANTS))}
    assert verbs == {"ichor-talos-viewer": set(), RUNNER: set(), "ichor-talos-operator": {"talosmachines/approval", "machinereclaims"},
                     "ichor-talos-admin": {"talosmachines/approval", "machinereclaims", "talosetcdbackups"}}


def test_every_rule_of_a_policy_has_an_id_of_its_own():
    ids = [rule.id for policy in POLICIES for rule in policy.rules]
    assert len(set(ids)) == len(ids) and all(name.startswith("4/policy-") for name in ids)
