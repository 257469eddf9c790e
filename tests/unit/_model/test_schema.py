# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schemas of the five kinds and the rules over several fields (design section 3)."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.approval import approval_state, status_missing, tracked_by, was_sent
from ansible_collections.ichor.talos.plugins.module_utils._model.records import BACKUP, CLUSTER, CONFIG_PATCH, KINDS, MACHINE, RECLAIM, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import SCHEMAS, validate, validate_status
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_formats import FORMATS
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_rules import RULES, Context, broken_rules
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_types import Block, Field, ListOf, MapOf, Open, Text, Truth, Whole

PIN = "5dJXQ0mlS8V1nYsNCdMnqHGRVzLt6RzMyoMVYKhM1QA="

FULL = {
    CLUSTER: {
        "talosVersion": "v1.13.9", "kubernetesVersion": "1.34.1", "endpoint": "https://[2001:db8::5]:6443", "secretsRef": {"name": "prod"},
        "network": {"podSubnets": ["10.244.0.0/16", "fd00::/56"], "serviceSubnets": ["10.96.0.0/12"], "dnsDomain": "cluster.local"},
        "cni": {"preset": "managed", "cilium": {"values": {"ipam": {"mode": "kubernetes"}}}}, "controlPlane": {"count": 3},
        "registries": {"mirrors": {"docker.io": {"endpoints": ["https://mirror.example"], "overridePath": True, "skipFallback": False}}},
        "certSANs": ["192.0.2.5", "kube.example"], "install": {"diskSelector": {"size": ">= 100GB", "type": "nvme"}, "image": "x", "wipe": False},
        "discovery": {"addresses": ["192.0.2.9", "rack7.example:50000", "[2001:db8::9]:50000"], "ranges": ["192.0.2.0/24", "192.0.2.10-20"]},
        "driftPolicy": "report", "secureBoot": "Off", "allowSchedulingOnControlPlanes": True, "hold": "caRotation",
    },
    MACHINE: {
        "clusterRef": "prod", "identity": {"uuid": "4C4C4544-0042-3010-8047-B4C04F4E4E32", "serial": "SN", "macs": ["aa-bb-cc-dd-ee-ff", "aabb.ccdd.ee00"]},
        "endpoint": "192.0.2.1:50000", "approvalState": "approved", "approvedBy": "ada", "approvedVia": "awx", "approvedAt": "2026-09-21T14:13:20Z",
        "acceptedFingerprint": PIN, "approvedDisk": {"wwid": "", "serial": "x", "model": "y", "size": 500_000_000_000}, "role": "controlplane",
        "hostname": "cp1", "labels": {"topology.kubernetes.io/zone": "a", "empty": ""},
        "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], "install": {"disk": "/dev/sda", "wipe": True},
        "disks": [{"selector": {"match": "disk.transport == 'nvme'"}, "role": "storage"}],
        "network": {"primary": {"mac": "aa:bb:cc:dd:ee:ff", "addresses": ["192.0.2.1/24", "2001:db8::1/64"], "gateway": "192.0.2.254",
                                "nameservers": ["192.0.2.53"], "vlan": 7}},
    },
    CONFIG_PATCH: {"clusterRef": "prod", "machineSelector": {"names": ["m1"], "labels": {"a": "b"}, "role": "worker"}, "layer": "machine", "priority": -5,
                   "documents": [{"apiVersion": "v1alpha1", "kind": "SysctlConfig"}]},
    RECLAIM: {"address": "192.0.2.7", "clusterRef": "prod", "talosconfigRef": {"name": "old"}, "confirmUUID": "4c4c4544-0042-3010-8047-b4c04f4e4e32",
              "forceUngraceful": False, "notAfter": "2026-10-01T00:00:00+02:00"},
    BACKUP: {"clusterRef": "prod", "destination": {"s3": {"endpoint": "https://s3.example", "bucket": "b", "prefix": "p/", "region": "r",
                                                          "credentialsRef": {"name": "s3"}}}, "schedule": "0 */6 * * MON", "keep": 7},
}


def record(kind, spec=None, name="x", **more):
    return Record(kind, name, FULL[kind] if spec is None else spec, **more)


def with_value(kind, path, value):
    spec = copy.deepcopy(FULL[kind])
    here = spec
    for step in path[:-1]:
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    here[path[-1]] = value
    return spec


def test_there_are_five_kinds_with_a_folder_each():
    assert tuple(SCHEMAS) == KINDS
    assert len({schema.folder for schema in SCHEMAS.values()}) == len({schema.plural for schema in SCHEMAS.values()}) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_taken_and_every_other_is_refused_by_name(kind):
    assert validate(record(kind)) == ()
    assert set(FULL[kind]) == set(SCHEMAS[kind].spec.fields)  # the full example leaves nothing out
    problem, = validate(record(kind, {**FULL[kind], "colour": "red"}))
    assert (problem.where, problem.message, problem.rule) == ("spec.colour", "spec.colour is not known.", "schema/unknown-key")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_required(kind):
    for name, field in SCHEMAS[kind].spec.fields.items():
        rules = {problem.rule for problem in validate(record(kind, {key: value for key, value in FULL[kind].items() if key != name}), writing=False)}
        assert rules <= {"schema/required"} and bool(rules) == field.required, name


BAD = [
    (CLUSTER, ("talosVersion",), "latest", "schema/talos-version", "such as v1.13.9"),
    (CLUSTER, ("talosVersion",), "1.13", "schema/talos-version", "such as v1.13.9"),
    (CLUSTER, ("talosVersion",), "v1.12", "schema/talos-version", "such as v1.12.9"),
    (CLUSTER, ("talosVersion",), "1.13.2", "schema/talos-version", "write v1.13.2"),
    (CLUSTER, ("talosVersion",), 1.13, "schema/type", "is the number 1.13; put it in quotes, such as 'v1.13.9'"),
    (CLUSTER, ("kubernetesVersion",), "latest", "schema/version", "a version of three numbers"),
    (CLUSTER, ("kubernetesVersion",), "1.35", "schema/version", "a version of three numbers"),
    (CLUSTER, ("talosVersion",), 1.13, "schema/type", "the number 1.13; put it in quotes"),
    (CLUSTER, ("endpoint",), "http://192.0.2.5:6443", "schema/https-url", "a URL such as"),
    (CLUSTER, ("endpoint",), "https://user@192.0.2.5", "schema/https-url", "a URL such as"),
    (CLUSTER, ("endpoint",), "https://192.0.2.5:6443/path", "schema/https-url", "a URL such as"),
    (CLUSTER, ("endpoint",), "https://192.0.2.5:99999", "schema/https-url", "a URL such as"),
    (CLUSTER, ("endpoint",), "https://192.0.2:6443", "schema/https-url", "a URL such as"),
    (CLUSTER, ("secretsRef",), {}, "schema/required", "spec.secretsRef.name is missing"),
    (CLUSTER, ("secretsRef", "name"), "../prod", "schema/name", "DNS-1123"),
    (CLUSTER, ("network", "podSubnets"), ["10.244.0.1/16"], "schema/network", "no bits set behind the prefix"),
    (CLUSTER, ("network", "podSubnets"), ["10.244.0.0"], "schema/network", "with a prefix length"),
    (CLUSTER, ("network", "podSubnets"), "10.244.0.0/16", "schema/type", "has to be a list and is a text"),
    (CLUSTER, ("controlPlane", "count"), 2, "schema/values", "one of 1, 3, 5, 7"),
    (CLUSTER, ("controlPlane", "count"), "3", "schema/type", "a whole number, without quotes"),
    (CLUSTER, ("controlPlane", "count"), True, "schema/type", "is true"),
    (CLUSTER, ("certSANs",), ["a", "a"], "schema/unique", "holds 'a' twice"),
    (CLUSTER, ("discovery", "ranges"), ["192.0.2.20-192.0.2.10"], "schema/range", "ends before it starts"),
    (CLUSTER, ("discovery", "ranges"), ["192.0.2.20-2001:db8::1"], "schema/range", "from IPv4 to IPv6"),
    (CLUSTER, ("discovery", "ranges"), ["rack7"], "schema/range", "a range such as"),
    (CLUSTER, ("discovery", "addresses"), ["a:b"], "schema/endpoint", "with or without ':port'"),
    (CLUSTER, ("driftPolicy",), "never", "schema/values", "one of apply, report"),
    (CLUSTER, ("secureBoot",), False, "schema/type", "is false; put it in quotes"),
    (CLUSTER, ("allowSchedulingOnControlPlanes",), "true", "schema/type", "true or false, without quotes"),
    (CLUSTER, ("cni", "cilium", "values"), ["a"], "schema/type", "has to be a mapping and is a list"),
    (CLUSTER, ("DriftPolicy",), "apply", "schema/unknown-key", "not known; 'driftPolicy' is"),
    (MACHINE, ("identity", "uuid"), "4c4c4544", "schema/uuid", "8-4-4-4-12"),
    (MACHINE, ("identity", "serial"), 12345, "schema/type", "put it in quotes"),
    (MACHINE, ("identity", "serial"), "", "schema/empty", "is empty; leave the key out"),
    (MACHINE, ("identity", "serial"), None, "schema/type", "has to be a text and is empty"),
    (MACHINE, ("identity", "macs"), ["aa:bb:cc:dd:ee"], "schema/mac", "a MAC address such as"),
    (MACHINE, ("endpoint",), "192.0.2.1:0", "schema/endpoint", "address or host name"),
    (MACHINE, ("endpoint",), "192.0.2.1:x", "schema/endpoint", "address or host name"),
    (MACHINE, ("endpoint",), "192.0.2", "schema/endpoint", "address or host name"),
    (MACHINE, ("endpoint",), "[192.0.2.1]:50000", "schema/endpoint", "address or host name"),
    (MACHINE, ("approvalState",), "Approved", "schema/values", "one of pending, approved, rejected"),
    (MACHINE, ("approvedAt",), "yesterday", "schema/time", "a time such as"),
    (MACHINE, ("acceptedFingerprint",), "SHA256:x", "schema/fingerprint", "a certificate fingerprint"),
    (MACHINE, ("hostname",), "CP_1", "schema/name", "DNS-1123"),
    (MACHINE, ("labels",), {"a b": "c"}, "schema/label-key", "The key 'a b' of spec.labels"),
    (MACHINE, ("labels",), {"a": "b c"}, "schema/label-value", "a label value"),
    (MACHINE, ("labels",), {"a": True}, "schema/type", "spec.labels.a has to be a text and is true; put it in quotes"),
    (MACHINE, ("taints",), [{"key": "a"}], "schema/required", "spec.taints[0].effect is missing"),
    (MACHINE, ("disks",), [{"selector": {"colour": "red"}, "role": "system"}], "schema/unknown-key", "spec.disks[0].selector.colour is not known"),
    (MACHINE, ("network", "primary", "addresses"), ["192.0.2.1"], "schema/interface-address", "prefix length"),
    (MACHINE, ("network", "primary", "gateway"), "router", "schema/address", "an IP address"),
    (MACHINE, ("network", "primary", "vlan"), 4095, "schema/values", "at most 4094"),
    (MACHINE, ("network", "primary", "vlan"), 0, "schema/values", "at least 1"),
    (CONFIG_PATCH, ("documents",), ["machine: {}"], "schema/type", "spec.documents[0] has to be a mapping and is a text"),
    (RECLAIM, ("notAfter",), "2026-13-01T00:00:00Z", "schema/time", "a time such as"),
    (BACKUP, ("schedule",), "hourly", "schema/cron", "five fields"),
]


@pytest.mark.parametrize(("kind", "path", "value", "rule", "message"), BAD, ids=[f"{row[1][-1]}-{row[2]}" for row in BAD])
def test_a_wrong_value_is_told_so_that_a_person_understands(kind, path, value, rule, message):
    problems = validate(record(kind, with_value(kind, path, value)))
    assert [(problem.rule, problem.path[:len(path) + 1]) for problem in problems] == [(rule, ("spec", *path))]
    assert message in problems[0].message
    assert problems[0].message.endswith(".")


def test_names_labels_and_annotations():
    for name in ("", "Upper", "-a", "a-", "a/b", "..", "a" * 254, "a_b", "a..b"):
        assert [problem.rule for problem in validate(record(CLUSTER, name=name))] == ["schema/name"], name
    for name in ("a", "1", "m1.example.com", "a" * 63):
        assert validate(record(CLUSTER, name=name)) == ()
    assert [problem.where for problem in validate(record(CLUSTER, labels={"-": "x"}, annotations={"a": 1}))] == ["metadata.labels.-", "metadata.annotations.a"]
    assert [problem.rule for problem in validate(Record("Pod", "x"))] == ["schema/kind"]


@pytest.mark.parametrize("form", FORMATS)
def test_no_form_takes_nonsense(form):
    for text in ("\n", " ", "a b\nc", "\x00", "é", "{{ x }}", "a" * 300 + "!"):
        assert FORMATS[form].fault(text), text


# The rules over several fields: a record that breaks only this one, and what it was before.

SENT = {"status": {"configStoredAt": "2026-09-21T14:13:20Z"}}
BROKEN_BY = {
    "3/disk-or-selector": (record(MACHINE, with_value(MACHINE, ("install", "diskSelector"), {"size": "1"})), None),
    "3/interface-or-mac": (record(MACHINE, with_value(MACHINE, ("network", "primary", "interface"), "eth0")), None),
    "3/dhcp-or-static": (record(MACHINE, with_value(MACHINE, ("network", "primary"), {"dhcp": True, "addresses": ["192.0.2.1/24"]})), None),
    "3/gateway-needs-addresses": (record(MACHINE, with_value(MACHINE, ("network", "primary"), {"gateway": "192.0.2.1"})), None),
    "3/cilium-values-need-managed": (record(CLUSTER, with_value(CLUSTER, ("cni", "preset"), "unmanaged")), None),
    "3/backup-destination": (record(BACKUP, with_value(BACKUP, ("destination",), {})), None),
    "7/approval-together": (record(MACHINE, {key: value for key, value in FULL[MACHINE].items() if key != "approvedBy"}), None),
    "7/approved-needs-role": (record(MACHINE, {key: value for key, value in FULL[MACHINE].items() if key != "role"}), None),
    "3/cluster-ref-immutable": (record(MACHINE, {**FULL[MACHINE], "clusterRef": "lab"}), record(MACHINE, status={"recordUID": "x"})),
    "7/role-immutable": (record(MACHINE, {**FULL[MACHINE], "role": "worker"}), record(MACHINE, **SENT)),
    "7/identity-immutable": (record(MACHINE, {**FULL[MACHINE], "identity": {"serial": "other"}}), record(MACHINE, **SENT)),
    "7/approval-final": (record(MACHINE, {**FULL[MACHINE], "approvalState": "rejected"}), record(MACHINE, **SENT)),
    "3/secrets-ref-immutable": (record(CLUSTER, {**FULL[CLUSTER], "secretsRef": {"name": "other"}}), record(CLUSTER)),
    "3/cni-preset-immutable": (record(CLUSTER, {**FULL[CLUSTER], "cni": {"preset": "none"}}), record(CLUSTER)),
    "3/reclaim-immutable": (record(RECLAIM, {**FULL[RECLAIM], "notAfter": "2027-01-01T00:00:00Z"}), record(RECLAIM)),
}
WITH_MACHINES = Context(cluster_has_machines=True)


def test_every_rule_has_a_record_that_breaks_it():
    assert list(BROKEN_BY) == [rule.id for rule in RULES]


@pytest.mark.parametrize("rule", BROKEN_BY)
def test_a_rule_is_broken_by_one_record_and_by_nothing_else(rule):
    broken, before = BROKEN_BY[rule]
    problems = validate(broken, before, WITH_MACHINES)
    assert [problem.rule for problem in problems] == [rule]
    assert problems[0].message.startswith("spec") and problems[0].message.endswith(".")
    others = tuple(entry for entry in RULES if entry.id != rule)
    assert list(broken_rules(broken, before, WITH_MACHINES, writing=True, rules=others)) == []


ALLOWED = [
    ("another cluster while it is pending", {"clusterRef": "lab"}, {**FULL[MACHINE], "approvalState": "pending"}, {}),
    ("another role before anything was sent", {"role": "worker"}, FULL[MACHINE], {"recordUID": "x"}),
    ("the same identity in another notation", {"identity": {"uuid": "4c4c4544-0042-3010-8047-b4c04f4e4e32", "serial": "SN ",
                                                            "macs": ["aa:bb:cc:dd:ee:00", "AABBCCDDEEFF"]}}, FULL[MACHINE], SENT["status"]),
    ("rejected before anything was sent", {"approvalState": "rejected"}, FULL[MACHINE], {"recordUID": "x"}),
    ("another host name after it was sent", {"hostname": "cp2"}, FULL[MACHINE], SENT["status"]),
]


@pytest.mark.parametrize(("change", "before", "status"), [row[1:] for row in ALLOWED], ids=[row[0] for row in ALLOWED])
def test_what_may_change(change, before, status):
    assert validate(record(MACHINE, {**before, **change}), record(MACHINE, before, status=status)) == ()


def test_a_cluster_may_change_its_bundle_until_it_has_a_machine_and_its_network_once():
    assert validate(record(CLUSTER, {**FULL[CLUSTER], "secretsRef": {"name": "other"}}), record(CLUSTER)) == ()
    without = {key: value for key, value in FULL[CLUSTER].items() if key != "cni"}
    assert validate(record(CLUSTER), record(CLUSTER, without)) == ()
    assert validate(record(CLUSTER), record(CLUSTER, {**without, "cni": {"preset": "none"}})) == ()
    assert [problem.rule for problem in validate(record(CLUSTER, without), record(CLUSTER))] == ["3/cni-preset-immutable"]
    assert [problem.rule for problem in validate(record(CLUSTER, {**without, "cni": {"preset": "managed"}}),
                                                 record(CLUSTER, {**without, "cni": {"preset": "unmanaged"}}))] == ["3/cni-preset-immutable"]


def test_both_destinations_are_one_too_many():
    both = {**FULL[BACKUP], "destination": {**FULL[BACKUP]["destination"], "file": {"path": "/x"}}}
    assert [problem.rule for problem in validate(record(BACKUP, both))] == ["3/backup-destination"]


def test_a_hand_written_half_of_an_approval_is_read():
    half = record(MACHINE, {key: value for key, value in FULL[MACHINE].items() if key not in ("approvedBy", "role")})
    assert validate(half, writing=False) == ()
    assert len(validate(half)) == 2


# Approval and the past.


@pytest.mark.parametrize(("spec", "state"), [
    ({}, "pending"), ({"approvalState": "pending"}, "pending"), ({"approvalState": "rejected"}, "rejected"), ({"approvalState": "approved"}, "pending"),
    ({"approvalState": "approved", "approvedBy": "a"}, "pending"), ({"approvalState": "approved", "approvedAt": "t"}, "pending"),
    ({"approvalState": "approved", "approvedBy": "", "approvedAt": "t"}, "pending"),
    ({"approvalState": "approved", "approvedBy": "a", "approvedAt": "t"}, "approved"), ({"approvalState": 1}, "pending"),
])
def test_what_counts_as_approved(spec, state):
    assert approval_state(Record(MACHINE, "m", spec)) == state


def test_lost_status_is_that_of_an_approved_machine():
    assert status_missing(record(MACHINE))
    assert not status_missing(record(MACHINE, status={"recordUID": "x"}))
    assert not status_missing(record(MACHINE, {**FULL[MACHINE], "approvalState": "pending"}))
    assert not status_missing(record(CLUSTER))


def test_sent_is_whatever_may_have_been_sent():
    assert not was_sent(record(MACHINE, status={"stage": "maintenance", "sending": None}))
    for key, value in (("sending", {"hash": "x"}), ("configStoredAt", "t"), ("storedConfigHash", "x"), ("appliedConfigHash", "x")):
        assert was_sent(record(MACHINE, status={key: value}))


def test_what_gitops_tools_mark():
    assert tracked_by(record(CLUSTER)) == ""
    assert tracked_by(record(CLUSTER, labels={"app.kubernetes.io/name": "x", "argocd.argoproj.io/instance": ""})) == ""
    assert tracked_by(record(CLUSTER, labels={"app.kubernetes.io/instance": "x"})) == "Argo CD"
    assert tracked_by(record(CLUSTER, labels={"argocd.argoproj.io/instance": "x"})) == "Argo CD"
    assert tracked_by(record(CLUSTER, annotations={"kustomize.toolkit.fluxcd.io/name": "x"})) == "Flux"


def test_a_status_is_known_field_by_field():
    assert validate_status(record(MACHINE, status={"stage": "running", "conditions": [
        {"type": "Ready", "status": "True", "reason": "Converged", "message": "", "observedGeneration": 1,
         "lastTransitionTime": "2026-09-21T14:13:20Z"}]})) == ()
    assert [problem.where for problem in validate_status(record(MACHINE, status={"colour": "red"}))] == ["status.colour"]


def test_every_field_has_words_for_a_person():
    def fields(block):
        for name, field in block.fields.items():
            yield name, field
            inner = field.type
            while isinstance(inner, (ListOf, MapOf)):
                inner = inner.item if isinstance(inner, ListOf) else inner.value
            if isinstance(inner, Block):
                yield from fields(inner)

    for schema in SCHEMAS.values():
        for name, field in (*fields(schema.spec), *fields(schema.status)):
            assert isinstance(field, Field) and field.doc.endswith("."), name
            assert isinstance(field.type, (Text, Whole, Truth, ListOf, MapOf, Open, Block)), name
