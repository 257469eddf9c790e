# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 3 of the design as rows: what records may say, which addresses are dialled, and a person's edits of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.ichor.talos.plugins.module_utils._decide.cluster_edit import ClusterEdit, ClusterSeen, decide_cluster
from ansible_collections.ichor.talos.plugins.module_utils._model.dialling import dial_rules
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import PROVISIONED_REASONS, READY_REASONS, TalosError
from ansible_collections.ichor.talos.plugins.module_utils._model.machine import dial_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.plan import Refusal, Target
from ansible_collections.ichor.talos.plugins.module_utils._model.record_uid import record_uid
from ansible_collections.ichor.talos.plugins.module_utils._model.records import CLUSTER, MACHINE, RECLAIM, Broken, Json, Record
from ansible_collections.ichor.talos.plugins.module_utils._model.schema import validate, validate_status
from ansible_collections.ichor.talos.plugins.module_utils._model.schema_rules import Context

from tests.unit._decide.rows import Row, Seen, of_plan
from tests.unit.machine_world import cluster, machine

TRACKED = {"kustomize.toolkit.fluxcd.io/name": "apps"}


def dialled(host: str, *, lab: bool = False, spec: Record | None = None) -> Seen:
    """Whether an address is dialled (as an action), for a cluster whose endpoint is 10.9.0.1."""
    rules = dial_rules((spec or cluster()).spec, lab)
    try:
        rules.check(host)
    except TalosError as error:
        return Seen(reasons=frozenset({error.reason}), told=error.text)
    return Seen(actions=("dial",))


def home(record: Record) -> Seen:
    return Seen(actions=(str(dial_endpoint(record)),))


def checked(record: Record, before: Record | None = None, *, has_machines: bool = False, writing: bool = True) -> Seen:
    """The rules that a record breaks."""
    problems = validate(record, before, Context(has_machines), writing=writing)
    return Seen(frozenset(problem.rule for problem in problems), told="\n".join(str(problem) for problem in problems))


def with_spec(record: Record, **spec: Json) -> Record:
    return replace(record, spec={**record.spec, **spec})


def change(
    before: Record | None,
    *,
    machines: Sequence[Record] = (),
    broken: Broken | None = None,
    absent: bool = False,
    allow_delete: bool = False,
    override: bool = False,
    clear_disruption: str = "",
    clear_operation: str = "",
    **settings: Json,
) -> Seen:
    """One edit of a cluster as the decision sees it."""
    edit = ClusterEdit("prod", settings, absent, allow_delete, clear_operation, clear_disruption, override)
    return of_plan(decide_cluster(edit, ClusterSeen(before, tuple(machines), broken))[0])


def reason_is_known(word: str) -> Seen:
    try:
        Refusal(Target(), word, "message")
    except ValueError:
        return Seen(actions=("refused",))
    return Seen(actions=("taken",))


RECLAIM_SPEC: dict[str, Json] = {
    "address": "10.0.0.1",
    "clusterRef": "prod",
    "confirmUUID": "a1b2c3d4-0001-4000-8000-000000000001",
    "notAfter": "2026-12-01T00:00:00Z",
}
ORDER = Record(RECLAIM, "wipe-1", spec=RECLAIM_SPEC)
DISRUPTED = replace(cluster(), status={"disruption": {"machine": "prod-1", "step": "reset", "time": "2026-01-01T00:00:00Z"}})

RECORDS: tuple[Row, ...] = (
    # names and what cannot be changed
    Row("3/name-dns-1123", lambda: checked(replace(machine(1), name="Prod_1")), ("schema/name",)),
    Row("3/name-good", lambda: checked(machine(1)), absent=("schema/name",)),
    Row("3/cluster-ref-immutable", lambda: checked(with_spec(machine(1, "approved"), clusterRef="dev"), machine(1, "approved")), ("3/cluster-ref-immutable",)),
    Row("3/cluster-ref-of-a-pending", lambda: checked(with_spec(machine(1), clusterRef="dev"), machine(1)), absent=("3/cluster-ref-immutable",)),
    Row("3/secrets-ref-immutable", lambda: checked(with_spec(cluster(), secretsRef={"name": "b"}), cluster(), has_machines=True), ("3/secrets-ref-immutable",)),
    Row("3/secrets-ref-before-machines", lambda: checked(with_spec(cluster(), secretsRef={"name": "b"}), cluster()), absent=("3/secrets-ref-immutable",)),
    Row(
        "3/cni-immutable",
        lambda: checked(with_spec(cluster(), cni={"preset": "unmanaged"}), with_spec(cluster(), cni={"preset": "managed"})),
        ("3/cni-preset-immutable",),
    ),
    Row(
        "3/cni-none-to-managed",
        lambda: checked(with_spec(cluster(), cni={"preset": "managed"}), with_spec(cluster(), cni={"preset": "none"})),
        absent=("3/cni-preset-immutable",),
    ),
    Row(
        "3/cni-managed-to-none",
        lambda: checked(with_spec(cluster(), cni={"preset": "none"}), with_spec(cluster(), cni={"preset": "managed"})),
        ("3/cni-preset-immutable",),
    ),
    Row("3/count-is-odd", lambda: checked(with_spec(cluster(), controlPlane={"count": 2})), ("schema/values",)),
    Row("3/disk-or-selector", lambda: checked(machine(1, install={"disk": "/dev/sda", "diskSelector": {"type": "nvme"}})), ("3/disk-or-selector",)),
    Row("3/interface-or-mac", lambda: checked(machine(1, network={"primary": {"interface": "eth0", "mac": "3c:ec:ef:00:00:01"}})), ("3/interface-or-mac",)),
    Row("3/dhcp-or-static", lambda: checked(machine(1, network={"primary": {"dhcp": True, "addresses": ["10.0.0.1/24"]}})), ("3/dhcp-or-static",)),
    Row("3/keys-never-in-the-record", lambda: checked(with_spec(cluster(), secretsRef={"name": "b", "key": "x"})), ("schema/unknown-key",)),
    Row("3/reclaim-immutable", lambda: checked(replace(ORDER, spec={**RECLAIM_SPEC, "address": "10.0.0.2"}), ORDER), ("3/reclaim-immutable",)),
    Row(
        "3/reclaim-needs-not-after",
        lambda: checked(replace(ORDER, spec={key: value for key, value in RECLAIM_SPEC.items() if key != "notAfter"})),
        ("schema/required",),
    ),
    Row("7/approved-by-hand", lambda: checked(machine(1, "approved", approvedBy="", approvedAt="")), ("schema/empty",)),
    Row("7/approval-fields-together", lambda: checked(with_spec(machine(1), approvalState="approved", role="worker")), ("7/approval-together",)),
    Row(
        "7/approval-by-hand-is-read",
        lambda: checked(with_spec(machine(1), approvalState="approved", role="worker"), writing=False),
        absent=("7/approval-together",),
    ),
    Row(
        "7/role-immutable-in-the-store",
        lambda: checked(
            with_spec(machine(1, "approved", status={"configStoredAt": "2026-01-01T00:00:00Z"}), role="controlplane"),
            machine(1, "approved", status={"configStoredAt": "2026-01-01T00:00:00Z"}),
        ),
        ("7/role-immutable",),
    ),
    Row(
        "7/identity-immutable-in-the-store",
        lambda: checked(
            with_spec(machine(1, "approved", status={"configStoredAt": "2026-01-01T00:00:00Z"}), identity={"serial": "x1"}),
            machine(1, "approved", status={"configStoredAt": "2026-01-01T00:00:00Z"}),
        ),
        ("7/identity-immutable",),
    ),
    Row(
        "3/uid-is-the-identity",
        lambda: Seen(actions=("same",) if record_uid(MACHINE, "a", machine(1).spec) == record_uid(MACHINE, "b", machine(1).spec) else ()),
        actions=("same",),
    ),
    Row(
        "3/uid-of-other-hardware",
        lambda: Seen(actions=("same",) if record_uid(MACHINE, "a", machine(1).spec) == record_uid(MACHINE, "a", machine(2).spec) else ()),
    ),
    # gitops
    Row(
        "3/gitops-cluster",
        lambda: change(replace(cluster(), labels=TRACKED), driftPolicy="report"),
        ("3/gitops",),
        reasons=("RecordTracked",),
        says=("git", "override: true"),
    ),
    Row(
        "3/gitops-cluster-overridden",
        lambda: change(replace(cluster(), labels=TRACKED), override=True, driftPolicy="report"),
        actions=("EditCluster",),
        absent=("3/gitops",),
    ),
    # where a machine is dialled
    Row("3/dial-spec", lambda: home(machine(1)), actions=("10.0.0.1:50000",)),
    Row("3/dial-observed", lambda: home(machine(1, status={"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1"})), actions=("10.0.0.7:50000",)),
    Row(
        "3/dial-edited",
        lambda: home(machine(1, address="10.0.0.8", status={"observedEndpoint": "10.0.0.7", "observedEndpointFor": "10.0.0.1"})),
        actions=("10.0.0.8:50000",),
    ),
    Row("3/dial-port", lambda: home(machine(1, address="10.0.0.1:50007")), actions=("10.0.0.1:50007",)),
    Row("3/refuses-loopback", lambda: dialled("127.0.0.1"), reasons=("EndpointRefused",)),
    Row("3/refuses-loopback-6", lambda: dialled("::1"), reasons=("EndpointRefused",)),
    Row("3/refuses-mapped-loopback", lambda: dialled("::ffff:127.0.0.1"), reasons=("EndpointRefused",)),
    Row("3/refuses-localhost", lambda: dialled("localhost"), reasons=("EndpointRefused",)),
    Row("3/allows-loopback-in-a-lab", lambda: dialled("127.0.70.1", lab=True), actions=("dial",)),
    Row("3/refuses-unspecified", lambda: dialled("0.0.0.0"), reasons=("EndpointRefused",)),
    Row("3/refuses-unspecified-6", lambda: dialled("::"), reasons=("EndpointRefused",)),
    Row("3/refuses-unspecified-in-a-lab", lambda: dialled("0.0.0.0", lab=True), reasons=("EndpointRefused",)),
    Row("3/refuses-multicast", lambda: dialled("224.0.0.1"), reasons=("EndpointRefused",)),
    Row("3/refuses-multicast-6", lambda: dialled("ff02::1"), reasons=("EndpointRefused",)),
    Row("3/refuses-broadcast", lambda: dialled("255.255.255.255"), reasons=("EndpointRefused",)),
    Row("3/refuses-link-local-without-a-link", lambda: dialled("fe80::1"), reasons=("EndpointRefused",)),
    Row("3/allows-link-local-with-a-link", lambda: dialled("fe80::1%eth0"), actions=("dial",)),
    Row(
        "3/dials-the-endpoint-of-a-single-control-plane",
        lambda: dialled("10.9.0.1", spec=cluster(controlPlane={"count": 1})),
        actions=("dial",),
    ),
    Row("3/refuses-the-endpoint", lambda: dialled("10.9.0.1"), reasons=("EndpointRefused",)),
    Row(
        "3/refuses-the-endpoint-by-name",
        lambda: dialled("API.prod.example.", spec=cluster(endpoint="https://api.prod.example:6443")),
        reasons=("EndpointRefused",),
    ),
    Row("3/refuses-the-endpoint-6", lambda: dialled("2001:db8:0::5", spec=cluster(endpoint="https://[2001:db8::5]:6443")), reasons=("EndpointRefused",)),
    Row("3/refuses-pods", lambda: dialled("10.244.1.1"), reasons=("EndpointRefused",)),
    Row("3/refuses-services", lambda: dialled("10.96.0.10"), reasons=("EndpointRefused",)),
    Row("3/refuses-declared-pods", lambda: dialled("172.20.1.1", spec=cluster(network={"podSubnets": ["172.20.0.0/16"]})), reasons=("EndpointRefused",)),
    Row("3/declared-pods-replace-the-usual", lambda: dialled("10.244.1.1", spec=cluster(network={"podSubnets": ["172.20.0.0/16"]})), actions=("dial",)),
    Row("3/dials-the-rest", lambda: dialled("10.0.0.1"), actions=("dial",)),
    # closed lists
    Row("3/reasons-are-closed", lambda: reason_is_known("SomethingElse"), actions=("refused",)),
    Row(
        "3/reasons-of-conditions",
        lambda: Seen(actions=tuple(sorted({"PendingApproval", "NodeJoined"} & (READY_REASONS | PROVISIONED_REASONS)))),
        actions=("NodeJoined", "PendingApproval"),
    ),
    Row(
        "3/status-is-closed",
        lambda: Seen(frozenset(problem.rule for problem in validate_status(replace(machine(1), status={"other": 1})))),
        ("schema/unknown-key",),
    ),
    # a person's edits of a cluster
    Row("3/create-cluster", lambda: change(None, endpoint="https://10.9.0.1:6443", controlPlane={"count": 3}), actions=("CreateCluster",)),
    Row("3/edit-cluster", lambda: change(cluster(), driftPolicy="report"), actions=("EditCluster",), says=("driftPolicy nothing → report",)),
    Row("3/edit-cluster-shows-from-and-to", lambda: change(cluster(controlPlane={"count": 1}), controlPlane={"count": 3}), actions=("EditCluster",),
        says=("controlPlane.count 1 → 3",)),
    Row("3/edit-cluster-shows-no-values-of-a-chart", lambda: change(cluster(cni={"preset": "managed"}), cni={"cilium": {"values": {"a": "b"}}}),
        actions=("EditCluster",), says=("cni.cilium.values (other values)",)),
    Row("3/edit-cluster-merges", lambda: change(cluster(), discovery={"ranges": ["10.0.0.1-10.0.0.9"]})),
    Row("3/edit-cluster-again", lambda: change(cluster(), controlPlane={"count": 3})),
    Row(
        "3/edit-cluster-secrets",
        lambda: change(cluster(), machines=[machine(1)], secretsRef={"name": "b"}),
        ("3/secrets-ref-immutable",),
        reasons=("Immutable",),
    ),
    Row(
        "3/edit-cluster-cni",
        lambda: change(cluster(cni={"preset": "unmanaged"}), cni={"preset": "managed"}),
        ("3/cni-preset-immutable",),
        reasons=("Immutable",),
    ),
    Row("3/edit-cluster-schema", lambda: change(cluster(), controlPlane={"count": 4}), reasons=("RecordInvalid",), rules=("schema/values",)),
    Row(
        "3/ranges-overlap",
        lambda: change(cluster(), network={"podSubnets": ["10.0.0.0/8"], "serviceSubnets": ["10.96.0.0/12"]}),
        ("3/ranges-overlap",),
        reasons=("RecordInvalid",),
    ),
    Row("3/cni-managed", lambda: change(None, endpoint="https://10.9.0.1:6443", kubernetesVersion="v1.35.0", cni={"preset": "managed"}),
        actions=("CreateCluster",)),
    Row("15/cni-owned-in-record", lambda: change(cluster(cni={"preset": "managed"}), cni={"cilium": {"values": {"ipam": {"mode": "cluster-pool"}}}}),
        ("15/cni-owned",), reasons=("InvalidInput",), says=("ipam.mode",)),
    Row("15/cni-secret-in-record", lambda: change(cluster(cni={"preset": "managed"}), cni={"cilium": {"values": {"ui": {"password": "correct horse"}}}}),
        ("15/cni-secret",), reasons=("InvalidInput",), says=("ui.password",)),
    Row("3/kubernetes-version", lambda: change(None, endpoint="https://10.9.0.1:6443"), ("3/kubernetes-version",), actions=("CreateCluster",)),
    Row("3/kubernetes-version-given", lambda: change(None, endpoint="https://10.9.0.1:6443", kubernetesVersion="v1.35.0"), absent=("3/kubernetes-version",),
        actions=("CreateCluster",)),
    Row("6/discovery-too-large", lambda: change(cluster(), discovery={"ranges": ["10.0.0.0/8"]}), ("6/discovery-targets",), reasons=("RangeTooLarge",)),
    Row(
        "3/over-cap-is-told",
        lambda: change(cluster(), machines=[machine(number, "approved", role="controlplane") for number in range(1, 4)], controlPlane={"count": 1}),
        ("3/over-cap",),
        actions=("EditCluster",),
    ),
    Row(
        "4/cluster-broken",
        lambda: change(None, broken=Broken(CLUSTER, "prod", "clusters/prod.yaml", 3, "bad")),
        ("4/record-broken",),
        reasons=("RecordBroken",),
    ),
    Row("3/hold-and-back", lambda: change(cluster(hold="shutdown"), hold=None), actions=("EditCluster",)),
    Row("13/clear-by-name", lambda: change(DISRUPTED, clear_disruption="prod-1"), actions=("ClearStatus",)),
    Row("13/clear-another-name", lambda: change(DISRUPTED, clear_disruption="prod-2"), ("13/clear-by-name",), reasons=("InvalidInput",)),
    Row("13/clear-twice", lambda: change(cluster(), clear_disruption="prod-1")),
    Row("3/delete-cluster", lambda: change(cluster(), absent=True, allow_delete=True), actions=("DeleteCluster",)),
    Row(
        "3/delete-cluster-with-machines",
        lambda: change(cluster(), machines=[machine(1)], absent=True, allow_delete=True),
        ("3/cluster-has-machines",),
        reasons=("DeleteNotAllowed",),
    ),
    Row("4/delete-cluster-not-meant", lambda: change(cluster(), absent=True), ("4/allow-delete",), reasons=("DeleteNotAllowed",)),
    Row(
        "4/delete-cluster-broken",
        lambda: change(None, broken=Broken(CLUSTER, "prod", "clusters/prod.yaml", 3, "bad"), absent=True, allow_delete=True),
        ("4/record-broken",),
        reasons=("RecordBroken",),
    ),
    Row(
        "3/delete-cluster-gitops", lambda: change(replace(cluster(), labels=TRACKED), absent=True, allow_delete=True), ("3/gitops",), reasons=("RecordTracked",)
    ),
    Row("3/delete-cluster-twice", lambda: change(None, absent=True)),
)
